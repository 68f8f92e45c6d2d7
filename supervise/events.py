"""The events of a run in words: what the display and the message log say, so that each wording exists once.

An abnormal event names the cycle and the stage, and says what happens next.
"""

from collections.abc import Callable, Iterator, Mapping

from contract import names
from contract.config import Config
from contract.crawl_config import encode_value, find_differences
from contract.log import KINDS, SEED
from contract.plan import Plan
from contract.totals import count_link_sources, without_link_sources
from contract.units import count, duration, moment, size
from supervise.deaths import name_exit

INFO, WARNING, ERROR = "INFO", "WARNING", "ERROR"
LEVELS = (INFO, WARNING, ERROR)


def describe_event(event: str, facts: dict) -> tuple[str, str]:
    """The level and the text of an event; KeyError where there is no such event."""
    level, describe = EVENTS[event]
    text = describe(**facts)
    is_warning = event == "stage_ended" and facts["code"] or event == "committed" and orders_nothing(**facts)
    return (WARNING if is_warning else level), text


def describe_kept_keys(plan: Plan, config: Config) -> Iterator[str]:
    """Where the plan of a resumed cycle differs from the configuration of this run: one text per key."""
    for difference in find_differences(config, plan.config):
        yield (
            f"cycle {plan.cycle} keeps its plan's {difference.name} = {encode_value(difference.after)} "
            f"(now {encode_value(difference.before)})"
        )


def _plan(plan: Plan) -> str:
    return f"cycle {plan.cycle} ({plan.kind}) of block {plan.block}/{plan.blocks} planned"


def _resume(plan: Plan) -> str:
    return f"cycle {plan.cycle} ({plan.kind}) was interrupted: resuming it"


def _stage(plan: Plan, stage: str, attempt: int = 1) -> str:
    again = f", attempt {attempt}" if attempt > 1 else ""
    return f"the {stage} of cycle {plan.cycle} begins{again}"


def _stage_ended(plan: Plan, stage: str, code: int) -> str:
    return f"the {stage} of cycle {plan.cycle} ended" + (f" by {name_exit(code)}" if code else "")


def _retry(plan: Plan, stage: str, code: int, wait_s: float) -> str:
    return (
        f"the {stage} of cycle {plan.cycle} (block {plan.block}) ended by {name_exit(code)}; "
        f"it runs again in {duration(wait_s)}"
    )


def _sleep(until_ms: int | None, why: str = "") -> str:
    until = f"until {moment(until_ms)}" if until_ms else "until seeds arrive"
    return f"nothing is due {until}" + (f": {why}" if why else "")


def _taken(counts: dict) -> str:
    if counts["kind"] == SEED:
        return f"{count(counts['new'], 'seed')} taken in"
    return f"reconsidered: {count(counts['urls'], 'URL')} and {count(counts['servers'], 'server')}"


def _held(plan: Plan, reason: str) -> str:
    return (
        f"cycle {plan.cycle} of block {plan.block} is held for the rest of this run: {reason}; "
        "other blocks continue, the next run tries it again"
    )


def _damaged(plan: Plan) -> str:
    return (
        f"cycle {plan.cycle} of block {plan.block} cannot continue, a file is damaged; "
        "other blocks continue, bin/status says what to run"
    )


def _abandoned(plan: Plan, reason: str) -> str:
    return f"cycle {plan.cycle} abandoned, no URL is charged: {reason}; its URLs are listed again"


def _committed(plan: Plan, counts: dict) -> str:
    kind, merged = KINDS[plan.kind], counts.get(names.VERIFIER, {})
    if kind.splits:
        return f"block {plan.block} split in two: {count(plan.blocks + 1, 'block')}"
    if kind.forgets:
        gone, left = count(merged["forgotten"], "URL"), f"{merged['known']:,}"
        return f"cycle {plan.cycle} forgot {gone} of block {plan.block}, which no page links to any more; {left} stay"
    if not kind.fetches:
        prepared = merged.get("prepared")
        done = f"cycle {plan.cycle} ({plan.kind}) of block {plan.block} committed"
        return (done if prepared is None else _prepared(plan, merged, prepared)) + describe_ranked(merged)
    fetched = counts[names.FETCHER]
    of_link_sources = count_link_sources(counts.get(names.EXTRACTOR, {}))
    fetched = without_link_sources(fetched, of_link_sources)
    return (
        f"cycle {plan.cycle} block {plan.block}/{plan.blocks}: {count(fetched['answered'], 'page')}, "
        f"{describe_seen_again(merged)}{size(fetched['bytes'])}, {fetched['failed']:,} failed, "
        f"{fetched['refused']:,} refused, {fetched['not_reached']:,} not reached; {count(merged['new'], 'new URL')}, "
        f"{merged['waiting']:,} waiting in the block{describe_ranked(merged)}{describe_link_sources(of_link_sources)}"
    )


def describe_link_sources(fetched: Mapping[str, int]) -> str:
    """What was fetched of link sources, which other figures leave out; empty where that is nothing."""
    if not any(fetched.values()):
        return ""
    ended = "".join(f", {fetched[name]:,} {name}" for name in ("failed", "refused") if fetched[name])
    return f"; besides, of link sources: {count(fetched['answered'], 'page')}, {size(fetched['bytes'])}{ended}"


def describe_ranked(merged: dict) -> str:
    """What the file of ranks is worth to the block; empty where the policy reads none."""
    if "ranked" not in merged:
        return ""
    return f"; {merged['ranked']:,} of {count(merged['known'], 'known URL')} have a rank"


def orders_nothing(plan: Plan, counts: dict) -> bool:
    """Whether a turn that read no pages, as each block has one at first, found no URL of the block in ranks_file."""
    merged = counts.get(names.VERIFIER, {})
    return merged.get("ranked") == 0 and merged["known"] > 0 and not KINDS[plan.kind].fetches


def _prepared(plan: Plan, merged: dict, prepared: dict) -> str:
    parts = [count(merged.get("known", 0), "URL")]
    if refused := prepared.get("refused_again", 0):
        parts.append(f"{refused:,} refused by the scope")
    if waiting := prepared.get("waiting_again", 0):
        parts.append(f"{waiting:,} wait again")
    policy = plan.config.scheduler.policy
    done = f"cycle {plan.cycle} prepared block {plan.block} for the changed configuration"
    return f"{done} (policy {policy}): {', '.join(parts)}"


def describe_seen_again(merged: dict) -> str:
    """The revisits of a cycle, from the verifier's report; empty where it had none."""
    revisited = merged.get("revisited", 0)
    if not revisited and not merged.get("missed", 0):
        return ""
    parts = [f"{merged.get('changed', 0):,} changed"]
    parts += [f"{merged[name]:,} {word}" for name, word in (("gone", "gone"), ("missed", "missed")) if merged.get(name)]
    return f"{revisited:,} seen again ({', '.join(parts)}), "


def _unprepared(plan: Plan) -> str:
    return (
        f"cycle {plan.cycle} did not prepare block {plan.block} for the policy {plan.config.scheduler.policy}: the "
        "block is listed by what it has, and the next run tries again; this is a defect, please report it"
    )


def _warm_died(reason: str) -> str:
    return (
        f"the process that stages are forked from died: {reason}; its stages are ended and run again, no URL is charged"
    )


def _waits(text: str) -> str:
    return text


EVENTS: dict[str, tuple[str, Callable[..., str]]] = {
    "plan": (INFO, _plan),
    "resume": (INFO, _resume),
    "stage": (INFO, _stage),
    "stage_ended": (INFO, _stage_ended),  # a warning where its exit code is not 0
    "retry": (WARNING, _retry),
    "sleep": (INFO, _sleep),
    "taken": (INFO, _taken),
    "held": (ERROR, _held),
    "damaged": (ERROR, _damaged),
    "abandoned": (WARNING, _abandoned),
    "committed": (INFO, _committed),
    "unprepared": (WARNING, _unprepared),
    "warm_died": (WARNING, _warm_died),
    "waits": (INFO, _waits),
}
