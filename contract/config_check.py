"""Tables of TOML into a Config: anything unexpected is an error that names the key and what was expected."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, fields
from difflib import get_close_matches
from typing import Any, TypeVar

from contract.config import ADDRESS_FAMILIES, NAMES, RULES, RULES_MAX, SECTIONS, Config, Scope, lookup
from contract.errors import BadConfiguration
from contract.patterns import BadPattern, check_pattern, check_together
from contract.policies import policy_of
from contract.policies.mix import BadMix
from contract.surt import parse_surt
from contract.url import NotCanonical, host_named

Value = TypeVar("Value")
REPLACED = {"order": "scheduler.policy", "prescheduled_by": "scheduler.policy"}  # keys of earlier versions
DAY_S = 86_400
SURTS, PATTERNS = "SURT prefixes, as in 'br,ufmg,' or 'br,ufmg,www)/ensino'", "regular expressions"


def from_tables(tables: Mapping[str, Any], source: str) -> Config:
    """`source` says in messages where the tables come from."""
    for name in tables:
        if name not in SECTIONS and name not in RULES:
            meant = suggest(name, [*SECTIONS, *NAMES]) or f"; expected one of {', '.join([*SECTIONS, *RULES])}"
            raise BadConfiguration(f"{source}: [{name}] is no section{meant}")
    parts: dict[str, Any] = {
        **{name: read_section(kind, tables.get(name, {}), f"{source}: [{name}]") for name, kind in SECTIONS.items()},
        **{name: read_rules(kind, tables.get(name, []), f"{source}: [[{name}]]") for name, kind in RULES.items()},
    }
    config = Config(**parts)
    check_scope(config.scope, source)
    check_rules(config, source)
    check_policy(config, source)
    check_pairs(config, source)
    return config


def read_section(kind: type[Any], table: Any, where: str) -> Any:
    if not isinstance(table, dict):
        raise BadConfiguration(f"{where}: expected a table, found {table!r}")
    known = {part.name: part for part in fields(kind)}
    for key in table:
        if key not in known:
            meant = suggest(key, known) or suggest(key, NAMES) or f"; expected one of {', '.join(known)}"
            raise BadConfiguration(f"{where} {key}: no such key{meant}")
    return kind(**{key: read_value(known[key], value, f"{where} {key}") for key, value in table.items()})


def read_rules(kind: type[Any], tables: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(tables, (list, tuple)) or len(tables) > RULES_MAX:
        raise BadConfiguration(f"{where}: expected at most {RULES_MAX} tables under this name, found {tables!r:.100}")
    return tuple(read_section(kind, table, f"{where}, rule {number}") for number, table in enumerate(tables, 1))


def suggest(name: str, known: Iterable[str]) -> str:
    """The end of a message: the nearest known name, or nothing. A key of another section is found by its last part."""
    if name in REPLACED:
        return f"; it was replaced by {REPLACED[name]}"
    by_end: dict[str, str] = {}
    for text in known:  # of two keys of one name the first counts
        by_end.setdefault(text.rpartition(".")[2], text)
    near = get_close_matches(name.rpartition(".")[2], by_end, n=1)
    return f"; did you mean {by_end[near[0]]}?" if near else ""


def read_value(part: Field[Any], value: Any, where: str) -> Any:
    default = part.default
    if isinstance(default, bool):
        return expect(value, isinstance(value, bool), where, "true or false")
    if isinstance(default, tuple):
        good = isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value)
        expect(value, good, where, 'a list of strings, as in ["one", "two"]')
        expect(value, all(map(is_text, value)), where, "text in UTF-8")
        allowed = part.metadata["allowed"]
        strange = [item for item in value if allowed and item not in allowed]
        expect(", ".join(strange), not strange, where, f"some of {allowed}")
        return tuple(value)
    if isinstance(default, str):
        allowed = part.metadata.get("allowed")
        expect(value, isinstance(value, str), where, "a string")
        expect(value, is_text(value), where, "text in UTF-8")
        expect(value, not allowed or value in allowed, where, f"one of {allowed}")
        pattern = part.metadata.get("pattern")
        return expect(value, not pattern or re.fullmatch(pattern, value), where, part.metadata.get("meaning", ""))
    whole = isinstance(default, int)
    good = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool) and value == value
    expect(value, good, where, "a whole number" if whole else "a number")
    least, most = part.metadata["least"], part.metadata["most"] or (1 << 53)
    expect(value, least <= value <= most, where, f"{least} to {most}")
    return value if whole else float(value)


def is_text(value: str) -> bool:
    """False for bytes of a command line that are not UTF-8: no TOML file can hold them."""
    return not any("\ud800" <= character <= "\udfff" for character in value)


def expect(value: Value, good: object, where: str, expected: str) -> Value:
    if not good:
        raise BadConfiguration(f"{where}: expected {expected}, found {value!r}")
    return value


def plain_host(text: str) -> str:
    if "*" in text:
        raise NotCanonical(text)
    return host_named(text)


def check_scope(scope: Scope, source: str) -> None:
    """Checked here and not in the extractor: no plan may freeze a configuration that a stage would refuse."""
    hosts = (plain_host, "names of hosts or domains, without *, which mean all below them too")
    surts = (parse_surt, SURTS)
    patterns = (re.compile, PATTERNS)
    checks: dict[str, tuple[Callable[[str], object], str]] = {
        "accept_suffixes": hosts,
        "accept_domains": hosts,
        "reject_domains": hosts,
        "accept_surts": surts,
        "link_sources": surts,
        "reject_surts": surts,
        "accept_patterns": patterns,
        "reject_patterns": patterns,
    }
    for key, (read, expected) in checks.items():
        for text in getattr(scope, key):
            expect_readable(read, text, f"{source}: [scope] {key}", expected)
    for term in scope.reject_terms:
        expect(term, bool(term.strip()), f"{source}: [scope] reject_terms", "words")


def check_rules(config: Config, source: str) -> None:
    """The rules of [[priority]] and [[budget]], and the patterns of [scheduler]."""
    for name in RULES:
        for number, rule in enumerate(getattr(config, name), 1):
            where = f"{source}: [[{name}]], rule {number}"
            found = f"surt {rule.surt!r} and pattern {rule.pattern!r}"
            expect(found, bool(rule.surt) != bool(rule.pattern), where, "either a surt or a pattern")
            if rule.surt:
                expect_readable(parse_surt, rule.surt, f"{where}: surt", SURTS)
            else:
                expect_readable(check_pattern, rule.pattern, f"{where}: pattern", PATTERNS)
    for number, rule in enumerate(config.priority, 1):
        where = f"{source}: [[priority]], rule {number}"
        if rule.interval_s and config.revisit.policy == "none":
            raise BadConfiguration(
                f'{where}: interval_s = {rule.interval_s:g} needs revisits, found [revisit] policy = "none"'
            )
    for key in ("bonus_patterns", "penalty_patterns"):
        patterns, where = getattr(config.scheduler, key), f"{source}: [scheduler] {key}"
        for pattern in patterns:
            expect_readable(check_pattern, pattern, where, PATTERNS)
        try:
            check_together(patterns)
        except BadPattern as error:
            raise BadConfiguration(f"{where}: expected fewer or shorter {PATTERNS} ({error})") from None


def check_policy(config: Config, source: str) -> None:
    try:
        policy = policy_of(config)
    except BadMix as error:
        raise BadConfiguration(f"{source}: [scheduler] policy: {error}") from None
    if problem := policy.check(config):
        raise BadConfiguration(f"{source}: {problem}")


def expect_readable(read: Callable[[str], object], text: str, where: str, expected: str) -> None:
    try:
        read(text)
    except (NotCanonical, BadPattern, re.error, OverflowError, RecursionError) as error:
        why = "" if isinstance(error, NotCanonical) else f" ({error})"
        raise BadConfiguration(f"{where}: expected {expected}, found {text!r}{why}") from None


def check_pairs(config: Config, source: str) -> None:
    if not config.fetcher.address_families:
        raise BadConfiguration(
            f"{source}: fetcher.address_families: expected one of {ADDRESS_FAMILIES} or both, found none"
        )
    pairs = [
        ("verifier.prescheduled_refill", "verifier.prescheduled_max"),
        ("fetcher.connect_timeout_s", "fetcher.total_timeout_s"),
        ("fetcher.delay_s", "fetcher.cycle_max_s"),
        ("fetcher.transfers_max", "fetcher.connections_max"),
        ("revisit.interval_min_s", "revisit.interval_s"),
        ("revisit.interval_s", "revisit.interval_max_s"),
        ("scheduler.centrality_urls_min", "scheduler.centrality_urls_max"),
    ]
    for smaller, larger in pairs:
        low, high = lookup(config, smaller), lookup(config, larger)
        if low > high:
            raise BadConfiguration(f"{source}: {smaller} = {low} must not be above {larger} = {high}")
    check_forgetting(config, source)


def check_forgetting(config: Config, source: str) -> None:
    """A page that still links to a URL must be seen twice in the time after which the URL is forgotten."""
    days, where = config.revisit.forget_after_days, f"{source}: [revisit] forget_after_days"
    if not days:
        return
    if config.revisit.policy == "none":
        raise BadConfiguration(
            f'{where} = {days} needs revisits, which say what still has links: found [revisit] policy = "none"'
        )
    longest = "interval_s" if config.revisit.policy == "uniform" else "interval_max_s"
    intervals = {f"[revisit] {longest}": lookup(config, f"revisit.{longest}")}
    intervals |= {
        f"[[priority]], rule {number}, interval_s": rule.interval_s for number, rule in enumerate(config.priority, 1)
    }
    for name, interval_s in intervals.items():
        if 2 * interval_s > days * DAY_S:
            raise BadConfiguration(
                f"{where} = {days}: expected at least twice the time between two visits of a page, "
                f"found {name} = {interval_s:g} s, which is {interval_s / DAY_S:g} days"
            )
