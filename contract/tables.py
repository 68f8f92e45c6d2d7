"""Columns of the Parquet tables that stages hand to each other; docs/formats.md explains each."""

import pyarrow as pa

from contract.accumulators import ACCUMULATORS, COUNTED_NAMES, HANDED_ON, SHARED_NAMES

KEYS = [("domain_key", pa.uint64()), ("url_key", pa.uint64()), ("server_key", pa.uint64())]
ORDER = ("domain_key", "url_key")  # the order of every table keyed by URL but the list
DISTINCT = ("url_key", "url")  # columns of such tables whose values hardly repeat
RANDOM = ("etag", "payload_digest")  # columns of METADATA whose values have nothing in common
# Of AUX and its like: keys of neighbours repeat, but zstd finds that too, and a dictionary of 8,192 rows takes longer
# to make and needs more bytes.
AUX_DISTINCT = (*DISTINCT, "domain_key", "server_key")
TAKEN_ALONG = tuple(f"{one.name}_taken" for one in HANDED_ON)  # what a row of the list takes along for its targets
TAKEN = tuple(f"{name}_taken" for name in SHARED_NAMES)  # those that leave the page

# Outcomes of a listed URL; one without a row was not reached.
ANSWERED, FAILED, REFUSED = "answered", "failed", "refused"
REASON_ROBOTS = "robots"  # the reason of a refusal that the verifier may take back when the rules change


def schema(*columns: tuple[str, pa.DataType], nullable: tuple[str, ...] = ()) -> pa.Schema:
    return pa.schema([pa.field(name, kind, nullable=name in nullable) for name, kind in columns])


URL_LIST = schema(
    ("order", pa.uint32()),
    ("url", pa.string()),
    *KEYS,
    ("depth", pa.uint8()),
    ("revisit", pa.bool_()),
    ("etag", pa.string()),
    ("last_modified", pa.string()),
    ("payload_digest", pa.string()),
    ("fetched_at_ms", pa.int64()),
    ("counted", pa.bool_()),
    ("score", pa.uint32()),
    ("vrank", pa.float32()),
    *((name, pa.uint64()) for name in TAKEN_ALONG),
)

LAST_FAILURE = [  # of a server
    ("last_failure_reason", pa.string()),
    ("last_failure_message", pa.string()),
    ("last_failure_at_ms", pa.int64()),
]

CYCLE_SERVERS = schema(
    ("server", pa.string()),
    ("server_key", pa.uint64()),
    ("domain_key", pa.uint64()),
    ("robots", pa.binary()),
    ("robots_expires_at_ms", pa.int64()),
    ("delay_ms", pa.uint32()),
    ("last_request_at_ms", pa.int64()),
    ("ready_at_ms", pa.int64()),
    ("address", pa.string()),
    ("requests", pa.uint32()),
    ("mean_ms", pa.uint32()),
    ("failures", pa.uint32()),
    *LAST_FAILURE,
    ("sitemaps", pa.list_(pa.string())),
    nullable=("robots",),
)

COLLECTED = schema(
    *KEYS,
    ("url", pa.string()),
    ("depth", pa.uint8()),
    ("outcome", pa.string()),
    ("reason", pa.string()),
    ("status", pa.uint16()),
    ("attempts", pa.uint8()),
    ("fetched_at_ms", pa.int64()),
    ("foreign", pa.bool_()),
    *((name, pa.uint64()) for name in TAKEN),
)

FAILURES = schema(
    *KEYS,
    ("url", pa.string()),
    ("server", pa.string()),
    ("is_robots", pa.bool_()),
    ("outcome", pa.string()),
    ("reason", pa.string()),
    ("message", pa.string()),
    ("address", pa.string()),
    ("failed_at_ms", pa.int64()),
    ("attempts", pa.uint8()),
)
# A robots.txt may be in the list too, and be that of several servers.
FAILURES_ORDER = (*ORDER, "is_robots", "server_key")

METADATA = schema(
    *KEYS,
    ("url", pa.string()),
    ("file", pa.string()),
    ("offset", pa.int64()),
    ("length", pa.int64()),
    ("status", pa.uint16()),
    ("type", pa.string()),
    ("charset", pa.string()),
    ("payload_digest", pa.string()),
    ("content_digest", pa.binary(16)),
    ("fetched_at_ms", pa.int64()),
    ("waited_ms", pa.uint32()),
    ("dns_ms", pa.uint32()),
    ("connect_ms", pa.uint32()),
    ("first_byte_ms", pa.uint32()),
    ("total_ms", pa.uint32()),
    ("bytes", pa.int64()),
    ("address", pa.string()),
    ("etag", pa.string()),
    ("last_modified", pa.string()),
    ("redirect_to", pa.string()),
    ("parsed", pa.bool_()),
    ("reader", pa.string()),
    ("trouble", pa.string()),
    ("title", pa.string()),
    ("language", pa.string()),
    ("canonical", pa.string()),
    ("noindex", pa.bool_()),
    ("nofollow", pa.bool_()),
    ("links_inside", pa.uint32()),
    ("links_outside", pa.uint32()),
    ("links_own_domain", pa.uint32()),
    ("links_other_domains", pa.uint32()),
    ("revisit", pa.bool_()),
    ("duplicate", pa.bool_()),
    ("fingerprint", pa.uint64()),
)

UNKNOWN_DIGEST = bytes(16)  # content_digest of a revisit, whose content is not there to be read

# For a new column see contract/accumulators.py: it names the files to touch.
EXTRACTED = schema(
    *KEYS,
    ("url", pa.string()),
    ("depth", pa.uint8()),
    *((accumulator.name, pa.from_numpy_dtype(accumulator.dtype)) for accumulator in ACCUMULATORS),
)
AUX = EXTRACTED
# Rules about a whole server; the code of a rule is its index, 0 for none.
SERVER_RULES = (
    "",
    "server_budget",
    "domain_budget",
    "path_prefix",
    "query",
    "domain_servers",
    "servers_budget",
    "rule_budget",
)
REFUSED_ROWS = schema(
    ("domain_key", pa.uint64()),
    ("url_key", pa.uint64()),
    *((name, pa.uint64()) for name in COUNTED_NAMES),
    ("rule", pa.uint8()),
)

# Rows of a block that were removed, with the sums that links had brought them.
FORGOTTEN = schema(
    ("domain_key", pa.uint64()),
    ("url_key", pa.uint64()),
    ("url", pa.string()),
    ("state", pa.uint8()),
    *((name, pa.uint64()) for name in COUNTED_NAMES),
)

RECONSIDERED = schema(*KEYS, ("is_server", pa.bool_()))

LINKS = schema(
    ("from_key", pa.uint64()),
    ("to_key", pa.uint64()),
    ("kinds", pa.uint32()),
    ("nofollow", pa.bool_()),
    ("followed", pa.bool_()),
    ("anchor", pa.string()),
)

TARGETS = schema(("key", pa.uint64()), ("url", pa.string()))
REJECTED = schema(("server", pa.string()), ("rule", pa.string()), ("links", pa.uint64()), ("example", pa.string()))

# State of a known URL, the u8 column `state` of a generation.
STATES = ("waiting", "prescheduled", "collected", "given_up", "refused_by_robots", "refused_by_rule")
WAITING, PRESCHEDULED, COLLECTED_STATE, GIVEN_UP, REFUSED_BY_ROBOTS, REFUSED_BY_RULE = range(len(STATES))

DEPTH_MAX = 255
