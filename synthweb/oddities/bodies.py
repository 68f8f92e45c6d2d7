"""Answers and bodies: statuses, types and broken markup that a crawler meets on ordinary servers."""

from synthweb.oddities.graft import Graft, oddity
from synthweb.page import Link


@oddity("404", hops=1)
def missing(graft: Graft) -> None:
    graft.anchor.links.append(Link(graft.url("/sumiu")))


@oddity("410", hops=1)
def gone(graft: Graft) -> None:
    graft.add(graft.anchor, "/foi-se", status=410, shape="message", charset="us-ascii")


@oddity("403", hops=1)
def denied(graft: Graft) -> None:
    graft.add(graft.anchor, "/fechado", status=403, shape="message", charset="us-ascii")


@oddity("duplicate", hops=2)
def duplicate(graft: Graft) -> None:
    """The same bytes under three URLs."""
    first = graft.add(graft.anchor, "/copias/primeira", portable=True)
    graft.add(first, "/copias/resto")
    first.links.append(Link(graft.elsewhere.url))
    first.key = f"{first.url.host}{first.url.target()}"
    for path in ("/copias/segunda", "/outras/copias/terceira"):
        graft.add(graft.anchor, path, portable=True, links=first.links, key=first.key)


@oddity("broken-html", hops=2)
def broken(graft: Graft) -> None:
    page = graft.add(graft.anchor, "/quebrada", shape="broken")
    for number in range(8):
        graft.add(page, f"/quebrada/parte/{number}")


@oddity("empty-body", hops=1)
def empty(graft: Graft) -> None:
    graft.add(graft.anchor, "/vazia", shape="empty")


@oddity("plain-text", hops=2)
def plain_text(graft: Graft) -> None:
    """URLs stand in the text, and a crawler follows them; the markup in it is none."""
    graft.add(
        graft.add(graft.anchor, "/leia-me.txt", shape="text", content_type="text/plain"), "/do-texto", kind="text"
    )


@oddity("wrong-type", hops=1)
def wrong_type(graft: Graft) -> None:
    """HTML that is served as an image: an answer without links."""
    graft.add(
        graft.add(graft.anchor, "/retrato", shape="page", content_type="image/png"), "/nunca/imagem", kind="unread"
    )
