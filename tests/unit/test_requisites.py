"""Requisites: what a page needs is followed to any host, unless a rule rejects it; pages of those hosts are not."""

from dataclasses import replace

import pytest

from contract.config import Config
from contract.config_check import from_tables
from contract.errors import BadConfiguration
from contract.scope.requisites import HOPS_MORE
from tests.extractor_lab import PAGE, judge_answer, read_answer

KINDS = ("image", "style", "script", "media", "object", "frame")
LAST = 2  # hops_max


def archiving(**scope) -> Config:
    config = Config()
    rules = {"accept_domains": ("example.com",), "reject_extensions": ("zip",), "reject_domains": ("rejected.org",)}
    documents = (*config.extractor.documents, "inline_styles")
    return replace(
        config,
        extractor=replace(config.extractor, requisites=KINDS, documents=documents),
        scope=replace(config.scope, **{**rules, "hops_max": LAST, **scope}),
    )


def followed(
    body: str,
    kind: str = "text/html",
    *headers: str,
    config: Config | None = None,
    url: str = PAGE,
    depth: int = 1,
    status: int = 200,
) -> list[str]:
    config = config or archiving()
    answer = read_answer(body, kind, *headers, status=status, url=url, config=config)
    judged = judge_answer(answer, url=url, depth=depth, config=config)
    return [target for target, is_followed in zip(judged.urls, judged.followed) if is_followed]


@pytest.mark.parametrize(
    "html",
    [
        "<img src={}>",
        "<img srcset='{} 2x'>",
        "<link rel=stylesheet href={}>",
        "<link rel=icon href={}>",
        "<script src={}></script>",
        "<video src={}></video>",
        "<video poster={}></video>",
        "<audio><source src={}></audio>",
        "<object data={}></object>",
        "<embed src={}>",
        "<iframe src={}></iframe>",
        "<body background={}>",
        "<svg><use href={} /></svg>",
        "<svg><image xlink:href={} /></svg>",
        "<noscript><img src={}></noscript>",
        "<style>@import '{}';</style>",
        "<style>p {{background: url({})}}</style>",
        "<p style=\"background: URL('{}')\">",
        "<template><p style='background: url({})'></template>",
    ],
)
def test_what_a_page_needs_is_followed_to_any_host(html):
    target = "http://other.org/x"
    page = html.format(target)
    assert followed(page) == followed(page, depth=0) == [target]
    assert followed(page, config=replace(archiving(), extractor=Config().extractor)) == []


@pytest.mark.parametrize(
    "html",
    [
        "<a href={}>",
        "<area href={}>",
        "<link rel=next href={}>",
        "<link rel=preconnect href={}>",
        "<meta http-equiv=refresh content='0;url={}'>",
        "<form action={}></form>",
        "<q cite={}></q>",
    ],
)
def test_pages_of_other_hosts_are_not(html):
    assert followed(html.format("http://other.org/x")) == []


def test_a_style_needs_styles_images_and_fonts():
    sheet = "@import 'a.css'; @font-face {src: url(//fonts.org/f.woff2)} p {background: url('i.png')}"
    expected = ["http://other.org/s/a.css", "http://fonts.org/f.woff2", "http://other.org/s/i.png"]
    assert followed(sheet, "text/css", url="http://other.org/s/sheet.css") == expected


@pytest.mark.parametrize(
    "target, scope",
    [
        ("http://rejected.org/x", {}),
        ("http://other.org/x.zip", {}),
        ("http://other.org/a/a/a/a/x", {}),
        ("http://other.org/x", {"reject_surts": ("org,other,",)}),
        ("http://other.org/x", {"reject_patterns": ("other",)}),
        ("http://other.org/?" + "x" * 2_000, {}),
    ],
    ids=["domain", "extension", "repeats", "surt", "pattern", "length"],
)
def test_rules_that_reject_hold(target, scope):
    assert followed(f"<img src='{target}'><img src=/y>", config=archiving(**scope)) == ["http://example.com/y"]


def test_a_frame_of_another_host_leads_to_its_requisites_and_into_the_scope():
    html = "<img src=i.png><iframe src=f></iframe><a href=page></a><a href=http://example.com/back></a>"
    expected = ["http://example.com/back", "http://other.org/i.png", "http://other.org/f"]
    assert followed(html, url="http://other.org/frame") == expected


@pytest.mark.parametrize(
    "url, depth, is_followed",
    [
        ("http://other.org/x", 1, True),
        ("http://example.com/x.png", 1, True),
        ("http://example.com/x", 1, False),
        ("http://other.org/x", 0, False),
    ],
    ids=["a requisite of another host", "a requisite by its extension", "a page", "a seed out of scope"],
)
def test_where_a_requisite_redirects_is_a_requisite(url, depth, is_followed):
    found = followed("", "text/html", "Location: http://third.org/y", url=url, depth=depth, status=302)
    assert found == ["http://third.org/y"] * is_followed


def test_the_last_pages_have_their_requisites_too():
    html = "<a href=next></a><img src=//other.org/x>"
    assert followed(html, depth=LAST) == ["http://other.org/x"]
    assert followed(html, depth=LAST + HOPS_MORE) == []
    assert len(followed(html, depth=254, config=archiving(hops_max=255))) == 2


def test_nofollow_is_obeyed():
    assert followed("<meta name=robots content=nofollow><img src=//other.org/x>") == []


def test_an_unknown_kind_is_an_error():
    with pytest.raises(BadConfiguration, match="requisites"):
        from_tables({"extractor": {"requisites": ["blink"]}}, "test")
