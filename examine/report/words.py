"""The words and numbers of a report in a language. English texts are the keys; what has no translation stays so."""

from contract.units import duration, size
from examine.report import portuguese

ENGLISH, PORTUGUESE = "en", "pt"
LANGUAGES = (ENGLISH, PORTUGUESE)
_SWAPPED = str.maketrans(",.", ".,")  # 1,234.5 in English is 1.234,5 in Portuguese


class Words:
    def __init__(self, language: str = ENGLISH):
        self.language = language
        self.missing: set[str] = set()  # texts that were asked for and have no translation

    def __call__(self, text: str) -> str:
        if self.language == ENGLISH:
            return text
        if text not in portuguese.TEXTS:
            self.missing.add(text)
        return portuguese.TEXTS.get(text, text)

    def value(self, text: str) -> str:
        """A part of a sentence: a word that has a translation, or a number with its unit."""
        return self._spell(text) if self.language == ENGLISH else portuguese.TEXTS.get(text, self._spell(text))

    def number(self, value: float) -> str:
        """`1,234`, `0.25`, `12.5`: whole numbers whole, others with three digits."""
        if isinstance(value, int) or value == int(value) or value >= 1_000:
            return self._spell(f"{value:,.0f}")
        return self._spell(f"{value:.3g}")

    def share(self, share: float) -> str:
        return self._spell(f"{100 * share:.1f}%")

    def size(self, number_bytes: float) -> str:
        return self._spell(size(number_bytes))

    def duration(self, seconds: float) -> str:
        return self._spell(duration(seconds))

    def _spell(self, text: str) -> str:
        return text if self.language == ENGLISH else text.translate(_SWAPPED)

    def chart_locale(self) -> dict:
        return {} if self.language == ENGLISH else portuguese.CHART_LOCALE
