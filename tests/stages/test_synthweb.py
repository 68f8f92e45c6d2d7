"""Judges the judge: the web of synthweb is what it says."""

import subprocess
import sys
from collections import Counter

import ada_url
import pytest
from protego import Protego

from synthweb import Rules, Web
from synthweb.growth import LEVEL_MAX
from synthweb.markup import href
from synthweb.oddities import ODDITIES
from synthweb.page import FOLLOWED_KINDS, IGNORED_KINDS
from synthweb.robots import BARRED, LATE, NEVER, ORDINARY
from synthweb.spelling import EXTRAS, FORMS
from tests.served_web import AGENT, ROOT, SMALL_SERVERS, canonical


@pytest.fixture(scope="module")
def default_web():
    return Web(seed=1)


@pytest.fixture(scope="module")
def default_walk(default_web):
    return default_web.walk()


# --- the same seed, the same web ---------------------------------------------------------------------------


def bytes_of(web: Web) -> list:
    return [web.answer(page.url.host, target) for s in web.servers.values() for target, page in s.pages.items()]


def test_the_same_seed_gives_the_same_bytes():
    code = "import hashlib, synthweb; w = synthweb.Web(5, 30); print(sorted(w.truth())[9], hashlib.sha256(repr("
    code += "[w.answer(s.host, t) for s in w.servers.values() for t in s.pages]).encode()).hexdigest())"
    runs = [
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, env={"PYTHONHASHSEED": seed}, capture_output=True)
        for seed in ("1", "2")
    ]
    assert runs[0].stdout == runs[1].stdout != b""


def test_another_seed_gives_another_web():
    assert Web(5, 30).truth() != Web(6, 30).truth()
    assert set(Web(5, 30).hosts().values()).isdisjoint(Web(6, 30).hosts().values())


def test_another_port_changes_only_the_port():
    web = Web(5, 30, port=8080)
    moved = web.at_port(8081)
    assert {url.replace(":8081", ":8080") for url in moved.truth()} == web.truth()
    assert all(url.startswith("http://") and url.count(":") == 1 for url in web.at_port(80).seeds())
    assert bytes_of(web.at_port(8081)) == bytes_of(Web(5, 30, port=8081))


# --- what the default web holds ----------------------------------------------------------------------------


def test_the_default_web_has_its_size_and_depth(default_walk):
    collected = default_walk.collected
    assert 3_500 <= len(collected) <= 4_500
    depths = Counter(collected.values())
    assert max(depths) == LEVEL_MAX == 7
    assert depths[6] + depths[7] >= 100
    sizes = sorted(Counter(url.split("/")[2] for url in collected).values(), reverse=True)
    assert 300 <= sizes[0] <= 450
    assert sum(size >= 200 for size in sizes) >= 3
    assert sum(size <= 5 for size in sizes) >= 100


@pytest.mark.parametrize("servers", [3, 5, 12, 40, 100])
def test_every_size_has_its_full_depth_and_no_more(servers):
    for seed in (1, 2):
        web = Web(seed, servers)
        collected = web.walk().collected
        assert max(collected.values()) == LEVEL_MAX
        assert set(web.seeds()) <= set(collected)


def test_every_live_server_is_reached_and_only_those(default_web, default_walk):
    hosts = {ada_url.URL(url).hostname for url in default_walk.collected}
    never = {"refused", "nameless", "silent", "robots-never", "barred"}
    assert hosts == {host for host, server in default_web.servers.items() if server.role not in never}


def test_fates_do_not_overlap(default_web, default_walk):
    walk = default_walk
    fates = [set(walk.collected), walk.forbidden, walk.unasked, walk.failing, set(walk.refused)]
    assert sum(map(len, fates)) == len(set().union(*fates))
    assert all(fates)
    assert default_web.forbidden() == walk.forbidden


def test_every_rule_refuses_something_and_can_be_changed():
    web = Web(2, SMALL_SERVERS)
    walk = web.walk()
    rules = {"url_length_max", "path_depth_max", "segment_repeats_max", "excluded_extensions"}
    assert set(walk.refused.values()) == rules
    assert web.truth(Rules(excluded_extensions=())) > set(walk.collected)
    assert max(map(len, web.truth(Rules(url_length_max=60)))) <= 60


# Oddities that only add links: to nothing, or to what is made on the fly.
WITHOUT_PAGES = ("404", "length-bound", "depth-bound", "trap-calendar", "trap-mirror", "trap-session")

FEATURES = [
    *(f"page:{oddity.name}" for oddity in ODDITIES if oddity.name not in WITHOUT_PAGES),
    *("trap:calendar", "trap:mirror", "trap:session"),
    *(f"form:{form}" for form in FORMS),
    *(f"extra:{extra}" for extra in EXTRAS),
    *(f"link:{kind}" for kind in FOLLOWED_KINDS | IGNORED_KINDS),
    *(f"why:{why}" for why in ("out-of-scope", "other-scheme", "unparsable")),
    *(f"robots:{robots.name}" for robots in (*ORDINARY, LATE, NEVER, BARRED)),
    *(f"charset:{charset}" for charset in ("utf-8", "iso-8859-1", "windows-1251", "shift_jis")),
    *(f"declared:{way}" for way in ("header", "meta", "http-equiv", "bom")),
    *(f"framing:{framing}" for framing in ("length", "chunked", "close")),
    *(f"status:{status}" for status in (200, 301, 302, 303, 307, 308, 403, 410)),
    *(f"shape:{shape}" for shape in ("page", "frameset", "broken", "empty", "text", "message")),
    *(f"role:{role}" for role in ("slow", "refused", "nameless", "silent", "robots-late", "robots-never", "barred")),
    *(f"role:{role}" for role in ("recovers-once", "recovers-twice", "too-many-requests", "fails-forever")),
    *("gzip", "connection-close", "native-path", "subdomain", "shared-address"),
]  # fmt: skip


def test_every_kind_of_thing_occurs_in_the_default_web(default_web):
    census = default_web.census()
    assert [feature for feature in FEATURES if not census[feature]] == []


def test_oddities_are_collected_not_only_there(default_web, default_walk):
    collected = default_walk.collected
    features, statuses = set(), Counter()
    for url in collected:
        parts = ada_url.URL(url)
        page = default_web.servers[parts.hostname].page(parts.pathname + parts.search)
        statuses[page.status] += 1
        features.add(page.feature)
    pageless = {"length-bound", "depth-bound"}  # their URLs are 404s
    assert features >= {oddity.name for oddity in ODDITIES} - pageless
    assert features >= {"robots-probe", "behind-robots-probe", "recovers-once", "recovers-twice", "too-many-requests"}
    assert statuses[404] >= 10
    assert {len(url) for url in collected} >= {200} and max(map(len, collected)) == 200


def test_failing_urls_stand_alone(default_web):
    """A server may fail twice in a row: one failing URL a live server, and none where robots.txt fails."""
    for server in default_web.servers.values():
        failing = [page for page in server.pages.values() if page.failures]
        assert len(failing) + bool(server.robots.failures) <= 1


# --- links, against the standard's own parser --------------------------------------------------------------


@pytest.mark.parametrize("port", [8080, 80])
def test_every_way_of_writing_leads_to_its_target(default_web, port):
    for server in default_web.servers.values():
        for page in server.pages.values():
            base = page.base_url().text(port)
            for link in page.links:
                text = href(link, page, port)
                if link.target is not None:
                    assert canonical(text, base) == link.target.text(port), (text, base)
                elif link.why == "unparsable":
                    assert canonical(text, base) is None, text
                else:
                    assert not Rules().admits(canonical(text, base)), text


def test_copies_have_the_same_bytes(default_web):
    by_key: dict[str, list] = {}
    for server in default_web.servers.values():
        for page in server.pages.values():
            by_key.setdefault(page.key, []).append(page)
    copies = [pages for pages in by_key.values() if len(pages) > 1]
    assert copies
    for pages in copies:
        assert len({default_web.answer(page.url.host, page.url.target()).body for page in pages}) == 1


def test_robots_agree_with_another_reader():
    for robots in (*ORDINARY, LATE, BARRED):
        reader = Protego.parse(robots.text())
        for path, query in (*robots.probes, ("/", ""), ("/artigos/1/", "")):
            target = path + ("?" + query if query else "")
            assert robots.allows(target) == reader.can_fetch(f"http://s1.test{target}", AGENT), (robots.name, target)
