"""What an HTML page says: its title, its base, its links in the order they stand, and whether it asks not to follow.

The one place that imports selectolax. Links are texts as they stand in the page, not yet resolved; the content of
<template> is none, that of <noscript> is read as a browser without scripts reads it.
"""

import re
from typing import NamedTuple

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser

from stages.extractor.document import A, AREA, FRAME, IMAGE, LINK, REFRESH, SCRIPT
from stages.extractor.nesting import cut_tangled

TITLE_MAX_CHARACTERS = 300

_SOURCES = {  # tag: kind of link, attribute that holds it
    "a": (A, "href"), "area": (AREA, "href"), "iframe": (FRAME, "src"), "frame": (FRAME, "src"), "link": (LINK, "href"),
    "img": (IMAGE, "src"), "script": (SCRIPT, "src"),
}
_SELECTOR = ",".join([*(f"{tag}[{attribute}]" for tag, (_, attribute) in _SOURCES.items()), "base[href]", "meta", "title"])
_REFRESH_TIME = re.compile(r"[\s\d.]*+[;,]?+\s*+")  # possessive: linear, whatever a page holds
_REFRESH_URL = re.compile(r"""url\s*+=\s*+(?:"([^"]*+)|'([^']*+)|(.*+))""", re.IGNORECASE | re.DOTALL)
_WORDS = re.compile(r"[\s,]+")


class Page(NamedTuple):
    title: str
    base: str | None  # the first <base href>, as it stands there
    nofollow: bool  # <meta name=robots>, or one for our agent, says so for all links
    links: dict[tuple[int, str, bool], int]  # (kind, text, marked nofollow): occurrences, by the first of each


def read_page(html: bytes, agent: str) -> Page:
    """Reads a page in UTF-8. Where its markup is tangled beyond measure, only what comes before that counts."""
    # Without events: they only copy the chosen <option>, and that in quadratic time.
    parser = LexborHTMLParser(cut_tangled(html), options=LexborDocumentOptions.WO_EVENTS)
    title = base = None
    nofollow = False
    robots = ("robots", agent.lower())
    links: dict[tuple[int, str, bool], int] = {}
    for node in parser.css(_SELECTOR):
        tag = node.tag
        attributes = node.attributes
        if tag in _SOURCES:
            kind, name = _SOURCES[tag]
            text = attributes.get(name, "") or ""
            # An empty text in <a> and <area> is a link to the page itself; elsewhere it is nothing.
            if not text and (kind > AREA or name not in attributes):
                continue
            marked = kind <= AREA and "nofollow" in (attributes.get("rel") or "").lower().split()
            link = (kind, text, marked)
            links[link] = links.get(link, 0) + 1
        elif tag == "meta":
            if (text := refresh_of(attributes)) is not None:
                link = (REFRESH, text, False)
                links[link] = links.get(link, 0) + 1
            nofollow = nofollow or forbids_following(attributes, robots)
        elif tag == "base":
            base = (attributes.get("href") or "") if base is None else base
        elif tag == "title" and title is None:
            title = " ".join(node.text().split())[:TITLE_MAX_CHARACTERS]
    return Page(title or "", base, nofollow, links)


def refresh_of(attributes: dict[str, str | None]) -> str | None:
    """The text behind url= of a <meta http-equiv=refresh>."""
    if (attributes.get("http-equiv") or "").strip().lower() != "refresh":
        return None
    content = attributes.get("content") or ""
    start = _REFRESH_TIME.match(content).end()
    found = _REFRESH_URL.match(content, start) if start and content[start - 1] in ";,\t\n\f\r " else None
    return next((text.strip() for text in found.groups() if text is not None), None) if found else None


def forbids_following(attributes: dict[str, str | None], robots: tuple[str, ...]) -> bool:
    if (attributes.get("name") or "").strip().lower() not in robots:
        return False
    words = _WORDS.split((attributes.get("content") or "").lower())
    return "nofollow" in words or "none" in words
