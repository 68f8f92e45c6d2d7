"""The views of a crawl: what each one is for, its columns with their SQL, and which tables it needs.

`bin/sql --help` prints the list of views and columns from here. Names that begin with an underscore are tables that
views are made of: `_answers` and the like of stage_tables.py, `_known_urls` and `_journal` of known_urls.py.
"""

from dataclasses import dataclass

from contract.accumulators import ACCUMULATORS
from contract.config import LINK_KINDS
from contract.tables import SERVER_RULES

HOST = r"regexp_extract(url, '^[a-z]+://(\[[^]]*\]|[^/:?#]*)', 1)"
KINDS_BY_NAME = ", ".join(f"'{kind}'" for kind in LINK_KINDS)
RULES_BY_NUMBER = ", ".join(f"'{rule}'" for rule in SERVER_RULES[1:])
IN_CLOSED_DOMAIN = "domain_key IN (SELECT domain_key FROM _block_servers WHERE closed)"
LINK_SOURCE = "is_link_source(url, domain_key, url_key)"  # see link_sources.py
KNOWN_DIGEST = "nullif(lower(hex(content_digest)), repeat('0', 32))"


def moment_of(column: str) -> str:
    """SQL for a time in UTC from milliseconds since 1970, NULL for 0."""
    return f"epoch_ms(nullif({column}, 0))"


@dataclass(frozen=True)
class View:
    about: str  # one line
    needs: tuple[str, ...]  # other views, or tables whose names begin with an underscore
    columns: dict[str, str]  # name -> SQL; empty: the name itself
    source: str  # what follows FROM

    def sql(self, name: str) -> str:
        columns = ", ".join(f"{sql or column} AS {column}" for column, sql in self.columns.items())
        return f"CREATE VIEW {name} AS SELECT {columns} FROM {self.source}"


ANSWER = {
    "url": "",
    "host": HOST,
    "status": "",
    "type": "",
    "charset": "",
    "title": "",
    "language": "",
    "bytes": "",
    "fetched_at": moment_of("fetched_at_ms"),
    "address": "",
    "redirect_to": "",
    "canonical": "",
    "parsed": "",
    "reader": "",
    "trouble": "",
    "noindex": "",
    "nofollow": "",
    "links_inside": "",
    "links_outside": "",
    "links_own_domain": "",
    "links_other_domains": "",
    "waited_ms": "",
    "dns_ms": "",
    "connect_ms": "",
    "first_byte_ms": "",
    "total_ms": "",
    "etag": "",
    "last_modified": "",
    "revisit": "",
    "duplicate": "",
    "link_source": LINK_SOURCE,
    "cycle": "",
    "file": "format('cycles/{:08d}/fetcher/{}', cycle, file)",
    "file_offset": '"offset"',
    "content_digest": KNOWN_DIGEST,
    "payload_digest": "",
    "fingerprint": "",
    "domain_key": "",
    "server_key": "",
    "url_key": "",
}
PAGE_EXTRAS = {"visits": "seen.visits", "visited_at": "seen.visited_at"}

VIEWS = {
    "pages": View(
        "one row per collected URL, of any status: its newest answer, or where that brought nothing new (304, or the "
        "same body) the newest before it that did; how often it was visited, and when last",
        ("visits",),
        {
            name: PAGE_EXTRAS.get(name, f"visits.{name}")
            for name in (*list(ANSWER)[:9], *PAGE_EXTRAS, *list(ANSWER)[9:])
        },
        "visits JOIN (SELECT domain_key, url_key, count(*) AS visits, max(fetched_at) AS visited_at,"
        " coalesce(max(cycle) FILTER (NOT revisit), min(cycle)) AS cycle FROM visits GROUP BY domain_key, url_key)"
        " AS seen ON visits.domain_key = seen.domain_key AND visits.url_key = seen.url_key"
        " AND visits.cycle = seen.cycle",
    ),
    "visits": View("one row per answer of a page, revisits too", ("_answers",), ANSWER, "_answers"),
    "links": View(
        "the link graph: one row per page, target in scope and cycle; a URL whose text is not known is NULL",
        ("_links", "_answers", "_extracted", "_targets"),
        {
            "from_url": "page.url",
            "to_url": "target.url",
            "kinds": f"list_filter([{KINDS_BY_NAME}], lambda kind, bit: (links.kinds >> (bit - 1)) & 1 = 1)",
            "anchor": "links.anchor",
            "nofollow": "links.nofollow",
            "followed": "links.followed",
            "cycle": "links.cycle",
            "from_key": "links.from_key",
            "to_key": "links.to_key",
        },
        "_links AS links LEFT JOIN (SELECT cycle, url_key, any_value(url) AS url FROM _answers GROUP BY cycle, url_key)"
        " AS page ON links.cycle = page.cycle AND links.from_key = page.url_key"
        " LEFT JOIN (SELECT url_key, any_value(url) AS url FROM (SELECT url_key, url FROM _extracted"
        " UNION ALL SELECT key, url FROM _targets UNION ALL SELECT url_key, url FROM _answers) GROUP BY url_key)"
        " AS target ON links.to_key = target.url_key",
    ),
    "urls": View(
        "the known URLs of all blocks, with their states; URLs that wait in AUX for the turn of their block come later",
        ("_known_urls",),
        {
            "url": "",
            "host": HOST,
            "state": "state::varchar",
            "depth": "",
            "links_in": "",
            "mentions": "",
            "attempts": "",
            "visits": "",
            "changes": "",
            "misses": "",
            "link_source": LINK_SOURCE,
            "lastmod": "epoch_ms(nullif(lastmod_s, 0)::bigint * 1000)",
            "linked_on": "(date '1970-01-01' + nullif(linked_day, 0)::integer)::date",
            **{
                accumulator.name: ""
                for accumulator in ACCUMULATORS
                if accumulator.name not in ("links_in", "mentions", "lastmod_s", "linked_day")
            },
            "server": "server::varchar",
            "block": "",
            "domain_key": "",
            "url_key": "",
        },
        "_known_urls",
    ),
    "servers": View(
        "the known servers, with counts of their URLs and their last failure",
        ("_block_servers",),
        {
            "server": "",
            "known": "",
            "collected": "",
            "waiting": "",
            "prescheduled": "",
            "requests": "",
            "mean_ms": "",
            "delay_ms": "",
            "failures": "",
            "last_failure_reason": "",
            "last_failure_message": "",
            "last_failure_at": moment_of("last_failure_at_ms"),
            "given_up": "",
            "closed": "",
            "last_request_at": moment_of("last_request_at_ms"),
            "due_at": moment_of("due_at_ms"),
            "robots_expires_at": moment_of("robots_expires_at_ms"),
            "address": "",
            "mentions": "",
            "lastmod_claims": "",
            "lastmod_true": "",
            "block": "",
            "domain_key": "",
            "server_key": "",
        },
        "_block_servers",
    ),
    "failures": View(
        "URLs and robots.txt files that failed, and why; one row per cycle",
        ("_failures",),
        {
            "url": "",
            "server": "",
            "reason": "",
            "message": "",
            "is_robots": "",
            "attempts": "",
            "failed_at": moment_of("failed_at_ms"),
            "address": "",
            "cycle": "",
            "domain_key": "",
            "server_key": "",
            "url_key": "",
        },
        "_failures WHERE outcome = 'failed'",
    ),
    "refused": View(
        "URLs that were refused: when they were to be asked (robots.txt, address, type, size); by a rule about their "
        "whole server when they were found, with a NULL URL where no table has its text; or as known URLs, with a NULL "
        "cycle: 'scope' where the rules changed since, 'closed_domain' where their domain was closed",
        ("_failures", "_refused_rows", "_extracted", "_known_urls", "_block_servers"),
        {"url": "", "reason": "", "message": "", "links_in": "", "cycle": "", "domain_key": "", "url_key": ""},
        "(SELECT url, reason, message, NULL AS links_in, cycle, domain_key, url_key FROM _failures"
        " WHERE outcome = 'refused' UNION ALL"
        f" SELECT known.url, [{RULES_BY_NUMBER}][row.rule], '', row.links_in, row.cycle, row.domain_key, row.url_key"
        " FROM _refused_rows AS row LEFT JOIN (SELECT domain_key, url_key, any_value(url) AS url FROM _extracted"
        " GROUP BY domain_key, url_key) AS known"
        " ON row.domain_key = known.domain_key AND row.url_key = known.url_key UNION ALL"
        f" SELECT url, if({IN_CLOSED_DOMAIN}, 'closed_domain', 'scope'), '', links_in, NULL, domain_key, url_key"
        " FROM _known_urls AS known WHERE state = 'refused_by_rule' AND NOT EXISTS (SELECT 1 FROM _failures AS failed"
        " WHERE outcome = 'refused' AND failed.domain_key = known.domain_key AND failed.url_key = known.url_key))",
    ),
    "rejected": View(
        "links out of scope, counted by the server that they lead to and the rule of [scope], with an example",
        ("_rejected",),
        {"server": "", "rule": "", "links": "", "example": "", "cycle": ""},
        "_rejected",
    ),
    "journal": View(
        "what runs did and when: one row per attempt of a stage, and per begin and end of a run",
        ("_journal",),
        {
            "event": "",
            "stage": "",
            "cycle": "",
            "block": "",
            "kind": "",
            "attempt": "",
            "began_at": moment_of("begin_ms"),
            "ended_at": moment_of("end_ms"),
            "duration_s": "(end_ms - begin_ms) / 1000",
            "exit_code": "",
            "cpu_s": "",
            "memory_peak_bytes": "",
            "read_bytes": "",
            "written_bytes": "",
            "pages": "",
            "bytes": "",
            "command": "",
            "why": "",
            "run": "",
        },
        "_journal",
    ),
}


def tables_of(views: set[str]) -> list[str]:
    """The views and tables that these views need, themselves included, each after what it needs."""
    found: dict[str, None] = {}

    def add(name: str) -> None:
        if name in VIEWS:
            for need in VIEWS[name].needs:
                add(need)
        found.setdefault(name)

    for view in sorted(views):
        add(view)
    return list(found)
