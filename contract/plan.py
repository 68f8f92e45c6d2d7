"""Plans: all that fixes a cycle, so that a stage that runs again writes the same bytes."""

import errno
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from contract import names
from contract.config import Config
from contract.config_check import from_tables
from contract.errors import Usage
from contract.log import KINDS, State, read_kind
from storage.errors import Damaged
from storage.publish import ASIDE, FORMAT, encode_json, make_folder, put_if_absent, read_json, sync_folder

PROBED = 64  # free ids behind the last folder that are looked at: more cycles are never in flight at once
MISSING_MAX = 4_096  # ids that the log skipped; with more of them the folder of cycles is listed


@dataclass(frozen=True)
class Plan:
    cycle: int
    kind: str  # a key of contract.log.KINDS, but not abandon
    block: int
    blocks: int  # N
    generation: int | None  # the block's live generation
    now_ms: int  # the only time that stages use
    config: Config
    inbox: str = ""  # of a seed or reconsider cycle: the file of inbox/ that it takes in


@dataclass(frozen=True)
class VerifierPlan:
    cycle: int
    block: int
    blocks: int
    generation: int | None  # the parent
    absorb_to: int  # the log length up to which slices of AUX are absorbed


def write_plan(crawl: Path, plan: Plan) -> None:
    sync_folder(crawl / names.LOG)  # a plan may rest on durable commits only
    folder = crawl / names.cycle(plan.cycle)
    make_folder(folder)
    if not put_if_absent(folder / names.PLAN, encode_json({"format": FORMAT, **asdict(plan)})):
        raise FileExistsError(errno.EEXIST, "this cycle has a plan already", str(folder / names.PLAN))


def read_plan(crawl: Path, cycle: int) -> Plan:
    path = crawl / names.cycle(cycle) / names.PLAN
    if not path.exists():
        raise Usage(
            f"cycle {cycle} has no {names.PLAN} in {crawl}: bin/run-cycle makes plans, bin/show log lists cycles"
        )
    value = read_json(path)
    try:
        config = from_tables(value["config"], f"{path}: config")
        kind, inbox = read_kind(value["kind"]), value["inbox"]
        if inbox != Path(inbox).name or KINDS[kind].from_inbox and inbox in ("", ".."):
            raise ValueError(f"{inbox!r} as the name of a file in {names.INBOX}/")
        if value["cycle"] != cycle:
            raise ValueError(f"that of cycle {value['cycle']}")
        return Plan(
            int(value["cycle"]),
            kind,
            int(value["block"]),
            int(value["blocks"]),
            None if value["generation"] is None else int(value["generation"]),
            int(value["now_ms"]),
            config,
            str(inbox),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise Damaged(path, f"expected a plan, found {error!r}") from None


def newest_plan(crawl: Path) -> Plan | None:
    """The plan of the newest cycle that has one; lists all cycles."""
    for cycle in reversed(names.numbered(crawl / names.CYCLES)):
        if (crawl / names.cycle(cycle) / names.PLAN).exists():
            return read_plan(crawl, cycle)
    return None


def unclosed_folders(crawl: Path, log: State, whole: bool = False) -> list[int]:
    """Cycles that have a folder and no entry in the log.

    Found by probing: ids rise, so they are among the few numbers that the log skipped, or follow its last one. With
    `whole` the folder of cycles is listed, which takes time with the age of the crawl but finds any number.
    """
    if whole or log.closed.count_missing() > MISSING_MAX:
        return [cycle for cycle in names.numbered(crawl / names.CYCLES) if not log.is_closed(cycle)]
    found = [cycle for cycle in log.closed.missing() if has_folder(crawl, cycle)]
    number, last = log.closed.end, log.closed.end - 1
    while number <= last + PROBED:
        if has_folder(crawl, number):
            found.append(number)
            last = number
        number += 1
    return found


def has_folder(crawl: Path, cycle: int) -> bool:
    return os.path.lexists(f"{crawl}/{names.cycle(cycle)}")


def open_cycles(crawl: Path, log: State, whole: bool = False) -> list[int]:
    """Cycles with a plan and no entry in the log; `whole` as for unclosed_folders()."""
    return [cycle for cycle in unclosed_folders(crawl, log, whole) if has_plan(crawl, cycle)]


def has_plan(crawl: Path, cycle: int) -> bool:
    return (crawl / names.cycle(cycle) / names.PLAN).exists()


def cycles_without_plan(crawl: Path, log: State, whole: bool = False) -> list[int]:
    """Cycles that lost their plan: their folder holds files but no plan, and the log has none but an abandon entry.

    `whole` as for unclosed_folders(). Abandoned cycles are looked at until they are settled.
    """
    abandoned = {cycle for cycle, is_abandoned in log.unsettled.items() if is_abandoned}
    return [cycle for cycle in sorted(abandoned.union(unclosed_folders(crawl, log, whole))) if is_lost(crawl, cycle)]


def is_lost(crawl: Path, cycle: int) -> bool:
    """Whether the folder of a cycle holds files but no plan."""
    folder = crawl / names.cycle(cycle)
    if has_plan(crawl, cycle) or not folder.is_dir():
        return False
    return any(not path.name.startswith(ASIDE) for path in folder.iterdir())


def fix_verifier_plan(crawl: Path, plan: Plan, log_length: int) -> VerifierPlan:
    """Writes the verifier's plan unless it exists; returns the one in force."""
    sync_folder(crawl / names.LOG)
    path = crawl / names.cycle(plan.cycle) / names.VERIFIER_PLAN
    fixed = VerifierPlan(plan.cycle, plan.block, plan.blocks, plan.generation, log_length)
    put_if_absent(path, encode_json({"format": FORMAT, **asdict(fixed)}))
    value = read_json(path)
    try:
        return VerifierPlan(*(value[name] for name in ("cycle", "block", "blocks", "generation", "absorb_to")))
    except KeyError as error:
        raise Damaged(path, f"expected the verifier's plan, found no {error}") from None
