"""JavaScript: string literals that may be links, without running anything.

In the spirit of Heritrix's ExtractorJS and more careful: a literal without white space that is an absolute URL, a path
from '/', './' or '../', '//' and a host with a dot, or a relative name with an extension of pages. Scripts also glue
addresses from parts, so some finds lead nowhere and some links are missed.
"""

import re
from collections.abc import Iterator

from contract.url import URL_MAX_BYTES
from stages.extractor.charset import to_text
from stages.extractor.document import DATA, Document

TYPES = (
    "text/javascript",
    "application/javascript",
    "application/x-javascript",
    "application/ecmascript",
    "text/ecmascript",
    "application/x-ecmascript",
    "text/x-javascript",
    "text/jscript",
)

_EXTENSIONS = r"(?:[sx]?html?|php[3-8]?|phtml|aspx?|jspx?|jsf|cgi|cfml?|pdf|docx?|odt|pptx?|xml|rss|atom)"
_FIRST, _PATH = r"[\w~%@.?-]", r"[\w~%@.!$&+,;:=?\#/-]"  # '/i' is no path but what follows a regular expression
_REST = r"""[^\s"'`<>\\{}|^]*+"""  # what may follow once it is clear that this is an address
_LITERAL = re.compile(
    rf"""(["'`])
    ( (?:https?:)?//[\w-]++(?:\.[\w-]++)++(?=[:/?\#"'`]) {_REST}
    | (?:/{_FIRST}{_PATH}|\.{{1,2}}/{_FIRST}){_PATH}*+
    | [\w~%@-][\w~%@./+,-]*\.{_EXTENSIONS}(?:[?\#]{_REST})?
    )\1""",
    re.IGNORECASE | re.VERBOSE,
)
_LETTER = re.compile(r"[^\W\d_]")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|([/\"'`]))")


def looks_like(start: bytes) -> bool:
    """Scripts have no mark to know them by."""
    return False


def read(content: bytes, charset: str) -> Document:
    document = Document()
    for text in find_links(to_text(content, charset)):
        document.add(DATA, text)
    return document


def find_links(source: str) -> Iterator[str]:
    """Texts of what may be links in a script, in order, repeated ones too; escapes are undone."""
    if "\\" in source:
        source = _ESCAPE.sub(undo_escape, source)
    for found in _LITERAL.finditer(source):
        text = found[2]
        if len(text) <= URL_MAX_BYTES and _LETTER.search(text):
            yield text


def undo_escape(found: re.Match) -> str:
    number = found[1] or found[2]
    if not number:
        return found[3]
    character = chr(int(number, 16))
    return "\ufffd" if "\ud800" <= character <= "\udfff" else character
