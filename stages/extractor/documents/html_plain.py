"""What an HTML page in plain markup says, from its start tags alone: the same that its tree would say, in less time.

Tags repeat over the pages of a site, so what a tag says is found once and remembered.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

from stages.extractor.document import Document, shorten
from stages.extractor.documents.attributes import language_of
from stages.extractor.documents.html_elements import ElementReading, Options, add_anchors
from stages.extractor.documents.start_tags import NotPlain, PlainPage, decode_text, read_attributes

TAGS_REMEMBERED, TAG_REMEMBERED_MAX_BYTES = 1 << 12, 500
# Attributes that hold links: of any tag, and of one tag each.
_LINKS = frozenset(("href", "src", "srcset", "imagesrcset", "background"))
_RARE_LINKS = {"form": "action", "object": "data", "input": "formaction", "video": "poster"}


def take_plain(page: PlainPage, options: Options) -> Document:
    """What a page in plain markup says: the same that its tree would say. Raises NotPlain where that is not sure."""
    say, document = sayings(options), Document(title=shorten(decode_text(page.title)))
    add_anchors(document, page.hrefs, page.nofollow)
    late, others = [], document.others
    for name, source in page.tags:
        if name == b"meta" and not may_ask(source, options.agent):
            continue  # most differ from page to page and say nothing to us
        said = say(name, source) if len(source) <= TAG_REMEMBERED_MAX_BYTES else read_tag(options, name, source)
        if said is None:
            continue
        if said.link is not None:
            others[said.link] = others.get(said.link, 0) + 1
        elif said.is_late:
            late.append(said.document)
        elif said.document.canonical is not None and document.canonical is not None:
            raise NotPlain  # in the tree their order may differ, because of tables
        else:
            document.join(said.document)
    for said_late in late:
        document.join(said_late)
    return document


class Saying(NamedTuple):
    """What one tag says: one link and nothing else, as most tags do, or a document."""

    link: tuple[int, str, bool] | None
    document: Document
    is_late: bool  # counts after all others, as html.select_of_document() orders them


@lru_cache(1)
def sayings(options: Options) -> Callable[[bytes, bytes], Saying | None]:
    """read_tag() with a memory."""
    return lru_cache(TAGS_REMEMBERED)(partial(read_tag, options))


def read_tag(options: Options, name: bytes, source: bytes) -> Saying | None:
    """What a tag says, by its name and the source of its attributes; none where it says nothing."""
    tag, attributes = name.decode(), read_attributes(source)
    if tag == "html":
        return Saying(None, Document(language=language_of(attributes)), False)
    has_link = not _LINKS.isdisjoint(attributes) or _RARE_LINKS.get(tag) in attributes
    if not has_link and tag != "meta":
        return None
    reading = ElementReading(options)
    reading.take_element(tag, attributes)
    said = reading.document
    is_one_link = (
        has_link
        and list(said.others.values()) == [1]
        and said.base is None
        and said.canonical is None
        and not (said.noindex or said.nofollow)
    )
    return Saying(next(iter(said.others)) if is_one_link else None, said, not has_link)


def may_ask(source: bytes, agent: str) -> bool:
    """Whether the source of a <meta>'s attributes may ask something of us."""
    plain = source.lower()
    return b"&" in plain or b"refresh" in plain or b"robots" in plain or agent.encode() in plain
