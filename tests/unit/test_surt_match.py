"""Rules by SURT prefix or pattern: which one many URLs fall under."""

import numpy as np
import pyarrow as pa
import pytest

from contract.config import RULES_MAX, Priority
from contract.surt import SurtPrefixes
from contract.surt_match import find_rules
from contract.url import server_of

URLS = [
    "http://www.ufmg.br/",
    "https://www.ufmg.br/ensino/x?y=1",
    "http://ufmg.br/ensinos",
    "http://www.ufmg.br:8080/ensino",
    "http://www.ufmgx.br/ensino",
    "http://dcc.www.ufmg.br/feed",
    "http://192.0.2.1/ensino",
    "http://[2001:db8::1]/",
    "http://[2001:db8::1]:81/",
    "http://br/",
    "http://a,b.br/",
    "https://example.org/?",
]
SURTS = [
    "br,", "br,ufmg,", "br,ufmg", "br,ufmg,www)/", "br,ufmg,www)/ensino", "br,ufmg,www:8080)/", "192.0.2.1)/",
    "192.0.2.1)/ens", "[2001:db8::1])/", "[2001:db8::1]:81)/", "http://(br,ufmg,www,)/ensino", "org,example)/?", "com,",
]  # fmt: skip


def lines_of(urls) -> pa.LargeBinaryArray:
    return pa.array([f"{url}\n".encode() for url in urls], pa.large_binary())


def numbers(urls, *rules: Priority) -> list[int]:
    found = find_rules(lines_of(urls), rules)
    assert found.dtype == np.uint8
    return found.tolist()


@pytest.mark.parametrize("surt", SURTS)
def test_a_prefix_takes_what_the_scope_takes(surt):
    """The same prefixes are in accept_surts, whose judge asks about a server first."""
    prefixes = SurtPrefixes([surt])
    wanted = [
        prefixes.takes_server(server_of(url))
        or url[len(server_of(url)) :].startswith(prefixes.paths_of(server_of(url)))
        for url in URLS
    ]
    assert numbers(URLS, Priority(surt=surt)) == wanted


def test_the_first_rule_that_fits_counts():
    rules = [
        Priority(pattern="/feed$"),
        Priority(surt="br,ufmg,www)/ensino"),
        Priority(pattern="ufmg"),
        Priority(surt="br,ufmg,"),
        Priority(surt="br,"),
    ]
    assert numbers(URLS, *rules) == [3, 2, 3, 3, 3, 1, 0, 0, 0, 5, 5, 0]
    assert numbers(URLS, *reversed(rules)) == [1, 1, 1, 1, 1, 1, 0, 0, 0, 1, 1, 0]
    assert numbers(URLS[1:2], Priority(surt="br,"), Priority(surt="br,ufmg,www)/ensino")) == [1]


def test_each_rule_agrees_with_the_same_rule_alone():
    rules = [Priority(surt=surt) for surt in SURTS] + [Priority(pattern=text) for text in ("ensino", r"\d", "/$")]
    alone = np.array([numbers(URLS, rule) for rule in rules], bool)
    first = np.where(alone.any(axis=0), alone.argmax(axis=0) + 1, 0)
    assert numbers(URLS, *rules) == first.tolist()


def test_no_url_and_no_rule():
    assert numbers([], Priority(surt="br,")) == [] and numbers(URLS) == [0] * len(URLS)


def test_as_many_rules_as_there_may_be():
    rules = [Priority(surt=f"br,site{number})/") for number in range(RULES_MAX)]
    assert numbers(["http://site0.br/", "http://site254.br/x", "http://site255.br/"], *rules) == [1, 255, 0]


def test_text_that_is_no_ascii_falls_under_no_prefix():
    lines = pa.array([b"http://\xff\xfe.br/\xff\n", b"http://a.br/\xff\n"], pa.large_binary())
    assert find_rules(lines, [Priority(surt="org,"), Priority(surt="br,a)/\xfe")]).tolist() == [0, 0]
