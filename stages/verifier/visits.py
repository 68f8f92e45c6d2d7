"""What a visit changes of a collected page's row in the side set; pure, on arrays.

A collected page stays collected. A full answer takes the place of the one before. A revisit record (304, or the same
body again) says no more than the answer that is stored: that one stays the page's own, and only the time of the visit
is noted. A page has changed where a full answer has another content than the one known; where either content is
unknown, nothing was seen to change.

The minutes since the last visit count for "changed" or "unchanged", as this visit found the page. A visit that failed
or was refused is a visit for the time of the next one, but has shown nothing: the minutes before it are not counted.
Visits that find no page are counted as misses until one finds it again. All sums stay at their largest value.
"""

from collections import Counter

import numpy as np

from contract.config import Revisit
from contract.generation import SIDE_COLUMNS
from contract.revisits import MINUTE_MS, PROPORTIONAL, Pages, has_claim, next_period_min, seen_at_ms
from stages.verifier.harvest import Answers

GONE = (404, 410)  # statuses of an answer that says there is no page

# Of a report. Revisited pages are changed or unchanged; some were gone. Missed: the visit failed or was refused.
VISIT_COUNTS = ("revisited", "unchanged", "changed", "gone", "missed", "duplicates")

Side = dict[str, np.ndarray]  # columns of the side set, of one length


def first_visits(answers: Answers, duplicate: np.ndarray, cycle: int) -> dict[str, np.ndarray | int]:
    """Columns of pages that are answered for the first time; the others are zero."""
    return {
        "cycle": cycle,
        "row": answers.row,
        "fetched_at_ms": answers.fetched_at_ms,
        "content_digest": answers.content_digest,
        "duplicate": duplicate,
        "parsed": answers.parsed,
        "visits": 1,
        "misses": is_gone(answers),
    }


def visit_again(
    side: Side, rows: np.ndarray, answers: Answers, duplicate: np.ndarray, cycle: int, config: Revisit
) -> Counter[str]:
    """Changes rows (i64, each once) of the side set by one answer each; returns what there was, for the report.

    `duplicate`, bool: the answer has the content of another URL's. One with the page's own content again is as before.
    """
    before = {name: side[name][rows] for name in SIDE_COLUMNS}
    is_full = ~answers.revisit.astype(bool)
    is_known, is_changed = find_changes(before["content_digest"], answers)
    is_own = is_known & ~is_changed
    now = {
        "cycle": np.where(is_full, cycle, before["cycle"]),
        "row": np.where(is_full, answers.row, before["row"]),
        "fetched_at_ms": np.where(is_full, answers.fetched_at_ms, before["fetched_at_ms"]),
        "content_digest": np.where(is_full, answers.content_digest, before["content_digest"]),
        "duplicate": np.where(is_full & ~is_own, duplicate, before["duplicate"]),
        "parsed": before["parsed"] | answers.parsed.astype(bool),
        "visited_at_ms": np.where(is_full, 0, answers.fetched_at_ms),
        "visits": add(before["visits"], 1),
        "misses": np.where(is_gone(answers), add(before["misses"], 1), 0),
    }
    # Both sums end at the same number, so this keeps them apart: of n visits, at most n - 1 found a change.
    now["changes"] = np.minimum(add(before["changes"], is_changed), now["visits"] - 1)
    seen = seen_at_ms(before["fetched_at_ms"], before["visited_at_ms"])
    minutes = np.maximum((answers.fetched_at_ms - seen + MINUTE_MS // 2) // MINUTE_MS, 1)
    now["changed_min"] = add(before["changed_min"], np.where(is_changed, minutes, 0))
    now["unchanged_min"] = add(before["unchanged_min"], np.where(is_changed, 0, minutes))
    if config.policy == PROPORTIONAL:
        now["period_min"] = next_period_min(config, pages_of(before), is_changed)
    for name, values in now.items():
        side[name][rows] = values
    return Counter(
        revisited=len(rows),
        changed=int(is_changed.sum()),
        unchanged=int((~is_changed).sum()),
        gone=int(is_gone(answers).sum()),
        duplicates=int((is_full & ~is_own & duplicate).sum()),
    )


def find_changes(known_digest: np.ndarray, answers: Answers) -> tuple[np.ndarray, np.ndarray]:
    """(whether an answer is a full one and both contents are known, whether it has another content than was known)."""
    is_full = ~answers.revisit.astype(bool)
    is_known = is_full & has_digest(known_digest) & has_digest(answers.content_digest)
    return is_known, is_known & (halves(known_digest) != halves(answers.content_digest)).any(axis=1)


def judge_claims(
    side: Side, rows: np.ndarray, answers: Answers, lastmod_s: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(which of these visits test a claim of a sitemap that the page has changed, which of those found it true); bool.

    `side` is as before the visits, and `lastmod_s` what was known then. A claim that no content can prove or disprove
    is not tested.
    """
    seen = seen_at_ms(side["fetched_at_ms"][rows], side["visited_at_ms"][rows])
    is_known, is_changed = find_changes(side["content_digest"][rows], answers)
    is_tested = has_claim(lastmod_s, seen) & (is_known | answers.revisit.astype(bool))
    return is_tested, is_tested & is_changed


def miss(side: Side, rows: np.ndarray, at_ms: np.ndarray) -> Counter[str]:
    """Changes rows (i64, each once) of pages whose visit failed or was refused, at these times (i64)."""
    side["visited_at_ms"][rows] = at_ms
    side["misses"][rows] = add(side["misses"][rows], 1)
    return Counter(missed=len(rows))


def pages_of(side: Side, rule_interval_s: np.ndarray | None = None) -> Pages:
    """Rows of the side set as contract/revisits.py takes them."""
    return Pages(
        seen_at_ms(side["fetched_at_ms"], side["visited_at_ms"]),
        *(side[name] for name in ("visits", "changes", "unchanged_min", "changed_min", "period_min", "misses")),
        rule_interval_s=np.zeros(len(side["visits"])) if rule_interval_s is None else rule_interval_s,
    )


def is_gone(answers: Answers) -> np.ndarray:
    return np.isin(answers.status, GONE)


def halves(digest: np.ndarray) -> np.ndarray:
    """Digests of 16 bytes as rows of two u64."""
    return np.ascontiguousarray(digest).view("u8").reshape(-1, 2)


def has_digest(digest: np.ndarray) -> np.ndarray:
    return halves(digest).any(axis=1)  # UNKNOWN_DIGEST is all zeros


def add(values: np.ndarray, more: np.ndarray | int) -> np.ndarray:
    """Sums that stay at the largest value of the column's type; nothing of `more` is negative."""
    return np.minimum(values.astype(np.int64) + more, np.iinfo(values.dtype).max).astype(values.dtype)
