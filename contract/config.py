"""The configuration of a crawl: one frozen dataclass per section of pipeline.toml, with defaults and bounds.

contract/config_file.py reads a file into them; contract/config_check.py checks what it finds there.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from hashlib import blake2b
from pathlib import Path
from typing import Any

from contract.errors import BadConfiguration
from storage.publish import encode_json


def in_words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# Kinds of links: bits of Ligacoes.kinds, in this order.
LINK_KINDS = in_words("""
    a area frame refresh redirect link image script canonical alternate next object form media style location
    sitemap feed document text data
""")
# Kinds of links that are followed by default.
FOLLOWED = in_words("a area frame refresh redirect canonical alternate next object location sitemap feed document text")
# What the extractor can read besides HTML. It reads the first seven by default.
DOCUMENTS = in_words("""
    sitemap feed text css xml pdf office
    doc swf json script inline_scripts inline_styles urls_in_urls
""")
# Rules of the canonical form; see contract/canonical.py.
URL_RULES = ("session_ids", "tracking", "lowercase_path", "www", "index_names")
TRACKING_PARAMETERS = in_words("""
    utm_* fbclid gclid gclsrc gad_source dclid gbraid wbraid srsltid msclkid yclid ttclid twclid mc_cid mc_eid
    mkt_tok igshid _ga _gl _hsenc _hsmi _openstat
""")
REJECTED_EXTENSIONS = in_words("""
    7z aac apk avi bin bmp bz2 css deb dmg eps exe flac flv gif gz ico iso jar jpeg jpg js m4a m4v mov mp3 mp4
    mpeg mpg msi ogg ogv otf png rar rpm svg swf tar tgz tif tiff ttf wav webm webp wma wmv woff woff2 xz zip zst
""")
UNKNOWN_RANKS = ("parent", "zero", "drawn", "oracle")  # the rank of a URL that an earlier crawl does not know
DELAY_SCOPES = ("host", "domain", "address")  # what rests together between two requests
REVISITS = ("none", "uniform", "proportional", "optimal")  # when collected pages are asked again
ADDRESS_FAMILIES = ("ipv4", "ipv6")


def number(default: float, least: float = 0, most: float | None = None) -> Any:
    return field(default=default, metadata={"least": least, "most": most})


def choice(default: str, *allowed: str) -> Any:
    return field(default=default, metadata={"allowed": allowed})


def text(default: str, pattern: str, meaning: str) -> Any:
    return field(default=default, metadata={"pattern": pattern, "meaning": meaning})


def words(*default: str, allowed: Sequence[str] | None = None) -> Any:
    return field(default=default, metadata={"allowed": allowed})


@dataclass(frozen=True)
class Blocks:
    first: int = number(2, 1, 1 << 16)
    servers_max: int = number(100_000, 1)
    urls_max: int = number(2_500_000, 1)
    keep_generations: int = number(1)


@dataclass(frozen=True)
class Scheduler:
    policy: str = "shortest-path"  # contract/policies has the names, contract/config_check.py checks it
    list_max_urls: int = number(100_000, 1)
    server_max_urls: int = number(1_000, 1)
    cycle_target_s: float = number(0.0)
    seed: int = number(1)
    slow_share: float = number(0.1, 0, 1)
    ranks_file: str = ""
    weights_file: str = ""
    unknown_rank: str = choice("parent", *UNKNOWN_RANKS)
    oracle_file: str = ""
    centralities_file: str = ""
    centrality_urls_max: int = number(1_000_000, 1)
    centrality_urls_min: int = number(100, 1)
    terms_file: str = ""
    bonus_patterns: tuple[str, ...] = words(r"^https?://[^/]*\.br[:/]")
    penalty_patterns: tuple[str, ...] = words(r"[?&;=]", r"/~", r"[A-Z]{8}", r"\d{5}")


@dataclass(frozen=True)
class Revisit:
    policy: str = choice("none", *REVISITS)
    interval_s: float = number(604_800.0, 1)
    interval_min_s: float = number(86_400.0, 1)
    interval_max_s: float = number(7_776_000.0, 1)
    shorten: float = number(0.5, 0.01, 1)
    lengthen: float = number(1.5, 1, 100)
    share_max: float = number(0.5, 0, 1)
    spread_share: float = number(0.05, 0, 1)
    misses_max: int = number(5, 0, 250)
    forget_after_days: int = number(0, 0, 36_500)


@dataclass(frozen=True)
class Fetcher:
    agent: str = text("Coletor", r"[A-Za-z0-9_.-]+", "a name of letters, digits and _.-")  # a product token (RFC 9110)
    # It becomes a comment of User-Agent.
    contact: str = text("", r"[!-'*-~]*", "a URL or an address without blanks and brackets")
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
    scan_from_bytes: int = number(16 << 20, 0)
    documents: tuple[str, ...] = words(*DOCUMENTS[:7], allowed=DOCUMENTS)
    follow: tuple[str, ...] = words(*FOLLOWED, allowed=LINK_KINDS)
    requisites: tuple[str, ...] = words(allowed=LINK_KINDS)
    obey_nofollow: bool = True
    lazy_attributes: bool = False
    keep_links: str = choice("in_scope", "in_scope", "all")
    anchor_text: bool = False
    near_duplicates: bool = False
    follow_duplicates: bool = True


@dataclass(frozen=True)
class Url:
    rules: tuple[str, ...] = words("session_ids", "tracking", allowed=URL_RULES)
    tracking_parameters: tuple[str, ...] = words(*TRACKING_PARAMETERS)


@dataclass(frozen=True)
class Scope:
    accept_suffixes: tuple[str, ...] = words()
    accept_domains: tuple[str, ...] = words()
    accept_surts: tuple[str, ...] = words()
    accept_patterns: tuple[str, ...] = words()
    # Not in repr, by which manifests tell scopes apart: those of crawls without link sources stay as they were.
    link_sources: tuple[str, ...] = field(default=(), repr=False, metadata={"allowed": None})
    seeds_are_link_sources: bool = field(default=False, repr=False)
    reject_domains: tuple[str, ...] = words()
    reject_surts: tuple[str, ...] = words()
    reject_extensions: tuple[str, ...] = words(*REJECTED_EXTENSIONS)
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
    server_max_urls: int = number(0)
    domain_max_urls: int = number(0)
    domain_max_servers: int = number(0)
    servers_max: int = number(0)
    prefix_from_urls: int = number(5_000)
    prefix_max_urls: int = number(50_000)
    query_max_urls: int = number(50_000)
    attempts_max: int = number(3, 1, 255)
    server_backoff_s: float = number(3_600.0)
    server_backoffs_max: int = number(4, 0, 30)


@dataclass(frozen=True)
class Supervisor:
    cycles_in_flight: int = number(4, 1, 64)
    schedulers: int = number(1, 1, 64)
    fetchers: int = number(4, 1, 64)
    extractors: int = number(1, 1, 64)
    verifiers: int = number(1, 1, 64)
    stage_retries: int = number(3)
    retry_wait_s: float = number(2.0)
    stop_grace_s: float = number(10.0)
    hang_s: float = number(600.0, 1.0)


@dataclass(frozen=True)
class Priority:
    """A rule of [[priority]]: URLs that it is about, by `surt` or by `pattern`, come sooner or later than others."""

    surt: str = ""
    pattern: str = ""
    weight: float = number(1.0, 0.001, 1_000)
    interval_s: float = number(0.0)


@dataclass(frozen=True)
class Budget:
    """A rule of [[budget]]: how many URLs are kept of those that it is about, by `surt` or by `pattern`."""

    surt: str = ""
    pattern: str = ""
    urls: int = number(0)


@dataclass(frozen=True)
class Config:
    blocks: Blocks = Blocks()
    scheduler: Scheduler = Scheduler()
    revisit: Revisit = Revisit()
    fetcher: Fetcher = Fetcher()
    extractor: Extractor = Extractor()
    url: Url = Url()
    scope: Scope = Scope()
    verifier: Verifier = Verifier()
    supervisor: Supervisor = Supervisor()
    priority: tuple[Priority, ...] = ()
    budget: tuple[Budget, ...] = ()

    def digest(self) -> str:
        """Of all that decides what stages write. How many processes work, and how they find tags, does not."""
        tables = asdict(self)
        del tables["supervisor"]
        del tables["extractor"]["workers"], tables["extractor"]["scan_from_bytes"]
        return blake2b(encode_json(tables), digest_size=16).hexdigest()


RULES: dict[str, type[Any]] = {"priority": Priority, "budget": Budget}  # lists of tables, as in [[priority]]
RULES_MAX = 255  # of each: a column of u8 names the one that a URL falls under
SECTIONS: dict[str, type[Any]] = {part.name: type(part.default) for part in fields(Config) if part.name not in RULES}
NAMES = [f"{section}.{part.name}" for section, kind in SECTIONS.items() for part in fields(kind)] + [*RULES]
# Files that some policies read: contract/policy_files.py checks them.
POLICY_FILES = ("ranks_file", "oracle_file", "weights_file", "centralities_file", "terms_file")
POLICY_PATHS = [("scheduler", name) for name in POLICY_FILES]
PATHS = [("fetcher", "hosts_file"), *POLICY_PATHS]  # keys that name a file


def require_contact(config: Fetcher) -> None:
    """BadConfiguration where site owners could not reach the operator; checked before the first request."""
    if "@" not in config.contact and "://" not in config.contact:
        raise BadConfiguration(
            f"fetcher.contact: expected a page or mail address where site owners reach you, "
            f"found {config.contact or 'none'}; every request sends it as part of User-Agent. Set it in [fetcher] "
            "of a file for --config, or: --set fetcher.contact=https://example.org/crawler"
        )


def require_files(config: Config) -> None:
    """BadConfiguration where a file that every run reads does not exist."""
    for section, key in (path for path in PATHS if path not in POLICY_PATHS):
        path = lookup(config, f"{section}.{key}")
        if path and not Path(path).is_file():
            raise BadConfiguration(f"{section}.{key}: expected a file, found none: {path}")


def lookup(config: Config, name: str) -> Any:
    """The value of a key, which is named section.key, or the rules of a name such as priority."""
    section, _, key = name.partition(".")
    return getattr(getattr(config, section), key) if key else getattr(config, section)
