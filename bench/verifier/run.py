"""The run: each stream in turn, its table, the goals, the rate over a crawl's life, and the plot."""

import json
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from bench.fetcher.figures import goal_lines
from bench.verifier.contest import Contest
from bench.verifier.figures import GOALS, goal_figures, table_lines, thesis_lines
from bench.verifier.options import CRAWLS, THESIS, Course, chosen_courses
from bench.verifier.peers import PEERS
from bench.verifier.plot import draw
from bench.verifier.rate import rate_lines, rates
from contract.errors import Usage

SIGN = "bench-verifier.json"  # marks a folder as ours


def measure(arguments) -> dict:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    courses = chosen_courses(arguments)
    if arguments.quick:
        print("a quick run: it shows that everything works, and its figures mean nothing", flush=True)
        with tempfile.TemporaryDirectory(prefix="bench-verifier-") as scratch:
            return measure_in(Path(scratch), courses, arguments)
    open_work_folder(arguments.folder, courses, arguments.fresh)
    return measure_in(arguments.folder, courses, arguments)


def measure_in(folder: Path, courses: list[Course], arguments) -> dict:
    figures: dict = {}
    lines: list[str] = []

    def say(*more: str) -> None:
        lines.extend(more)
        print(*more, sep="\n", flush=True)

    for course in courses:
        contest = Contest(folder / course.name, course)
        rows = contest.run()
        say(*course_lines(course, rows, contest))
        figures |= {THESIS: rows} if course.name == THESIS else rows
        figures[f"{course.name}_peers"] = contest.notes.peers
        if arguments.rate:
            figures[f"{course.name}_rate"] = rates(
                contest.notes.cycles, rows, course.shape.collected, arguments.stage_seconds
            )
            say(*rate_lines(figures[f"{course.name}_rate"]))
        if course.name == CRAWLS:
            figures |= goal_figures(rows)
            say(
                *goal_lines(
                    figures,
                    [goal._replace(bound=arguments.memory_mb) if goal.key == "rss_mb" else goal for goal in GOALS],
                )
            )
    plot = arguments.plot or (None if arguments.quick else folder / "plot.svg")
    if plot:
        plot.write_text(
            draw(
                {
                    course.name: figures.get(THESIS)
                    if course.name == THESIS
                    else {f"{mark:g}": figures[f"{mark:g}"] for mark in course.marks}
                    for course in courses
                }
            )
        )
        plot.with_suffix(".txt").write_text("\n".join(lines) + "\n")
        print(f"plot: {plot}, table: {plot.with_suffix('.txt')}", flush=True)
    return figures


def course_lines(course: Course, rows: dict, contest: Contest) -> list[str]:
    shape = course.shape
    lines = [
        f"{course.name}: cycles of {shape.collected:,} collected and {shape.extracted:,} extracted URLs, "
        f"{shape.known_share:.0%} of them known, {shape.servers:,} servers; N from {course.config.blocks.first}; "
        f"seconds, medians of {course.limits.cycles} cycles from each mark on",
        *table_lines(rows),
    ]
    if course.name == THESIS:
        lines += thesis_lines(rows)
    if any(row["step_s"] is None for row in rows.values()):
        lines.append("  the verifier has no --times, so its step is not known: ratios are of the whole command")
    last = list(rows.values())[-1]
    for name, noted in contest.notes.peers.items():
        words = PEERS[name][2] if name in PEERS else "ours with one block, growth off (Programs 6 and 7)"
        lines.append(
            f"  {name:13} {words}; {how_far(noted, last['known'])}"
            + (f"; {noted['disagrees']}" if "disagrees" in noted else "")
        )
    lines.append(
        f"  growth: {contest.notes.splits} splits, {contest.notes.grow_s:.1f} s in all, not in the seconds above; "
        f"the largest of {last['blocks']} blocks: {last['largest_block_urls']:,} URLs, "
        f"{last['largest_block_servers']:,} servers"
    )
    return lines


def how_far(noted: dict, known: int) -> str:
    """How far a peer got of so many known URLs; one that took part only in an earlier run was not asked further."""
    reached = f"{noted.get('known', 0) / 1e6:.2f} million"
    if "out" in noted:
        return f"out after {reached}: {noted['out']}"
    return "went all the way" if noted.get("known", 0) >= known else f"not asked beyond {reached}"


def open_work_folder(folder: Path, courses: list[Course], is_fresh: bool) -> None:
    """Opens our folder, or makes one; refuses to resume a run of another stream's shape."""
    sign = folder / SIGN
    about = json.dumps(
        {course.name: [repr(course.shape), repr(course.config.blocks), course.limits.fill] for course in courses}
    )
    noted_shapes = json.loads(sign.read_text()) if sign.exists() else {}
    if folder.exists() and any(folder.iterdir()) and not sign.exists():
        raise Usage(f"{folder} holds other files: name an empty or a new folder with --folder")
    if is_fresh and sign.exists():
        shutil.rmtree(folder)
        noted_shapes = {}
    if any(noted_shapes[name] != shape for name, shape in json.loads(about).items() if name in noted_shapes):
        raise Usage(
            f"{folder} holds a run with another stream, bounds or --fill: "
            "take --fresh to begin anew, or another --folder"
        )
    folder.mkdir(parents=True, exist_ok=True)
    sign.write_text(json.dumps({**noted_shapes, **json.loads(about)}))
