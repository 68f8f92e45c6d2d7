"""Writes the body of a page: HTML sound or broken, framesets, texts and short messages, in the page's charset."""

import re
from html import escape
from http.client import responses
from random import Random

from synthweb.page import Link, Page
from synthweb.spelling import spell
from synthweb.words import MIXED, TONGUES

UNQUOTED_SAFE = re.compile(r"[A-Za-z0-9/.:?&;%_-]+\Z")
TONGUE_OF_CHARSET = {tongue.charset: tongue for tongue in TONGUES}

# Each keeps its link by the HTML standard's error handling; {} is the escaped href.
BROKEN_LINKS = (
    "<p><b>um <i>dois</b> tres</i> <a href={}>sem fim",
    "<A HREF='{}'>maiusculas",
    '<a class="x"href="{}">sem espaco</a></div></span>',
    '<a href="{}" href="/nunca/segundo-href">dois href</a>',
    '<table><tr><a href="{}">fora do lugar<td>celula</table>',
    '<a\n href\n =\n "{}"/>barra & &amp &nbsp < 3</a>',
    '<div><p><ul><li><a href="{}">lista</ol></li></b>',
    '<font color=red><center><a name=z href="{}"><h1>titulo</a></h1>',
)


def write_body(page: Page, port: int, seed: int) -> bytes:
    """The bytes of a page before any content encoding; the same for the same arguments."""
    rng = Random(f"synthweb/{seed}/body/{page.key}")
    return _WRITERS[page.shape](page, port, rng)


def href(link: Link, page: Page, port: int) -> str:
    """The text of a link as its page writes it, before HTML escaping."""
    if link.target is None:
        return link.raw
    return spell(link.target, page.base_url(), port, link.form, link.extra)


def _write_page(page: Page, port: int, rng: Random) -> bytes:
    tongue = TONGUE_OF_CHARSET.get(page.charset, MIXED)
    lines = [_head(page, port, tongue.phrase(rng, 4), [link for link in page.links if link.kind in ("refresh", "css")])]
    lines.append("<body>")
    lines.append(f"<h1>{tongue.phrase(rng, 3)}</h1>")
    for link in page.links:
        if link.kind not in ("refresh", "css"):
            lines.append(f"<p>{tongue.phrase(rng, rng.randint(3, 20))} {_element(link, page, port, rng)}</p>")
    lines.append(f"<p>{tongue.phrase(rng, rng.randint(20, 200))}</p>")
    lines.append("</body></html>\n")
    return _encode("\n".join(lines), page)


def _write_frameset(page: Page, port: int, rng: Random) -> bytes:
    """A document has a body or a frameset: parsers drop <frame> inside a body."""
    head = _head(page, port, "quadros", [])
    frames = "".join(f'<frame src="{_escaped(link, page, port)}">' for link in page.links)
    return _encode(f'{head}\n<frameset cols="50%,50%">{frames}</frameset></html>\n', page)


def _write_broken(page: Page, port: int, rng: Random) -> bytes:
    lines = ["<html><title>quebrada</title><body <p>"]
    for number, link in enumerate(page.links):
        lines.append(BROKEN_LINKS[number % len(BROKEN_LINKS)].format(_escaped(link, page, port)))
    text = "\n".join(lines).encode("utf-8", "xmlcharrefreplace")
    # Bytes that are no UTF-8 and a NUL in the text; a tag that the end of the file cuts is no link.
    return text + b'\n<p>\xff\xfe \x00 \xc3( \x80</p>\n<p>fim <a href="/nunca/cortado'


def _write_text(page: Page, port: int, rng: Random) -> bytes:
    lines = [f'veja {link.target.text(port)} e <a href="{link.target.target()}">isto</a>' for link in page.links]
    return ("\n".join(lines) + "\n").encode("ascii")


def _write_message(page: Page, port: int, rng: Random) -> bytes:
    """Answers without content of their own: a crawler may parse them or not, there is nothing to find."""
    return f"<html><title>{page.status}</title><p>{responses.get(page.status, '')}</p></html>\n".encode("ascii")


def _write_empty(page: Page, port: int, rng: Random) -> bytes:
    return b""


_WRITERS = {
    "page": _write_page,
    "frameset": _write_frameset,
    "broken": _write_broken,
    "text": _write_text,
    "message": _write_message,
    "empty": _write_empty,
}


def _head(page: Page, port: int, title: str, links: list[Link]) -> str:
    lines = ["<!DOCTYPE html>", "<html>", "<head>"]
    if page.declared == "meta":
        lines.append(f"<meta charset={page.charset}>")
    elif page.declared == "http-equiv":
        lines.append(f'<META HTTP-EQUIV="Content-Type" CONTENT="text/html; charset={page.charset}">')
    lines.append(f"<title>{title}</title>")
    if page.base is not None:
        text = spell(page.base, page.url, port, page.base_form)
        lines.append(f'<base href="{escape(text)}">')
    if page.nofollow:
        lines.append(f'<meta name="robots" content="{page.nofollow}">')
    for link in links:
        text = _escaped(link, page, port)
        if link.kind == "refresh":
            lines.append(f'<meta http-equiv="Refresh" content="5; URL={text}">')
        else:
            lines.append(f'<link rel="stylesheet" href="{text}">')
    lines.append("</head>")
    return "\n".join(lines)


def _element(link: Link, page: Page, port: int, rng: Random) -> str:
    text = _escaped(link, page, port)
    rel = f' rel="{link.rel}"' if link.rel else ""
    if link.kind == "area":
        return f'<map name="m"><area shape="rect" coords="0,0,9,9" href="{text}"{rel}></map>'
    if link.kind == "iframe":
        return f'<iframe src="{text}"><a href="/nunca/dentro-do-iframe">sem quadros</a></iframe>'
    if link.kind == "img":
        return f'<img src="{text}" alt="">'
    if link.kind == "script":
        return f'<script src="{text}"></script>'
    if link.kind == "hidden":
        return (
            f'<!-- <a href="{text}">comentario</a> --><textarea><a href="{text}">texto</a></textarea>'
            f"<script>var a = '<a href=\"{text}\">';</script>"
        )
    style = rng.randrange(4)
    if style == 0 and UNQUOTED_SAFE.match(text):
        return f"<a{rel} href={text}>mais</a>"
    if style == 1:
        return f"<A class=x HREF='{text}'{rel}>mais</A>"
    return f'<a href="{text}"{rel}>mais</a>'


def _escaped(link: Link, page: Page, port: int) -> str:
    text = href(link, page, port)
    if link.extra == "bare-ampersand":
        return text
    return escape(text)


def _encode(text: str, page: Page) -> bytes:
    # Characters that the charset lacks become character references: paths of other tongues stay right.
    body = text.encode(page.charset, "xmlcharrefreplace")
    return b"\xef\xbb\xbf" + body if page.declared == "bom" else body
