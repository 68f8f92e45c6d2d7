"""URLs inside URLs: those of redirectors, frames and archives name another page.

They stand as the value of a query parameter, percent-encoded once, or in the path, plain or percent-encoded.
"""

import re
from collections.abc import Iterator
from urllib.parse import quote, unquote_to_bytes

_SCHEME = re.compile(r"https?(?::|%3a)(?:/|%2f){2}(?=[^/?#&\s])", re.IGNORECASE)
_PRINTABLE = bytes(range(0x20, 0x7F)).decode()


def find_embedded(url: str) -> Iterator[str]:
    """The absolute http(s) URLs inside an absolute URL, as texts, each once, without the URL itself."""
    if not _SCHEME.search(url, 1):  # nearly always
        return
    address = url.partition("#")[0]
    path, _, query = address.partition("?")
    seen = {url}
    for text in (*in_path(path, query), *in_query(query)):
        if text not in seen:
            seen.add(text)
            yield text


def in_path(path: str, query: str) -> Iterator[str]:
    """The first URL in a path: a plain one owns the query too, as in archives; an encoded one ends with its segment."""
    found = _SCHEME.search(path, 1)
    if found and "%" in found[0]:
        yield decode(path[found.start() :].partition("/")[0])
    elif found:
        yield path[found.start() :] + (f"?{query}" if query else "")


def in_query(query: str) -> Iterator[str]:
    if _SCHEME.match(query) and "%" not in _SCHEME.match(query)[0]:
        yield query  # all of the query is one URL
        return
    for part in re.split("[&;]", query):
        name, _, value = part.partition("=")
        for text in (part, value):
            if _SCHEME.match(text):
                yield decode(text)
                break


def decode(text: str) -> str:
    """Percent-decoded once; bytes that are no UTF-8 stay encoded."""
    data = unquote_to_bytes(text.encode("utf-8", "replace"))
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return quote(data, safe=_PRINTABLE)
