"""What explains that one of two asked for a URL and the other did not; pure."""

import re
from collections import defaultdict
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import unquote

from bench.coverage.asking import Asked
from bench.coverage.evidence import Evidence
from contract.tables import REFUSED
from contract.url import path_extension

UNEXPLAINED = "unexplained"
DOCUMENTS = ("text/html", "application/xhtml+xml", "application/pdf", "text/plain", "text/xml", "application/xml")
# The kinds of links that wget 1.21 finds, by its tags and attributes; a form only where the method is GET.
WGET_KINDS = frozenset(
    (
        "a",
        "area",
        "frame",
        "refresh",
        "redirect",
        "link",
        "image",
        "script",
        "canonical",
        "alternate",
        "next",
        "object",
        "form",
        "media",
        "style",
        "sitemap",
    )
)
WGET_READERS = frozenset(("html", "css"))
_SCRIPT = re.compile(r"<script.*?</script", re.DOTALL | re.IGNORECASE)


class Row(NamedTuple):
    """Numbers of URLs of one sort: asked for by both, and by one alone."""

    sort: str
    both: int
    only_wget: int
    only_ours: int


class Referer(NamedTuple):
    """The page in which wget found a link."""

    url: str
    is_ours: bool  # the crawler asked for it as well
    rule: str  # of the scope, that it breaks
    text: str


def sort_of(asked: Asked) -> str:
    if asked.status == 200:
        return asked.type if asked.type in DOCUMENTS else "other files"
    return "redirects" if 300 <= asked.status < 400 else f"status {asked.status}"


def count_sorts(ours: dict[str, Asked], theirs: dict[str, Asked]) -> list[Row]:
    """A row for each sort, documents first."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for url in ours.keys() | theirs.keys():
        column = 0 if url in ours and url in theirs else 1 if url in theirs else 2
        counts[sort_of(theirs.get(url) or ours[url])][column] += 1
    return [Row(sort, *counts[sort]) for sort in sorted(counts, key=lambda sort: (sort not in DOCUMENTS, sort))]


def explain_theirs(url: str, evidence: Evidence, rule: str, follow: frozenset[str], referer: Referer) -> str:
    """Why the crawler did not ask for what wget asked for. `rule` is that of its scope which the URL breaks."""
    if rule:
        return explain_rule(url, rule)
    if not evidence.kinds:
        return explain_unseen(url, referer)
    if not evidence.kinds & follow:
        return f"kind not followed: {', '.join(sorted(evidence.kinds))}"
    if evidence.outcome == REFUSED:
        return f"refused: {evidence.reason}"
    if not evidence.is_followed:
        return (
            "nofollow"
            if evidence.is_nofollow
            else f"{UNEXPLAINED}: links are not followed ({', '.join(sorted(evidence.kinds))})"
        )
    return f"{UNEXPLAINED}: followed, and then {evidence.outcome or 'not reached'} {evidence.reason}".rstrip()


def explain_rule(url: str, rule: str) -> str:
    return (
        f"extension rejected: {path_extension(url.partition('?')[0])}"
        if rule == "reject_extensions"
        else f"rejected by {rule}"
    )


def explain_unseen(url: str, referer: Referer) -> str:
    """Why the crawler knows no link to what wget asked for."""
    if not referer.url:
        return f"{UNEXPLAINED}: no link to it was found, nor where wget found one"
    if not referer.is_ours:
        why = explain_rule(referer.url, referer.rule) if referer.rule else "see there"
        return f"found in a file that was not fetched ({why})"
    written = unquote(url.removeprefix(referer.url.partition("?")[0].rpartition("/")[0] + "/"))
    if "\\" in written:
        return "a back-slash, which browsers take for a slash and wget for a letter"
    if written in referer.text and written not in _SCRIPT.sub("", referer.text):
        return "a string in a script, which wget takes for markup"
    return f"{UNEXPLAINED}: no link to it was found in {referer.url}"


def explain_ours(evidence: Evidence) -> str:
    """Why wget did not ask for what the crawler asked for."""
    if not evidence.kinds:
        return f"{UNEXPLAINED}: no link to it was found"
    if not evidence.kinds & WGET_KINDS:
        return f"kind that wget does not know: {', '.join(sorted(evidence.kinds))}"
    if evidence.readers and not evidence.readers & WGET_READERS:
        return f"found in what wget does not read: {', '.join(sorted(evidence.readers))}"
    return f"{UNEXPLAINED}: {', '.join(sorted(evidence.kinds))}"


def group(urls: set[str], explain: Callable[[str], str]) -> dict[str, list[str]]:
    """Explanation -> URLs, the largest group first."""
    found: dict[str, list[str]] = defaultdict(list)
    for url in sorted(urls):
        found[explain(url)].append(url)
    return dict(sorted(found.items(), key=lambda item: (-len(item[1]), item[0])))
