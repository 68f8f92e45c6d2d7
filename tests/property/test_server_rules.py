"""The rules about a whole server on arrays against a model that walks over URLs one by one."""

from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from contract.url_paths import hash_texts, path_levels
from stages.verifier import prefixes
from stages.verifier.prefixes import FOLDER, KEPT, PREFIXES, PREFIXES_MAX, QUERY, TREE
from stages.verifier.rules import RULES, TREE_TIMES, Limits, NewRows, judge_new
from tests.sampling import sampling

SEED = 0xC0FFEE_0000_0000_0001
LIMIT = st.one_of(st.just(0), st.integers(1, 6))
ANY_LIMITS = st.builds(Limits, LIMIT, LIMIT, st.integers(0, 12), LIMIT, LIMIT)
SEGMENT = st.one_of(st.sampled_from(["a", "b", "", "calendar", "x" * 9]), st.text("ab%.-", max_size=20))
QUERY_TEXT = st.one_of(st.just(""), st.text("a/?=&", min_size=1, max_size=6).map("?".__add__))
PATH = st.builds(lambda segments, query: "/" + "/".join(segments) + query, st.lists(SEGMENT, max_size=5), QUERY_TEXT)
HOSTS = ["http://a.test", "https://a.test:8080", "http://b.test", "http://[2001:db8::1]", "http://x"]
KEY = st.one_of(st.integers(0, 2**64 - 1), st.sampled_from([0, 1, 2**63, 2**64 - 1]))


def hash_of(text: str) -> int:
    data = np.frombuffer(text.encode(), np.uint8)
    return int(hash_texts(data, np.array([0]), np.array([len(data)]), SEED)[0])


def prefixes_of(url: str) -> dict[int, str]:
    """What a URL counts under, in the order in which it is judged."""
    path, mark, _ = url[url.index("/", 8) :].partition("?")
    found = {QUERY: path} if mark else {}
    begins = [place for place in range(len(path) - 1) if path[place] == "/" and path[place + 1] != "/"]
    if len(begins) >= 2:
        found[FOLDER] = path[: begins[min(len(begins) - 1, 2)]]
    if len(begins) >= 3:
        found[TREE] = path[: begins[1]]
    return found


class Model:
    """The same rules on one row after the other; `counts` is the table: [count, began]."""

    def __init__(self, servers: int, domains: list[int], limits: Limits):
        self.known = [0] * servers
        self.domains, self.limits = domains, limits
        self.counts: dict[tuple[int, int], dict[int, list[int]]] = defaultdict(dict)

    def judge(self, rows: list[tuple[int, int, int, str]]) -> list[str]:
        """Of rows (server, depth, key, url), the rule that refuses each."""
        limits, verdict = self.limits, [""] * len(rows)
        arrivals = Counter(server for server, *_ in rows)
        watched = {
            server
            for server in range(len(self.known))
            if self.known[server] + arrivals[server] >= limits.prefix_from_urls
            or any(self.counts.get((server, kind)) for kind in range(3))
        }
        order = sorted(range(len(rows)), key=lambda place: rows[place][:3])
        under = [
            {kind: hash_of(text) for kind, text in prefixes_of(url).items()} if server in watched else {}
            for server, _, _, url in rows
        ]
        for kind, most, rule in (
            (QUERY, limits.query_max_urls, "query"),
            (FOLDER, limits.prefix_max_urls, "path_prefix"),
            (TREE, limits.prefix_max_urls * TREE_TIMES, "path_prefix"),
        ):
            taken = Counter()
            for place in order:
                group = rows[place][0], under[place].get(kind)
                if most and group[1] is not None and not verdict[place]:
                    count, began = self.begin(group[0], kind, group[1])
                    if began >= most or count - began + taken[group] >= most:
                        verdict[place] = rule
                    taken[group] += 1
        self.judge_budget(
            order, rows, verdict, lambda server: server, self.known, limits.server_max_urls, "server_budget"
        )
        of_domain = Counter()
        for server, known in enumerate(self.known):
            of_domain[self.domains[server]] += known
        order.sort(key=lambda place: (rows[place][1], rows[place][0], rows[place][2]))
        self.judge_budget(
            order,
            rows,
            verdict,
            lambda server: self.domains[server],
            of_domain,
            limits.domain_max_urls,
            "domain_budget",
        )
        self.count(rows, verdict, under)
        return verdict

    @staticmethod
    def judge_budget(order, rows, verdict, owner_of, known, most, rule):
        taken = Counter()
        for place in order:
            owner = owner_of(rows[place][0])
            if most and not verdict[place]:
                if known[owner] + taken[owner] >= most:
                    verdict[place] = rule
                taken[owner] += 1

    def begin(self, server: int, kind: int, prefix: int) -> list[int]:
        counts = self.counts.get((server, kind), {})
        floor = min(counts.values())[0] if len(counts) == KEPT[kind] else 0
        return counts.get(prefix, [floor, floor])

    def count(self, rows, verdict, under) -> None:
        limit_of = {
            QUERY: self.limits.query_max_urls,
            FOLDER: self.limits.prefix_max_urls,
            TREE: self.limits.prefix_max_urls,
        }
        granted = Counter()
        for (server, *_), rule, found in zip(rows, verdict, under):
            self.known[server] += not rule
            for kind, prefix in found.items():
                if not rule and limit_of[kind]:
                    granted[server, kind, prefix] += 1
        begins = {group: self.begin(*group) for group in granted}
        for group, more in granted.items():
            count, began = begins[group]
            self.counts[group[:2]][group[2]] = [count + more, began]
        for (_, kind), counts in self.counts.items():
            for prefix in sorted(counts, key=lambda prefix: (-counts[prefix][0], prefix))[KEPT[kind] :]:
                del counts[prefix]

    def table(self) -> list[tuple[int, ...]]:
        return sorted(
            (*owner, prefix, *numbers) for owner, counts in self.counts.items() for prefix, numbers in counts.items()
        )


def columns_of(rows, kind=pa.string()) -> NewRows:
    server, depth, key, urls = zip(*rows) if rows else ((), (), (), ())
    return NewRows(
        np.array(server, np.uint32), np.array(key, np.uint64), np.array(depth, np.uint8), pa.array(urls, kind)
    )


def rows_of(table: prefixes.Prefixes) -> list[tuple[int, ...]]:
    return list(zip(*(getattr(table, name).tolist() for name in PREFIXES.names)))


def run_merges(merges, domains, limits, text=pa.string()):
    """Judges the merges one after the other, on arrays and in the model, which have to agree after each."""
    model, table = Model(len(domains), domains, limits), prefixes.empty()
    for rows in merges:
        known = np.array(model.known, np.uint32)
        codes, table = judge_new(columns_of(rows, text), known, np.array(domains, np.uint64), table, limits, SEED)
        assert codes.dtype == np.uint8
        assert [RULES[code] for code in codes.tolist()] == model.judge(rows)
        assert rows_of(table) == model.table()
        assert max(np.bincount(table.server), default=0) <= PREFIXES_MAX
    return model, table


@st.composite
def merges(draw, path=PATH, sizes=st.integers(0, 25)):
    found = []
    for _ in range(draw(st.integers(1, 4))):
        size = draw(sizes)
        keys = draw(st.lists(KEY, min_size=size, max_size=size, unique=True))
        found.append(
            [
                (
                    server := draw(st.integers(0, 4)),
                    draw(st.sampled_from([0, 1, 1, 2, 255])),
                    key,
                    HOSTS[server] + draw(path),
                )
                for key in keys
            ]
        )
    return found


@settings(max_examples=sampling.examples(300))
@given(
    merges(),
    st.lists(st.sampled_from([0, 7, 2**64 - 1]), min_size=5, max_size=5),
    ANY_LIMITS,
    st.sampled_from([pa.string(), pa.large_string()]),
)
def test_arrays_agree_with_the_model(found, domains, limits, text):
    run_merges(found, domains, limits, text)


@settings(max_examples=sampling.examples(30))
@given(st.randoms(use_true_random=False), st.integers(1, 40), st.integers(0, 60), st.integers(20, 300))
def test_more_prefixes_than_a_server_keeps(random, prefix_max, from_urls, variety):
    """Several merges of a server with many folders, trees and queries, some heavy and most light."""
    found, key = [], 0
    for _ in range(4):
        rows = []
        for _ in range(random.randrange(200)):
            key += 1
            number = min(random.randrange(variety), random.randrange(variety))
            url = HOSTS[server := random.randrange(2)] + random.choice(
                ["/{}/p", "/{}/s/p", "/t/{}/p", "/q{}?1", "/f/q{}?2"]
            ).format(number)
            rows.append((server, random.randrange(3), key, url))
        found.append(rows)
    run_merges(found, [1, 1], Limits(0, 0, from_urls, prefix_max, prefix_max))


@settings(max_examples=sampling.examples(100))
@given(merges(), ANY_LIMITS, st.randoms(use_true_random=False))
def test_the_order_of_rows_says_nothing(found, limits, random):
    rows = [row for part in found for row in part]
    rows = list({key: row for row in rows for key in [row[2]]}.values())
    shuffled = random.sample(rows, len(rows))
    known, domains = np.array([3, 0, 0, 9, 0], np.uint32), np.array([1, 1, 2, 2, 2])
    told = []
    for order in (rows, shuffled):
        codes, table = judge_new(columns_of(order), known, domains, prefixes.empty(), limits, SEED)
        told.append((dict(zip([row[2] for row in order], codes.tolist())), rows_of(table)))
    assert told[0] == told[1]


@settings(max_examples=sampling.examples(300))
@given(st.lists(st.builds("{}{}".format, st.sampled_from(HOSTS), PATH), max_size=30), st.integers(0, 5))
def test_levels_are_those_of_plain_python(urls, skipped):
    """Also of a slice, and of several chunks."""
    want = [len([part for part in url[url.index("/", 8) :].partition("?")[0].split("/") if part]) for url in urls]
    assert path_levels(pa.array(urls, pa.string())).tolist() == want
    assert path_levels(pa.array(urls, pa.large_string())[skipped:]).tolist() == want[skipped:]
    assert path_levels(pa.chunked_array([urls[:skipped], urls[skipped:]], pa.string())).tolist() == want


@settings(max_examples=sampling.examples(200))
@given(st.lists(st.binary(max_size=40), min_size=1, max_size=20), st.integers(0, 2**64 - 1))
def test_a_hash_is_that_of_the_bytes_wherever_they_lie(texts, seed):
    ends = np.cumsum([len(text) for text in texts])
    starts = ends - [len(text) for text in texts]
    together = hash_texts(np.frombuffer(b"".join(texts), np.uint8), starts, ends, seed).tolist()
    alone = [
        int(hash_texts(np.frombuffer(text, np.uint8), np.array([0]), np.array([len(text)]), seed)[0]) for text in texts
    ]
    assert together == alone
    assert len(set(together)) == len(set(texts))
