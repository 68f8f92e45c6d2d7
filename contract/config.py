"""The configuration: pipeline.toml read into frozen dataclasses; anything unexpected is an error that names the key.

A path in a configuration is relative to the file that holds it; one that is given by --set, to the working folder.
"""

import os
import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields
from difflib import get_close_matches
from hashlib import blake2b
from pathlib import Path

from contract.accumulators import SHARED_NAMES
from contract.errors import BadConfiguration, Usage
from contract.surt import parse_surt
from contract.url import NotCanonical, host_named
from storage.publish import encode_json

LINK_KINDS = (  # bits of Ligacoes.kinds, in this order
    "a",
    "area",
    "frame",
    "refresh",
    "redirect",
    "link",
    "image",
    "script",
    "canonical",
    "alternate",
    "next",
    "object",
    "form",
    "media",
    "style",
    "location",
    "sitemap",
    "feed",
    "document",
    "text",
    "data",
)
DOCUMENTS = (  # what the extractor can read besides HTML; the second line is not read unless asked for
    "sitemap",
    "feed",
    "text",
    "css",
    "xml",
    "pdf",
    "office",
    "doc",
    "swf",
    "json",
    "script",
    "inline_scripts",
    "inline_styles",
    "urls_in_urls",
)
URL_RULES = (
    "session_ids",
    "tracking",
    "lowercase_path",
    "www",
    "index_names",
)  # of the canonical form; see contract/canonical.py
DELAY_SCOPES = ("host", "domain", "address")  # what rests together between two requests
PRESCHEDULED_BY = ("shortest_path", "depth", "fifo")  # which of a server's waiting URLs come first
ADDRESS_FAMILIES = ("ipv4", "ipv6")
DEFAULT_FILE = Path(__file__).resolve().parent.parent / "pipeline.toml"


def number(default, least=0, most=None):
    return field(default=default, metadata={"least": least, "most": most})


def choice(default, *allowed):
    return field(default=default, metadata={"allowed": allowed})


def text(default, pattern, meaning):
    return field(default=default, metadata={"pattern": pattern, "meaning": meaning})


def words(*default, allowed=None):
    return field(default=default, metadata={"allowed": allowed})


@dataclass(frozen=True)
class Blocks:
    first: int = number(8, 1, 1 << 16)
    servers_max: int = number(100_000, 1)
    urls_max: int = number(10_000_000, 1)
    keep_generations: int = number(1)


@dataclass(frozen=True)
class Scheduler:
    order: str = choice("depth", "depth", *SHARED_NAMES)
    list_max_urls: int = number(100_000, 1)
    server_max_urls: int = number(100, 1)


@dataclass(frozen=True)
class Fetcher:
    agent: str = text("Coletor", r"[A-Za-z0-9_.-]+", "a name of letters, digits and _.-")  # a product token (RFC 9110)
    contact: str = text(
        "", r"[!-'*-~]*", "a URL or an address without blanks and brackets"
    )  # becomes a comment of User-Agent
    processes: int = number(1, 1, 64)
    transfers_max: int = number(2_000, 1, 20_000)
    connections_max: int = number(4_000, 1, 60_000)
    connections_per_address_max: int = number(2, 1)
    bandwidth_max_bytes_per_s: int = number(0)
    delay_s: float = number(5.0)
    delay_scope: tuple[str, ...] = words("host", "address", allowed=DELAY_SCOPES)
    delay_response_factor: float = number(1.0, 0, 1000)
    retries_max: int = number(1, 0, 100)
    connect_timeout_s: float = number(10.0, 0.001)
    total_timeout_s: float = number(60.0, 0.001)
    slow_bytes_per_s: int = number(100)
    slow_s: float = number(20.0, 0.001)
    accept_types: tuple[str, ...] = words()
    length_max_bytes: int = number(0)
    body_max_bytes: int = number(10 << 20, 1, 1 << 30)
    bodies_memory_max_bytes: int = number(256 << 20)
    header_max_bytes: int = number(64 << 10, 256)
    robots_max_bytes: int = number(512 << 10, 500 << 10)
    robots_keep_s: float = number(86_400.0)
    cycle_max_s: float = number(600.0, 0.001)
    outage_max_s: float = number(600.0)
    server_failures_max: int = number(5, 1, 10_000)
    hosts_file: str = ""
    dns_servers: tuple[str, ...] = words()
    dns_timeout_s: float = number(5.0, 0.001)
    dns_queries_max: int = number(100, 1, 10_000)
    address_families: tuple[str, ...] = words("ipv4", "ipv6", allowed=ADDRESS_FAMILIES)
    allow_private_addresses: bool = False
    warc_compression: str = choice("zstd", "zstd", "gzip")
    warc_dictionary: bool = False
    warc_file_max_bytes: int = number(1_000_000_000, 1)
    sync_every_pages: int = number(50, 1)
    sync_every_s: float = number(5.0, 0.001)


@dataclass(frozen=True)
class Extractor:
    workers: int = number(0, 0, 256)
    page_max_bytes: int = number(10 << 20, 1, 1 << 30)
    page_max_s: float = number(10.0, 0.001, 86_400)
    page_memory_max_bytes: int = number(2 << 30, 256 << 20)
    scan_from_bytes: int = number(2 << 20, 0)
    documents: tuple[str, ...] = words(*DOCUMENTS[:7], allowed=DOCUMENTS)
    follow: tuple[str, ...] = words(
        "a",
        "area",
        "frame",
        "refresh",
        "redirect",
        "canonical",
        "alternate",
        "next",
        "object",
        "location",
        "sitemap",
        "feed",
        "document",
        "text",
        allowed=LINK_KINDS,
    )
    requisites: tuple[str, ...] = words(allowed=LINK_KINDS)
    obey_nofollow: bool = True
    lazy_attributes: bool = False
    keep_links: str = choice("in_scope", "in_scope", "all")
    anchor_text: bool = False
    near_duplicates: bool = False


@dataclass(frozen=True)
class Url:
    rules: tuple[str, ...] = words("session_ids", "tracking", allowed=URL_RULES)
    tracking_parameters: tuple[str, ...] = words(
        *[
            "utm_*",
            "fbclid",
            "gclid",
            "gclsrc",
            "gad_source",
            "dclid",
            "gbraid",
            "wbraid",
            "srsltid",
            "msclkid",
            "yclid",
            "ttclid",
            "twclid",
            "mc_cid",
            "mc_eid",
            "mkt_tok",
            "igshid",
            "_ga",
            "_gl",
            "_hsenc",
            "_hsmi",
            "_openstat",
        ]
    )


@dataclass(frozen=True)
class Scope:
    accept_suffixes: tuple[str, ...] = words()
    accept_domains: tuple[str, ...] = words()
    accept_surts: tuple[str, ...] = words()
    accept_patterns: tuple[str, ...] = words()
    reject_domains: tuple[str, ...] = words()
    reject_surts: tuple[str, ...] = words()
    reject_extensions: tuple[str, ...] = words(
        *[
            "7z",
            "aac",
            "apk",
            "avi",
            "bin",
            "bmp",
            "bz2",
            "css",
            "deb",
            "dmg",
            "eps",
            "exe",
            "flac",
            "flv",
            "gif",
            "gz",
            "ico",
            "iso",
            "jar",
            "jpeg",
            "jpg",
            "js",
            "m4a",
            "m4v",
            "mov",
            "mp3",
            "mp4",
            "mpeg",
            "mpg",
            "msi",
            "ogg",
            "ogv",
            "otf",
            "png",
            "rar",
            "rpm",
            "svg",
            "swf",
            "tar",
            "tgz",
            "tif",
            "tiff",
            "ttf",
            "wav",
            "webm",
            "webp",
            "wma",
            "wmv",
            "woff",
            "woff2",
            "xz",
            "zip",
            "zst",
        ]
    )
    reject_patterns: tuple[str, ...] = words()
    reject_terms: tuple[str, ...] = words()
    reject_dynamic: bool = False
    hops_max: int = number(255, 0, 255)
    url_length_max: int = number(2_000, 16, 8_000)
    path_depth_max: int = number(20, 1)
    segment_repeats_max: int = number(3, 1)
    deeper_repeats_max: int = number(2, 1)
    calendar_years_max: int = number(5, 0)
    host_labels_max: int = number(8, 1)
    page_links_max_bytes: int = number(8_000_000, 1_000, 1 << 30)
    reject_session_segments: bool = True
    reject_hosts_in_paths: bool = True


@dataclass(frozen=True)
class Verifier:
    memory_max_bytes: int = number(1 << 30, 256 << 20)
    prescheduled_max: int = number(1_000, 1)
    prescheduled_refill: int = number(10, 1)
    prescheduled_by: str = choice("shortest_path", *PRESCHEDULED_BY)
    server_max_urls: int = number(0)
    domain_max_urls: int = number(0)
    prefix_from_urls: int = number(5_000)
    prefix_max_urls: int = number(50_000)
    query_max_urls: int = number(50_000)
    attempts_max: int = number(3, 1, 255)
    server_backoff_s: float = number(3_600.0)
    server_backoffs_max: int = number(4, 0, 30)


@dataclass(frozen=True)
class Supervisor:
    stage_retries: int = number(3)
    retry_wait_s: float = number(2.0)
    stop_grace_s: float = number(10.0)


@dataclass(frozen=True)
class Config:
    blocks: Blocks = Blocks()
    scheduler: Scheduler = Scheduler()
    fetcher: Fetcher = Fetcher()
    extractor: Extractor = Extractor()
    url: Url = Url()
    scope: Scope = Scope()
    verifier: Verifier = Verifier()
    supervisor: Supervisor = Supervisor()

    def digest(self) -> str:
        """Of all that decides what stages write; how many workers read pages, and how they find tags, decides nothing."""
        tables = asdict(self)
        del tables["extractor"]["workers"], tables["extractor"]["scan_from_bytes"]
        return blake2b(encode_json(tables), digest_size=16).hexdigest()


SECTIONS = {part.name: type(part.default) for part in fields(Config)}
NAMES = [f"{section}.{part.name}" for section, kind in SECTIONS.items() for part in fields(kind)]
PATHS = [("fetcher", "hosts_file")]  # keys that name a file


def load(path: Path | None = None, overrides: Sequence[str] = ()) -> Config:
    """The configuration of a TOML file (default: the project's own) with `section.key=value` overrides on top."""
    source = path or DEFAULT_FILE
    try:
        return parse(source.read_bytes(), source, overrides)
    except OSError as error:
        raise BadConfiguration(f"{source}: no such configuration file ({error.strerror})") from None


def parse(content: bytes, source: Path, overrides: Sequence[str] = ()) -> Config:
    """The configuration that the content of a file holds; its paths are made absolute."""
    try:
        tables = tomllib.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise BadConfiguration(f"{source}: expected TOML, found {error}") from None
    anchor_paths(tables, source.parent)
    for text in overrides:
        apply_override(tables, text)
    anchor_paths(tables, Path())
    return from_tables(tables, f"{source} with --set" if overrides else str(source))


def anchor_paths(tables: dict, folder: Path) -> None:
    """Makes paths that are still relative absolute: they begin at the folder."""
    for section, key in PATHS:
        table = tables.get(section)
        if isinstance(table, dict) and isinstance(table.get(key), str) and table[key]:
            table[key] = os.path.abspath(folder / table[key])


def apply_override(tables: dict, text: str) -> None:
    name, equals, value = text.partition("=")
    section, dot, key = name.strip().partition(".")
    if not (equals and dot):
        meant = suggest(name.strip(), NAMES) or "; as in --set fetcher.delay_s=2.5"
        raise Usage(f"--set {text}: expected section.key=value{meant}")
    try:
        parsed = tomllib.loads(f"value = {value}")["value"]
    except (ValueError, RecursionError):
        parsed = value.strip()  # a bare word is a string, so that a shell needs no second pair of quotes
    section_table = tables.setdefault(section, {})
    if not isinstance(section_table, dict):
        raise BadConfiguration(f"{section}: expected a table, found {section_table!r}")
    section_table[key] = parsed


def from_tables(tables: dict, source: str) -> Config:
    for name in tables:
        if name not in SECTIONS:
            meant = suggest(name, [*SECTIONS, *NAMES]) or f"; expected one of {', '.join(SECTIONS)}"
            raise BadConfiguration(f"{source}: [{name}] is no section{meant}")
    config = Config(
        **{name: read_section(kind, tables.get(name, {}), f"{source}: [{name}]") for name, kind in SECTIONS.items()}
    )
    check_scope(config.scope, source)
    check_pairs(config, source)
    return config


def read_section(kind: type, table, place: str):
    if not isinstance(table, dict):
        raise BadConfiguration(f"{place}: expected a table, found {table!r}")
    known = {part.name: part for part in fields(kind)}
    for key in table:
        if key not in known:
            meant = suggest(key, known) or suggest(key, NAMES) or f"; expected one of {', '.join(known)}"
            raise BadConfiguration(f"{place} {key}: no such key{meant}")
    return kind(**{key: read_value(known[key], value, f"{place} {key}") for key, value in table.items()})


def suggest(name: str, known: Iterable[str]) -> str:
    """The nearest known name as the end of a message, or nothing; a key in the wrong place is found by its last part."""
    by_end = {text.rpartition(".")[2]: text for text in known}
    near = get_close_matches(name.rpartition(".")[2], by_end, n=1)
    return f"; did you mean {by_end[near[0]]}?" if near else ""


def read_value(part, value, place: str):
    default = part.default
    if isinstance(default, bool):
        return expect(value, isinstance(value, bool), place, "true or false")
    if isinstance(default, tuple):
        good = isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value)
        expect(value, good, place, 'a list of strings, as in ["one", "two"]')
        expect(value, all(map(is_text, value)), place, "text in UTF-8")
        allowed = part.metadata["allowed"]
        strange = [item for item in value if allowed and item not in allowed]
        expect(", ".join(strange), not strange, place, f"some of {allowed}")
        return tuple(value)
    if isinstance(default, str):
        allowed = part.metadata.get("allowed")
        expect(value, isinstance(value, str), place, "a string")
        expect(value, is_text(value), place, "text in UTF-8")
        expect(value, not allowed or value in allowed, place, f"one of {allowed}")
        pattern = part.metadata.get("pattern")
        return expect(value, not pattern or re.fullmatch(pattern, value), place, part.metadata.get("meaning"))
    whole = isinstance(default, int)
    good = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool) and value == value
    expect(value, good, place, "a whole number" if whole else "a number")
    least, most = part.metadata["least"], part.metadata["most"] or (1 << 53)
    expect(value, least <= value <= most, place, f"{least} to {most}")
    return value if whole else float(value)


def is_text(value: str) -> bool:
    """False for bytes of a command line that are not UTF-8: no TOML file can hold them."""
    return not any("\ud800" <= character <= "\udfff" for character in value)


def expect(value, good: bool, place: str, expected: str):
    if not good:
        raise BadConfiguration(f"{place}: expected {expected}, found {value!r}")
    return value


def plain_host(text: str) -> str:
    if "*" in text:
        raise NotCanonical(text)
    return host_named(text)


def check_scope(scope: Scope, source: str) -> None:
    """Here and not in the extractor, so that no plan freezes a configuration that a stage would refuse."""
    hosts = (plain_host, "names of hosts or domains, without *, which mean all below them too")
    surts = (parse_surt, "SURT prefixes, as in 'br,ufmg,' or 'br,ufmg,www)/ensino'")
    patterns = (re.compile, "regular expressions")
    checks = {
        "accept_suffixes": hosts,
        "accept_domains": hosts,
        "reject_domains": hosts,
        "accept_surts": surts,
        "reject_surts": surts,
        "accept_patterns": patterns,
        "reject_patterns": patterns,
    }
    for key, (read, expected) in checks.items():
        for text in getattr(scope, key):
            try:
                read(text)
            except (NotCanonical, re.error, OverflowError, RecursionError) as error:
                why = "" if isinstance(error, NotCanonical) else f" ({error})"
                raise BadConfiguration(f"{source}: [scope] {key}: expected {expected}, found {text!r}{why}") from None
    for term in scope.reject_terms:
        expect(term, bool(term.strip()), f"{source}: [scope] reject_terms", "words")


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
        ("scheduler.server_max_urls", "verifier.prescheduled_max"),
        ("scheduler.server_max_urls", "scheduler.list_max_urls"),
    ]
    for smaller, larger in pairs:
        low, high = lookup(config, smaller), lookup(config, larger)
        if low > high:
            raise BadConfiguration(f"{source}: {smaller} = {low} must not be above {larger} = {high}")


def require_contact(config: Fetcher) -> None:
    """BadConfiguration where site owners could not reach who crawls them; asked before any server is."""
    if "@" not in config.contact and "://" not in config.contact:
        raise BadConfiguration(
            f"fetcher.contact: expected a page or mail address where site owners reach you, found {config.contact or 'none'}; it goes into "
            "every request's User-Agent. Set it in [fetcher] of a file for --config, or: "
            "--set fetcher.contact=https://example.org/crawler"
        )


def lookup(config: Config, name: str):
    section, key = name.split(".")
    return getattr(getattr(config, section), key)
