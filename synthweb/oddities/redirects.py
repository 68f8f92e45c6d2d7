"""Redirects: a redirect is an answer and a link of its own, one level deeper."""

from synthweb.oddities.graft import Graft, oddity
from synthweb.page import Link, Page

STATUSES = (301, 302, 303, 307, 308)


def redirect(page: Page, status: int, link: Link | None) -> None:
    page.status = status
    page.shape = "message"
    page.charset = "us-ascii"
    page.links = [link] if link else []


@oddity("redirect-relative", hops=2)
def relative(graft: Graft) -> None:
    page = graft.add(graft.anchor, "/muda/daqui")
    goal = graft.lay(page, "/muda/para/ali")
    redirect(page, graft.rng.choice(STATUSES), Link(goal.url, "redirect", "relative"))


@oddity("redirect-rooted", hops=1)
def rooted(graft: Graft) -> None:
    """To a page that is known already."""
    page = graft.add(graft.anchor, "/inicio")
    redirect(page, graft.rng.choice(STATUSES), Link(graft.server.home().url, "redirect", "rooted"))


@oddity("redirect-chain", hops=4)
def chain(graft: Graft) -> None:
    """Three hops with three statuses to a page that nothing else names."""
    first = page = graft.add(graft.anchor, "/salto/1")
    for step in (2, 3):
        onward = graft.lay(page, f"/salto/{step}")
        redirect(page, STATUSES[(graft.number + step) % len(STATUSES)], Link(onward.url, "redirect", "absolute"))
        page = onward
    goal = graft.lay(page, "/salto/fim", query=f"de={first.level}")
    redirect(page, STATUSES[graft.number % len(STATUSES)], Link(goal.url, "redirect", "protocol-relative"))


@oddity("redirect-loop", hops=2)
def loop(graft: Graft) -> None:
    there = graft.add(graft.anchor, "/volta/a")
    back = graft.lay(there, "/volta/b")
    redirect(there, 302, Link(back.url, "redirect", "relative"))
    redirect(back, 301, Link(there.url, "redirect", "absolute"))


@oddity("redirect-self", hops=1)
def itself(graft: Graft) -> None:
    page = graft.add(graft.anchor, "/parado")
    redirect(page, 307, Link(page.url, "redirect", "rooted"))


@oddity("redirect-elsewhere", hops=1)
def elsewhere(graft: Graft) -> None:
    page = graft.add(graft.anchor, "/parceiro")
    redirect(page, graft.rng.choice(STATUSES), Link(graft.elsewhere.url, "redirect", "absolute"))


@oddity("redirect-out-of-scope", hops=1)
def out_of_scope(graft: Graft) -> None:
    page = graft.add(graft.anchor, "/saida")
    redirect(page, 302, Link(None, "redirect", raw="http://example.invalid/", why="out-of-scope"))


@oddity("redirect-without-location", hops=1)
def without_location(graft: Graft) -> None:
    redirect(graft.add(graft.anchor, "/sem-rumo"), 302, None)


@oddity("redirect-unparsable", hops=1)
def unparsable(graft: Graft) -> None:
    page = graft.add(graft.anchor, "/rumo-torto")
    redirect(page, 301, Link(None, "redirect", raw="http://[::1", why="unparsable"))
