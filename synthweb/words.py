"""The four tongues of the web: words for texts and paths, and the charset that each is served in."""

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True)
class Tongue:
    """`native` words go raw into paths of links; all of `native` can be encoded in `charset`."""

    name: str
    charset: str
    native: tuple[str, ...]

    def phrase(self, rng: Random, words: int) -> str:
        return " ".join(rng.choices(self.native, k=words))


PORTUGUESE = Tongue(
    "portuguese",
    "iso-8859-1",
    ("notícia", "coração", "maçã", "página", "água", "avô", "ação", "pão", "três", "céu", "índice", "também"),
)
RUSSIAN = Tongue(
    "russian",
    "windows-1251",
    ("новости", "город", "книга", "вода", "съезд", "яблоко", "школа", "ёлка", "мир", "хлеб", "юг", "цвет"),
)
# The second byte of 表, ソ, 能 and 十 in Shift_JIS is a backslash: parsers that work on undecoded bytes fail here.
JAPANESE = Tongue(
    "japanese",
    "shift_jis",
    ("日本", "表", "ソフト", "能力", "十字", "新聞", "東京", "予定", "カタログ", "ひらがな", "水", "本"),
)
MIXED = Tongue(
    "mixed",
    "utf-8",
    ("word", "straße", "naïve", "λόγος", "новость", "水", "שלום", "emoji🙂", "plain", "text", "žluťoučký", "đẹp"),
)

TONGUES = (PORTUGUESE, RUSSIAN, JAPANESE, MIXED)

# Paths are mostly plain ASCII, as on the real web; none of these is touched by a robots.txt of robots.py.
SECTIONS = (
    "artigos", "autores", "blog", "cidades", "cursos", "docs", "esportes", "eventos", "foro", "guia",
    "livros", "loja", "mapas", "musica", "notas", "obras", "pesquisa", "receitas", "temas", "viagens",
)  # fmt: skip


def tongue_of(rng: Random) -> Tongue:
    """Half of the servers speak UTF-8, the rest share the older charsets."""
    return rng.choices(TONGUES, weights=(2, 1, 1, 4))[0]
