"""Wrong variants of publishing, log, plans, start-up and seeds (rules 1, 2, 3, 8, 10).

Each derives from the right protocol and changes one thing. Its decorator names the search that
catches it and the promises (kinds of Violation) that it is caught breaking; wrong_turns.py has the
variants of the other rules.

Variants that nothing catches, because another rule covers them, are in covered.py with the reason.
"""

from typing import NamedTuple

from .protocol import Protocol
from .web import block_of, merge


class Caught(NamedTuple):
    cls: type
    search: str  # the search that catches it
    kinds: tuple  # the promises that it is caught breaking
    seed: int | None  # of the walk that caught it when this was written: tried first, to save time


WRONG = {}  # name of a variant: Caught


def caught(search, *kinds, seed=None):
    def register(cls):
        WRONG[cls.__name__] = Caught(cls, search, kinds, seed)
        return cls

    return register


# Rule 1: whole or not there.


@caught("races", "named")
class ManifestBeforeFilesAreSynced(Protocol):
    def publish(self, look, folder, files):
        steps = super().publish(look, folder, files)
        late = tuple(step for step in steps if step in [("fsync", f"{folder}/{name}") for name, _ in files])
        return (*(step for step in steps if step not in late), *late)


@caught("crash", "named")
class ManifestBeforeFolderIsSynced(Protocol):
    def publish(self, look, folder, files):
        steps = list(super().publish(look, folder, files))
        if ("sync", folder) in steps[:-1]:
            steps.remove(("sync", folder))
        return tuple(steps)


@caught("kill then cut", "generation")
class FolderAboveNotSynced(Protocol):
    def open_folder(self, look, folder):
        return super().open_folder(look, folder)[:-1]


@caught("kill then cut", "generation")
class FoundManifestNotSynced(Protocol):
    def adopt(self, look, folder):
        return ()


@caught("kill then cut", "torn")
class AsideIsWrittenInPlace(Protocol):
    """The name aside of a dead writer may be a second name of what is published."""

    def put_new(self, path, content):
        return (("write", path + ".new", content), *super().put_new(path, content)[1:])

    def commit(self, look, entry):
        create, *steps = super().commit(look, entry)
        return (("write", *create[1:]), *steps)


@caught("kill then cut", "named")
class FilesRemovedBeforeManifest(Protocol):
    def remove_folder(self, look, folder):
        steps = super().remove_folder(look, folder)
        first = ("unlink", f"{folder}/manifest")
        return (*(s for s in steps[:-1] if s != first), *(s for s in steps if s == first), steps[-1])


@caught("kill then cut", "named")
class RemovedManifestNotSynced(Protocol):
    def settle_removal(self, folder):
        return []


@caught("kill then cut, careful", "aux")
class HalfRemovedFolderNotSyncedAtStart(Protocol):
    """Its manifest may come back, after AUX that only this generation needed is gone."""

    def remove_half_removed(self, look, state):
        return []


# Rule 2: the log.


@caught("races", "seen", "missing")
class LogEntryOverwrites(Protocol):
    def link_entry(self, aside, number):
        return ("rename", aside, f"log/{number}")

    def take_number(self, look, aside):
        return (*super().take_number(look, aside), ("sync", "log"))


@caught("races", "gap")
class LogNotSyncedBeforeCommit(Protocol):
    def take_number(self, look, aside):
        return super().take_number(look, aside)[1:]


@caught("races", "gap")
class NumberTakenAfterSync(Protocol):
    """Another process may commit between the sync and the look: its entry is not covered."""

    def take_number(self, look, aside):
        return (("sync", "log"), ("call", "take_number_now", aside))

    def take_number_now(self, look, aside):
        return super().take_number(look, aside)[1:]


@caught("walks", "seeds", seed=8)
class LogNotSyncedAfterCommit(Protocol):
    def link_entry(self, aside, number):
        link, old, new, made, exists = super().link_entry(aside, number)
        return (link, old, new, tuple(step for step in made if step[0] != "sync"), exists)


@caught("kill then cut", "pages")
class SecondEntryOfCycleCounts(Protocol):
    """The last entry of a cycle says what became of it: a commit is followed by an abandon."""

    def is_repeated(self, entry, closed):
        return False

    def replay(self, entries):
        last = {entry.cycle: position for position, entry in enumerate(entries)}
        return super().replay(entries)._replace(closed=last)


@caught("crash", "rows")
class VoidAuxIsTaken(Protocol):
    def slices(self, look, state, block, n, first, last):
        return super().slices(look, state._replace(void=frozenset()), block, n, first, last)


@caught("walks", "rows", seed=9)
class AuxSeenBeforeCommit(Protocol):
    """Readers take every AUX that has a manifest."""

    def slices(self, look, state, block, n, first, last):
        early = []
        for cycle in self.cycles(look):
            if cycle not in state.closed:
                rows = self.published(look, cycle, "verifier", "AUX")
                early += [row for row in rows if block_of(self.web.keys[row[0]], n) == block]
        return merge(super().slices(look, state, block, n, first, last), early)


# Rule 3: plans.


@caught("walks", "missing", seed=19)
class PlanBeforeLogIsSynced(Protocol):
    def sync_log(self):
        return ()


@caught("crash", "pages")
class PlanFolderNotSynced(Protocol):
    def write_plan(self, cycle, plan):
        return super().write_plan(cycle, plan)[:-1]


@caught("walks", "missing", seed=21)
class PlanLooksAfterSync(Protocol):
    """What came into the log between the sync and the look is planned on, and may vanish."""

    def sync_log(self):
        return ()

    def plan(self, look, kind, block):
        return (("sync", "log"), ("call", "plan_now", kind, block))

    def plan_now(self, look, kind, block):
        return super().plan(look, kind, block)

    def plan_verifier(self, look, cycle):
        return (("sync", "log"), ("call", "plan_verifier_now", cycle))

    def plan_verifier_now(self, look, cycle):
        return super().plan_verifier(look, cycle)


@caught("races", "seen")
class PlanNotFixed(Protocol):
    """A rerun of the verifier absorbs up to where the log is by then."""

    def absorb_up_to(self, look, plan):
        return len(self.read_log(look).entries)


@caught("races", "seen")
class SeenIsLengthAtCommit(Protocol):
    def commit(self, look, entry):
        if entry.kind in ("crawl", "absorb"):
            entry = entry._replace(seen=len(self.read_log(look).entries))
        return super().commit(look, entry)


@caught("walks", "missing", "refetched", "routing", "rows", seed=0)
class IdsFromLogAlone(Protocol):
    """Ids of open plans are given out again after a crash; the plan is written by rename."""

    def next_id(self, look, state):
        return 1 + max([0, *state.closed])

    def write_plan(self, cycle, plan):
        path, folder = f"cycles/{cycle}/plan", f"cycles/{cycle}"
        steps = (("create", path + ".new", plan), ("fsync", path + ".new"), ("rename", path + ".new", path))
        return (("call", "open_folder", folder), *steps, ("sync", folder))


# Rule 8: start-up.


@caught("walks", "refetched", "pages", "seen", seed=384)
class OpenCyclesNotSyncedAtStart(Protocol):
    def keep_open_cycles(self, look, state):
        return []


@caught("walks", "missing", seed=2)
class LockNotInherited(Protocol):
    lock_is_inherited = False


# Rule 10: seeds.


@caught("walks", "seeds", seed=47)
class SeedDeletedBeforeEntryIsSynced(Protocol):
    def take_seed(self, look, name):
        steps = super().take_seed(look, name)
        return steps if steps[0][0] == "sync" else steps[:-1]

    def commit(self, look, entry):
        steps = super().commit(look, entry)
        if entry.kind != "seed":
            return steps
        return (*steps[:-1], ("call", "take_number_for_seed", entry.seed, *steps[-1][2:]))

    def take_number_for_seed(self, look, name, aside):
        sync, (link, old, new, made, _) = self.take_number(look, aside)
        again = (("call", "take_number_for_seed", name, aside),)
        return (sync, (link, old, new, (("unlink", f"inbox/{name}"), *made), again))


@caught("kill then cut", "seeds")
class SeedTakenAgain(Protocol):
    def is_taken(self, state, name):
        return False


@caught("walks", "seeds", seed=6)
class SeedReportedBeforeInboxIsSynced(Protocol):
    def leave_seed(self, look, name, urls):
        return tuple(step for step in super().leave_seed(look, name, urls) if step[0] != "sync")
