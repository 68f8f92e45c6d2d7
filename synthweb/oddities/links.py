"""Links: every way of writing them, every element that carries them, and those that must not be followed."""

from synthweb.oddities.graft import Graft, oddity
from synthweb.page import Link
from synthweb.spelling import ABSOLUTE_FORMS, EXTRAS, LOCAL_FORMS
from synthweb.url import Url

NOFOLLOW_RELS = ("nofollow", "NoFollow", "external nofollow", "nofollow\nnoopener", "ugc  NOFOLLOW")
NOFOLLOW_METAS = ("nofollow", "noindex, nofollow", "NOINDEX,NOFOLLOW")

OUT_OF_SCOPE = (
    "http://example.invalid/",
    "https://www.example.invalid/a?b=c",
    "http://127.0.0.9/",
    "http://s1.test.example.invalid/",
    "//atest/",
    "http://[::1]/",
    "http://0x7f000009/",
)
OTHER_SCHEMES = (
    "mailto:alguem@s1.test",
    "javascript:void(0)",
    "ftp://s1.test/arquivo",
    "data:text/html,<a href='/nunca-por-data'>x</a>",
    "tel:+55-31-0000",
    "JavaScript:history.back()",
    "foo:bar",
)
UNPARSABLE = ("http://[::1", "http://a b/", "http://s1.test:99999/", "http://", "http://a<b/", "http://%zz/", "//[x]/")


@oddity("every-form", hops=2)
def every_form(graft: Graft) -> None:
    """One page with each form and each extra, every one to a page of its own."""
    page = graft.add(graft.anchor, "/formas/todas/lista")
    for form in ABSOLUTE_FORMS + LOCAL_FORMS[:2]:
        child = graft.lay(page, f"/formas/{form}/fim")
        page.links.append(Link(child.url, form=form))
    for extra in EXTRAS:
        path, query = f"/formas/todas/{extra}", ""
        if extra == "percent-encoded":
            path = f"/formas/{graft.native()}/{graft.native()}"
        if extra == "bare-ampersand":
            query = "pg=1&tema=2"
        page.links.append(Link(graft.lay(page, path, query).url, form="relative", extra=extra))
    page.links.append(Link(page.url, form="same-page"))
    sibling = Url(page.url.host, page.url.path, "pg=2&tema=3")
    page.links.append(Link(sibling, form="query-only"))  # nothing lies there: a 404, one level down


@oddity("native-paths", hops=2)
def native_paths(graft: Graft) -> None:
    """Raw characters of the page's charset in paths; the standard encodes them as UTF-8 whatever the charset."""
    page = graft.add(graft.anchor, f"/{graft.native()}/{graft.native()}")
    for form in ("relative", "rooted", "absolute"):
        child = graft.lay(page, f"/{graft.native()}/{form}-{graft.native()}")
        page.links.append(Link(child.url, form=form))


@oddity("base-rooted", hops=2)
def base_rooted(graft: Graft) -> None:
    _based(graft, graft.url("/outra/pasta/"), "rooted")


@oddity("base-relative", hops=2)
def base_relative(graft: Graft) -> None:
    _based(graft, graft.url("/base/mais/funda/"), "relative")


def _based(graft: Graft, base: Url, form: str) -> None:
    page = graft.add(graft.anchor, "/base/pagina", base=base, base_form=form)
    for name in ("x", "y"):
        child = graft.lay(page, f"{base.path}{name}")
        page.links.append(Link(child.url, form="relative"))
    page.links.append(Link(page.url, form="relative"))


@oddity("base-absolute", hops=1)
def base_absolute(graft: Graft) -> None:
    """A base that may lie on another server: a relative link then names a page of that server."""
    page = graft.add(graft.anchor, "/base/pagina", base=graft.elsewhere.url, base_form="absolute")
    page.links.append(Link(graft.elsewhere.url, form="relative"))
    page.links.append(Link(graft.elsewhere.url, form="same-page"))
    page.links.append(Link(graft.anchor.url, form="absolute"))


@oddity("elements", hops=2)
def elements(graft: Graft) -> None:
    """<area>, <iframe> and <meta refresh>, each the only way to its page."""
    page = graft.add(graft.anchor, "/elementos")
    for kind in ("area", "iframe", "refresh"):
        graft.add(page, f"/por/{kind}", kind=kind)


@oddity("frameset", hops=2)
def frameset(graft: Graft) -> None:
    page = graft.add(graft.anchor, "/quadros/", shape="frameset")
    graft.add(page, "/quadros/menu", kind="frame")
    graft.add(page, "/quadros/texto", kind="frame")


@oddity("not-followed", hops=1)
def not_followed(graft: Graft) -> None:
    """Elements that only load things, and text that only looks like a link."""
    page = graft.add(graft.anchor, "/enfeites")
    for kind in ("img", "script", "css", "hidden"):
        behind = graft.add(page, f"/nunca/{kind}", kind=kind)
        graft.add(behind, f"/nunca/atras/{kind}")


@oddity("nofollow-link", hops=1)
def nofollow_link(graft: Graft) -> None:
    page = graft.add(graft.anchor, "/avisos")
    for number, rel in enumerate(NOFOLLOW_RELS):
        behind = graft.add(page, f"/nunca/rel/{number}", kind="area" if number == 1 else "a", rel=rel)
        graft.add(behind, f"/nunca/rel/atras/{number}")


@oddity("nofollow-page", hops=1)
def nofollow_page(graft: Graft) -> None:
    page = graft.add(graft.anchor, "/calada", nofollow=graft.rng.choice(NOFOLLOW_METAS))
    graft.add(page, "/nunca/meta")


@oddity("out-of-scope", hops=1)
def out_of_scope(graft: Graft) -> None:
    page = graft.add(graft.anchor, "/amigos")
    page.links += [Link(None, raw=raw, why="out-of-scope") for raw in OUT_OF_SCOPE]


@oddity("other-schemes", hops=1)
def other_schemes(graft: Graft) -> None:
    page = graft.add(graft.anchor, "/contato")
    page.links += [Link(None, raw=raw, why="other-scheme") for raw in OTHER_SCHEMES]


@oddity("unparsable", hops=1)
def unparsable(graft: Graft) -> None:
    page = graft.add(graft.anchor, "/tortos")
    page.links += [Link(None, raw=raw, why="unparsable") for raw in UNPARSABLE]
