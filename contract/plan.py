"""Plans: all that fixes a cycle, so that a stage that runs again writes the same bytes."""

from dataclasses import asdict, dataclass
from pathlib import Path

from contract import names
from contract.config import Config
from contract.config_check import from_tables
from contract.errors import Usage
from contract.log import KINDS, State, read_kind
from storage.errors import Damaged
from storage.publish import ASIDE, FORMAT, encode_json, make_folder, put_if_absent, read_json, sync_folder


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
    put_if_absent(folder / names.PLAN, encode_json({"format": FORMAT, **asdict(plan)}))


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
    """The plan of the newest cycle that has one."""
    planned = [
        cycle for cycle in names.numbered(crawl / names.CYCLES) if (crawl / names.cycle(cycle) / names.PLAN).exists()
    ]
    return read_plan(crawl, planned[-1]) if planned else None


def open_cycles(crawl: Path, log: State) -> list[int]:
    """Cycles with a plan and no entry in the log."""
    numbers = names.numbered(crawl / names.CYCLES)
    return [
        cycle for cycle in numbers if cycle not in log.cycles and (crawl / names.cycle(cycle) / names.PLAN).exists()
    ]


def cycles_without_plan(crawl: Path, log: State) -> list[int]:
    """Cycles that lost their plan: their folder holds files but no plan, and the log has none but an abandon entry."""
    lost = []
    for cycle in names.numbered(crawl / names.CYCLES):
        folder = crawl / names.cycle(cycle)
        is_committed = cycle in log.cycles and not log.is_abandoned(cycle)
        if is_committed or (folder / names.PLAN).exists():
            continue
        if folder.is_dir() and any(not path.name.startswith(ASIDE) for path in folder.iterdir()):
            lost.append(cycle)
    return lost


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
