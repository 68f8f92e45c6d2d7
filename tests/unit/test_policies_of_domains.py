"""The policies that look at registered domains: new-domains and spread."""

import numpy as np

from contract.policies import new_domains, score_with_rules, spread
from tests.unit.test_policies import candidates, config_of, feature, order_of, urls_of

# new-domains.


def promise(*urls: str, **settings) -> list[int]:
    return feature("promise", urls_of(config_of("new-domains", **settings), *urls))


def test_a_promise_falls_with_length_and_path_segments():
    urls = ["http://a.org/", "http://a.org/x", "http://a.org/xyz", "http://a.org/x/y", "http://long-name.org/x/y/z"]
    assert promise(*urls) == [1987, 1936, 1934, 1884, 1824]
    assert promise(f"http://a.org/{'x/' * 900}", f"http://a.org/?{'x' * 1900}") == [1, 1300]


def test_bonus_and_penalty_patterns():
    assert promise("http://a.br/") == [2388] and promise("http://a.br/", bonus_patterns=()) == [1988]
    assert promise("http://a.br:81/", "http://a.org/x.br/") == [2385, 1932]
    assert promise("http://a.org/~b", penalty_patterns=()) == [1935] and promise("http://a.org/~b") == [1735]
    assert promise("http://a.org/~12345?ABCDEFGH=1") == [2000 - 30 - 50 - 200]  # once, however many are found


def test_domains_with_the_most_mentions_come_first_then_the_most_promising_url():
    servers = {"domain_key": [1, 1, 2, 3], "mentions": [2, 3, 4, 0]}
    of = candidates(
        config_of("new-domains"), server=[0, 1, 2, 2, 3], servers=servers, promise=[1900, 1950, 2400, 1, 2400]
    )
    assert order_of(of) == [1, 0, 2, 3, 4]


def test_mentions_are_told_apart_up_to_256_and_to_a_hundredth_beyond():
    mentions = np.concatenate([np.arange(257), 262 * 1.01 ** np.arange(1200)])
    servers = {"domain_key": np.arange(len(mentions)), "mentions": mentions}
    of = candidates(config_of("new-domains"), np.arange(len(mentions)), servers, promise=np.full(len(mentions), 2400))
    assert (np.diff(score_with_rules(of).astype(np.int64)) > 0).all()


def test_a_domain_goes_on_while_two_to_the_i_is_at_most_n():
    visited, links = np.meshgrid(np.arange(70), [0, 1, 2, 3, 4, 7, 8, 1000, 2**32 - 1])
    closed = new_domains.close_domains(visited.ravel(), links.ravel())
    assert closed.tolist() == [2 ** int(i) > int(n) for i, n in zip(visited.ravel(), links.ravel())]
    assert new_domains.close_domains(np.array([1, 1]), np.array([1, 2])).tolist() == [True, False]


# spread.


def with_hash(number: int, count: int) -> np.ndarray:
    """Domain keys of one hash value."""
    return (np.arange(count) * spread.HASHES + number).astype(np.uint64)


def frozen(domain_keys, *, levels=None, memory=None) -> list[int]:
    levels = np.zeros(len(domain_keys), int) if levels is None else levels
    lines = [f"http://a.br/{'x/' * level}" for level in levels]
    given = urls_of(config_of("spread"), *lines, memory=memory if memory is not None else {})
    given.domain_key = np.asarray(domain_keys, np.uint64)
    return feature("spread", given)


def test_f_is_a_hundred_times_those_before_and_the_components():
    keys = np.concatenate([with_hash(5, 2), with_hash(256, 1), with_hash(5, 1), with_hash(0, 1)])
    assert frozen(keys, levels=[3, 0, 1, 2, 0]) == [3, 100, 1, 202, 0]
    assert frozen([spread.HASHES - 1, spread.HASHES * 9 - 1]) == [0, 100]


def test_m_goes_on_from_piece_to_piece_and_begins_with_what_the_block_knows():
    keys = np.random.default_rng(2).integers(0, 2**63, 3000).astype(np.uint64)
    memory: dict = {}
    pieces = [value for start in range(0, 3000, 700) for value in frozen(keys[start : start + 700], memory=memory)]
    assert pieces == frozen(keys)
    known = {spread.KNOWN: (np.array([5, 5 + spread.HASHES, 6]), np.array([10, 20, 7], np.uint32))}
    assert frozen([5, 6, 7, 5], memory=known) == [3000, 700, 0, 3100]


def test_spread_takes_the_smallest_first_far_beyond_a_million_urls():
    of = candidates(config_of("spread"), spread=[2**32 - 1, 100, 3, 2**24, 2**24 + 1, 0])
    assert order_of(of) == [5, 2, 1, 3, 4, 0]


def test_f_beyond_32_bits_is_the_largest():
    known = {spread.KNOWN: (np.array([5]), np.array([2**32 - 1], np.uint32))}
    assert frozen([5], memory=known) == [2**32 - 1]
