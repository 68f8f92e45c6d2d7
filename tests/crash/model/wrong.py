"""Wrong variants of publishing, log, plans and seeds (rules 1, 2, 3, 8, 10); wrong_turns.py has the rest.

Each derives from the right protocol and changes one thing; the exploration must catch it.
"""
from .log import Entry
from .protocol import Protocol
from .web import block_of, merge

WRONG = {}  # name of a variant: its class


def variant(cls):
    WRONG[cls.__name__] = cls
    return cls


# Rule 1: whole or not there.


@variant
class ManifestBeforeFilesAreSynced(Protocol):
    def publish(self, look, folder, files):
        steps = super().publish(look, folder, files)
        late = tuple(step for step in steps if step in [("fsync", f"{folder}/{name}") for name, _ in files])
        return (*(step for step in steps if step not in late), *late)


@variant
class ManifestBeforeFolderIsSynced(Protocol):
    def publish(self, look, folder, files):
        steps = list(super().publish(look, folder, files))
        if ("sync", folder) in steps[:-1]:
            steps.remove(("sync", folder))
        return tuple(steps)


@variant
class FolderAboveNotSynced(Protocol):
    def open_folder(self, look, folder):
        return super().open_folder(look, folder)[:-1]


@variant
class FoundManifestNotSynced(Protocol):
    def adopt(self, look, folder):
        return ()


@variant
class AsideIsWrittenInPlace(Protocol):
    """The name aside of a dead writer may be a second name of what is published."""

    def put_new(self, path, content):
        return (("write", path + ".new", content), *super().put_new(path, content)[1:])

    def commit(self, look, entry):
        create, *steps = super().commit(look, entry)
        return (("write", *create[1:]), *steps)


@variant
class FilesRemovedBeforeManifest(Protocol):
    def remove_folder(self, look, folder):
        steps = super().remove_folder(look, folder)
        first = ("unlink", f"{folder}/manifest")
        return (*(s for s in steps[:-1] if s != first), *(s for s in steps if s == first), steps[-1])


@variant
class RemovedManifestNotSynced(Protocol):
    def settle_removal(self, folder):
        return []


@variant
class HalfRemovedFolderNotSyncedAtStart(Protocol):
    """Its manifest may come back, after AUX that only this generation needed is gone."""

    def remove_half_removed(self, look, state):
        return []


# Rule 2: the log.


@variant
class LogEntryOverwrites(Protocol):
    def link_entry(self, aside, number):
        return ("rename", aside, f"log/{number}")

    def take_number(self, look, aside):
        return (*super().take_number(look, aside), ("sync", "log"))


@variant
class LogNotSyncedBeforeCommit(Protocol):
    def take_number(self, look, aside):
        return super().take_number(look, aside)[1:]


@variant
class NumberTakenAfterSync(Protocol):
    """Another process may commit between the sync and the look: its entry is not covered."""

    def take_number(self, look, aside):
        return (("sync", "log"), ("call", "take_number_now", aside))

    def take_number_now(self, look, aside):
        return super().take_number(look, aside)[1:]


@variant
class LogNotSyncedAfterCommit(Protocol):
    def link_entry(self, aside, number):
        link, old, new, made, exists = super().link_entry(aside, number)
        return (link, old, new, tuple(step for step in made if step[0] != "sync"), exists)


@variant
class LogNotSyncedAfterCommitButForSeeds(Protocol):
    def commit(self, look, entry):
        if entry.kind == "seed":
            return super().commit(look, entry)
        steps = super().commit(look, entry)
        return (*steps[:-1], ("call", "take_number_unsynced", *steps[-1][2:]))

    def take_number_unsynced(self, look, aside):
        sync, (link, old, new, made, _) = self.take_number(look, aside)
        return (sync, (link, old, new, made[:-1], (("call", "take_number_unsynced", aside),)))


@variant
class SecondEntryOfCycleCounts(Protocol):
    """The last entry of a cycle says what became of it: a commit is followed by an abandon."""

    def is_repeated(self, entry, closed):
        return False

    def replay(self, entries):
        last = {entry.cycle: position for position, entry in enumerate(entries)}
        return super().replay(entries)._replace(closed=last)


@variant
class VoidAuxIsTaken(Protocol):
    def slices(self, look, state, block, n, first, last):
        return super().slices(look, state._replace(void=frozenset()), block, n, first, last)


@variant
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


@variant
class PlanBeforeLogIsSynced(Protocol):
    def sync_log(self):
        return ()


@variant
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


@variant
class PlanNotFixed(Protocol):
    """A rerun of the verifier absorbs up to where the log is by then."""

    def absorb_up_to(self, look, plan):
        return len(self.read_log(look).entries)


@variant
class SeenIsLengthAtCommit(Protocol):
    def commit(self, look, entry):
        if entry.kind in ("crawl", "absorb"):
            entry = entry._replace(seen=len(self.read_log(look).entries))
        return super().commit(look, entry)


@variant
class IdsFromLogAlone(Protocol):
    """Ids of open plans are given out again after a crash; the plan is written by rename."""

    def next_id(self, look, state):
        return 1 + max([0, *state.closed])

    def write_plan(self, cycle, plan):
        path, folder = f"cycles/{cycle}/plan", f"cycles/{cycle}"
        steps = (("create", path + ".new", plan), ("fsync", path + ".new"), ("rename", path + ".new", path))
        return (("call", "open_folder", folder), *steps, ("sync", folder))


# Rule 8: start-up.


@variant
class OpenCyclesNotSyncedAtStart(Protocol):
    def keep_open_cycles(self, look, state):
        return []


@variant
class LockNotInherited(Protocol):
    lock_is_inherited = False


# Rule 10: seeds.


@variant
class SeedDeletedBeforeEntryIsSynced(Protocol):
    def take_seed(self, look, name):
        steps = super().take_seed(look, name)
        return steps if steps[0][0] == "sync" else steps[:-1]

    def commit(self, look, entry: Entry):
        steps = super().commit(look, entry)
        if entry.kind != "seed":
            return steps
        return (*steps[:-1], ("call", "take_number_for_seed", entry.seed, *steps[-1][2:]))

    def take_number_for_seed(self, look, name, aside):
        sync, (link, old, new, made, _) = self.take_number(look, aside)
        again = (("call", "take_number_for_seed", name, aside),)
        return (sync, (link, old, new, (("unlink", f"inbox/{name}"), *made), again))


@variant
class SeedTakenAgain(Protocol):
    def is_taken(self, state, name):
        return False
