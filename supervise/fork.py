"""fork: makes a second crawl folder that continues from any kept commit of a crawl.

  bin/fork [--crawl DIR] NEWDIR              from the last kept commit
  bin/fork [--crawl DIR] --at COMMIT NEWDIR  as the crawl was right after that commit
  bin/fork [--crawl DIR] --list              the commits that can be forked at, and when they were planned

COMMIT is the number of a log entry, as in log/00000017.json and `bin/show log`. It is the last entry
of the new crawl. A commit can be forked at while the crawl still has every generation that was live then,
its text, and the AUX that it had not yet absorbed; a larger [blocks] keep_generations keeps more.
Seeds are always kept, so commits before the first generation can always be forked at: the new crawl then
starts from the seeds.

The new crawl has its own crawl id and the same keys. It has the pages and tables of all cycles up to
that commit, and the crawl's configuration. It does not get open cycles, seeds that wait in inbox/, the
lock and the politeness slots. Files are hard links where that is possible, because no published file is
ever changed; otherwise they are copies with verified checksums. The crawl may be running: no lock is
taken. NEWDIR appears whole or not at all. What a killed fork left beside NEWDIR is removed by the next
fork to the same NEWDIR.

Example: bin/fork --crawl demo/crawl /tmp/other && bin/check --crawl /tmp/other
"""

import errno
import fcntl
import os
import secrets
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path

from contract import names
from contract.command import at_least, make_parser, run
from contract.crawl_config import read_crawl_config, write_crawl_config
from contract.crawl_folder import CrawlFolder, expect_outside, is_same_file, notes_of_damage, open_folder, set_aside
from contract.errors import BadInput, Locked, TryLater, Usage
from contract.generation import read_generation_manifest
from contract.lines import say
from contract.log import Entry, History
from contract.policy_files import has_digest, is_whole, relocate
from contract.units import count, moment, size
from storage.errors import Damaged
from storage.publish import (
    ASIDE,
    FORMAT,
    describe,
    encode_json,
    put_if_absent,
    read_json,
    read_manifest,
    sync_file,
    sync_folder,
    verify,
)
from supervise.crawl_state import now_ms
from supervise.retention import Position, Retention, look_at_positions, planned_at_ms, read_entries, state_after

NAME = "fork"
# No hard link possible: another file system, one without links, a file of another user, or a file with too many links.
NO_LINK = (errno.EXDEV, errno.EPERM, errno.EACCES, errno.EMLINK, errno.EOPNOTSUPP, errno.ENOSYS)


def main() -> None:
    parser = make_parser(NAME, __doc__)
    parser.add_argument(
        "target", type=Path, nargs="?", metavar="NEWDIR", help="the new crawl folder: a new or an empty one"
    )
    parser.add_argument(
        "--at",
        type=at_least(0),
        metavar="COMMIT",
        help="number of the last commit that the new crawl has (default: the last kept)",
    )
    parser.add_argument("--list", action="store_true", help="list the commits that can be forked at")
    arguments = parser.parse_args()
    if arguments.list == (arguments.target is not None):
        raise Usage("give either NEWDIR or --list")
    crawl = open_folder(arguments.crawl)
    entries, wrong = read_entries(crawl.path)
    if arguments.list:
        print_positions(crawl, list(look_at_positions(crawl, entries)))
        if wrong:
            raise wrong
        return
    if wrong and (arguments.at is None or arguments.at >= len(entries)):
        raise BadInput(f"{wrong}; --list shows which commits before it can be forked at")
    at = last_kept(crawl, entries) if arguments.at is None else arguments.at
    if not 0 <= at < len(entries):
        raise Usage(
            f"{crawl.path} has no commit {at}: "
            + (f"they are numbered 0 to {len(entries) - 1}" if entries else "its log is empty")
        )
    require_kept(crawl, entries, at)
    fork = Fork(crawl, entries[: at + 1])
    with folder_aside(crawl, arguments.target.resolve()) as (aside, target):
        fork.make(aside, at)
        sync_folders(aside)
        rename_over(aside, target)
    say(
        f"{arguments.target}: a crawl of {count(at + 1, 'commit')}; {count(fork.linked, 'file')} linked, "
        f"{fork.copied:,} copied ({size(fork.copied_bytes)})"
    )
    print(f"next: bin/check --crawl {arguments.target}\n      bin/crawl --crawl {arguments.target}")


def print_positions(crawl: CrawlFolder, positions: list[Position]) -> None:
    kept = [position for position in positions if not position.lack]
    for position in kept:
        entry = position.entry
        at_ms = planned_at_ms(crawl.path, entry.cycle) if entry else None
        planned = moment(at_ms) if at_ms is not None else "-"
        what = (
            f"{entry.kind} of cycle {entry.cycle}" + "".join(f", block {block}" for block in entry.parents)
            if entry
            else "void"
        )
        say(f"commit {position.number:8d}  planned {planned:23s}  {count(position.blocks, 'block')}  {what}")
    lacking = [position for position in positions if position.lack]
    why_not = (
        f"; the last that cannot is {lacking[-1].number}: {lacking[-1].lack}. "
        "A larger [blocks] keep_generations keeps more from now on"
        if lacking
        else ""
    )
    say(f"{len(kept):,} of {count(len(positions), 'commit')} can be forked at{why_not}")


def last_kept(crawl: CrawlFolder, entries: list[Entry]) -> int:
    """The last commit that can be forked at; the last of all where none can. Says so if it is not the last of all."""
    last = len(entries) - 1
    lack = Retention(crawl.path).lack_of(state_after(crawl, entries))
    if not lack:
        return last
    kept = [position.number for position in look_at_positions(crawl, entries) if not position.lack]
    if kept:
        say(f"{NAME}: commit {last} cannot be forked at: {lack}; taking commit {kept[-1]}", sys.stderr)
    return kept[-1] if kept else last


def require_kept(crawl: CrawlFolder, entries: list[Entry], at: int) -> None:
    lack = Retention(crawl.path).lack_of(state_after(crawl, entries[: at + 1]))
    if lack:
        raise Usage(
            f"commit {at} is not kept: {lack}. bin/fork --crawl {crawl.path} --list shows those that are; "
            "a larger [blocks] keep_generations keeps more from now on"
        )


class Fork:
    """Makes one fork, and counts the files that it took."""

    def __init__(self, crawl: CrawlFolder, entries: list[Entry]):
        self._crawl = crawl
        self._log: History = state_after(crawl, entries)
        self._aside = Path()
        self.linked = self.copied = self.copied_bytes = 0

    def make(self, aside: Path, at: int) -> None:
        """Fills the folder; crawl.json comes last, after all that it describes."""
        self._aside = aside
        for folder in (names.LOG, names.INBOX, names.CYCLES, names.TEXT, names.CORRUPT):
            (aside / folder).mkdir(parents=True)
        try:
            self._take_generations()  # first: a run may be about to delete them
            self._take_cycles()
        except FileNotFoundError as error:
            raise TryLater(
                f"{error.filename} was there and is gone: a run in {self._crawl.path} has deleted it; "
                "try again, with a later commit"
            ) from None
        for position in range(self._log.length):
            self._take(Path(names.LOG) / names.log_entry(position))
        put_if_absent(aside / names.SUFFIX_LIST, self._crawl.suffix_list)
        if (self._crawl.path / names.DICTIONARY).exists():  # small, and named by no manifest: a copy
            put_if_absent(aside / names.DICTIONARY, (self._crawl.path / names.DICTIONARY).read_bytes())
        self._take_policy_files()
        # Written anew, because a path in it may be relative to the crawl folder.
        write_crawl_config(aside, relocate(aside, read_crawl_config(self._crawl.path)))
        self._take_notes()
        put_if_absent(
            aside / names.CRAWL_FILE,
            encode_json(
                {
                    "format": FORMAT,
                    "crawl_id": secrets.token_hex(8),
                    "hash_seed": self._crawl.hash_seed,
                    "blocks_first": self._crawl.blocks_first,
                    "suffix_list": describe(aside / names.SUFFIX_LIST),
                    "began_at_ms": self._crawl.began_at_ms,
                    "forked_from": {"crawl_id": self._crawl.crawl_id, "commit": at, "at_ms": now_ms()},
                }
            ),
        )

    def _take_generations(self) -> None:
        """Takes all live generations, and superseded ones that are still there."""
        for entry in self._log.entries:
            for block, number in (entry.generations if entry else {}).items():
                if number is None:
                    continue
                try:
                    self._take_generation(Path(names.generation(block, number)))
                except FileNotFoundError:
                    if self._log.live.get(block) == number:
                        raise
                    shutil.rmtree(self._aside / names.generation(block, number), ignore_errors=True)

    def _take_generation(self, relative: Path) -> None:
        manifest = read_generation_manifest(self._crawl.path / relative)
        for name, about in manifest["texts"].items():
            if not (self._aside / names.TEXT / name).exists():
                self._take(Path(names.TEXT) / name, about)
        for name, about in manifest["files"].items():
            self._take(relative / name, about)
        self._take(relative / names.MANIFEST)

    def _take_cycles(self) -> None:
        """Takes the cycles of entries in force, with the files that their manifests name and that are kept."""
        needed = set(Retention(self._crawl.path).pending(self._log))
        for cycle in sorted(self._log.cycles):
            relative = Path(names.cycle(cycle))
            for name in (names.PLAN, names.VERIFIER_PLAN):
                self._take_if_there(relative / name)
            for stage in names.STAGES:
                try:
                    manifest = read_manifest(self._crawl.path / relative / stage)
                except FileNotFoundError:
                    continue
                for name, about in manifest["files"].items():
                    take = self._take if relative / stage / name in needed else self._take_if_there
                    take(relative / stage / name, about)
                self._take(relative / stage / names.MANIFEST)

    def _take_policy_files(self) -> None:
        """Takes all copies of files of policies: plans of kept cycles name them. A damaged one is left out."""
        for path in names.visible_files(self._crawl.path / names.FILES):
            if has_digest(path) and is_whole(path):
                self._take(path.relative_to(self._crawl.path), describe(path))

    def _take_notes(self) -> None:
        """Notes the files that were set aside as damaged: the fork lacks them too."""
        for note in notes_of_damage(self._crawl.path):
            path = self._aside / note["path"]
            if path.parent.is_dir() and not path.exists():
                set_aside(self._aside, path, note["reason"])

    def _take_if_there(self, relative: Path, about: dict | None = None) -> None:
        try:
            self._take(relative, about)
        except FileNotFoundError:
            pass

    def _take(self, relative: Path, about: dict | None = None) -> None:
        """Links or copies one file. `about`: its description in a manifest; none for JSON, which has its own check."""
        source, target = self._crawl.path / relative, self._aside / relative
        if os.path.islink(source):
            source = source.resolve()
        if about and source.stat().st_size != about["bytes"]:
            raise Damaged(
                self._crawl.path / relative, f"expected {about['bytes']} bytes, found {source.stat().st_size}"
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(source, target)
            self.linked += 1
        except OSError as error:
            if error.errno not in NO_LINK:
                raise
            self._copy(source, target, about)

    def _copy(self, source: Path, target: Path, about: dict | None) -> None:
        shutil.copyfile(source, target)
        shutil.copystat(source, target)
        if about:
            verify(target, about)
        else:
            read_json(target)
        sync_file(target)
        self.copied += 1
        self.copied_bytes += target.stat().st_size


@contextmanager
def folder_aside(crawl: CrawlFolder, target: Path):
    """An empty folder beside the target, locked by this process; removed if the fork fails."""
    expect_new(crawl, target)
    aside = target.with_name(f"{ASIDE}{NAME}-{target.name}")
    try:
        aside.mkdir(exist_ok=True)
    except FileNotFoundError:
        raise Usage(f"{target.parent}: no such folder; make it first") from None
    descriptor = os.open(aside, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Locked(f"{target}: another fork is being made there; try again when it has ended") from None
        if not is_same_file(descriptor, aside):
            raise Locked(f"{target}: another fork has just been made there")
        for leftover in aside.iterdir():  # of a fork that was killed
            shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
        try:
            yield aside, target
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise
    finally:
        os.close(descriptor)


def expect_new(crawl: CrawlFolder, target: Path) -> None:
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise Usage(f"{target} exists and is not empty: name an empty or a new folder")
    if os.path.ismount(target):
        raise Usage(f"{target} is where a file system is mounted: name a new folder below it")
    expect_outside(target)


def sync_folders(root: Path) -> None:
    """Makes all files durable in their folders before the root gets its name."""
    for folder, _, _ in os.walk(root, topdown=False):
        sync_folder(Path(folder))


def rename_over(aside: Path, target: Path) -> None:
    try:
        aside.rename(target)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise
        raise Usage(
            f"{target} was made by another process meanwhile and is not empty: name an empty or a new folder"
        ) from None
    sync_folder(target.parent)


if __name__ == "__main__":
    run(main, NAME)
