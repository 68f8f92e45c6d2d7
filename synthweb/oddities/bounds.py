"""URLs at the edge of the rules: traps, the last length and depth that pass, extensions that do not."""

from synthweb.oddities.graft import Graft, oddity
from synthweb.page import Link, Page
from synthweb.traps import ENTRIES, HOPS, Trap
from synthweb.url import Url

EXCLUDED = ("/foto.jpg", "/fita.MP4", "/pacote.tar.gz", "/tese.pdf", "/caixa.zip")
# None of these has an excluded extension: it is not in the path, not in the last segment, or not at its end.
LOOKALIKES = (("/ver", "arquivo=a.jpg"), ("/foto.jpg/vista", ""), ("/foto.jpg.html", ""), ("/jpg", ""))


def _trap(name: str) -> None:
    def grow(graft: Graft) -> None:
        if any(trap.name == name for trap in graft.server.traps):
            return
        graft.server.traps.append(Trap(name, ENTRIES[name]))
        graft.anchor.links.append(Link(Url(graft.server.host, ENTRIES[name])))

    oddity(f"trap-{name}", hops=HOPS[name])(grow)


for _name in ENTRIES:
    _trap(_name)


@oddity("excluded-extension", hops=1)
def excluded_extension(graft: Graft) -> None:
    for path in EXCLUDED:
        graft.anchor.links.append(Link(graft.url(f"/arquivos{path}")))
    for path, query in LOOKALIKES:
        graft.add(graft.anchor, f"/arquivos{path}", query)


@oddity("length-bound", hops=1)
def length_bound(graft: Graft) -> None:
    """200 and 201 characters on a port of four digits; just inside or outside on others."""
    page: Page = graft.anchor
    for length in (200, 201):
        start = Url(graft.server.host, f"/longo/{graft.number}-{length}-")
        padding = length - len(start.text(port=8080))
        page.links.append(Link(Url(start.host, start.path + "l" * padding), form="absolute"))


@oddity("depth-bound", hops=1)
def depth_bound(graft: Graft) -> None:
    """Eight segments and nine; a segment twice and three times."""
    for path in ("/f/u/n/d/o/a/b/8", "/f/u/n/d/o/a/b/c/9", "/eco/eco/2", "/eco/eco/eco/3"):
        graft.anchor.links.append(Link(graft.url(path)))


@oddity("same-twice", hops=1)
def same_twice(graft: Graft) -> None:
    """One target linked again and again on one page, once with nofollow: it is still to be followed."""
    page = graft.add(graft.anchor, "/de-novo")
    back = graft.anchor.url
    page.links += [Link(page.url), Link(back, rel="nofollow"), Link(back), Link(back)]
    graft.anchor.links.append(Link(page.url, extra="fragment", form="absolute"))
