"""Wrong variants of turns, growth, deletion, abandoning, decisions and forks (rules 4, 6, 7, 9, 10, 12)."""

from .log import Entry
from .protocol import Protocol
from .web import merge, take_back
from .wrong import caught

# Rules 4 and 6: turns and growth.


@caught("races", "refetched")
class HeldBlockIsPlanned(Protocol):
    def held(self, opened):
        return set()


@caught("walks", "refetched", "routing", seed=0)
class HeldBlockIsSplit(Protocol):
    def unsplittable(self, held):
        return set()


@caught("walks", "generation", "rows", seed=1)
class HeldBlockIsSplitAndOrphanCounts(HeldBlockIsSplit):
    """Two mistakes: without the rule about parents that are not live the first costs rows."""

    def is_orphan(self, entry, n, live):
        return False


@caught("crash in flight", "rows")
class ChildrenHaveSeenAll(Protocol):
    def inherited(self, look, parent):
        return len(self.read_log(look).entries)


@caught("walks", "rows", "aux", seed=0)
class ChildrenHaveSeenNothing(Protocol):
    def inherited(self, look, parent):
        return 0


# Rule 7: deletion.


@caught("walks", "rows", "generation", seed=185)
class DeletionBeforeLogIsSynced(Protocol):
    def sync_log_before_deletion(self):
        return ()


@caught("walks", "rows", "text", seed=0)
class DeletionLooksAfterSync(Protocol):
    def tidy(self, look, opened):
        return (("sync", "log"), ("call", "tidy_now", opened))

    def tidy_now(self, look, opened):
        return super().tidy(look, opened)[1:]


@caught("races", "rows")
class AuxDeletedOnceOwnBlockSawIt(Protocol):
    def is_owed(self, look, state, position, kept):
        block = state.entries[position].block
        return super().is_owed(look, state, position, [k for k in kept if block is None or k[0] == block])


@caught("races", "aux")
class AuxDeletedOnceLiveGenerationsSawIt(Protocol):
    """Forgets the superseded generations that are kept."""

    def is_owed(self, look, state, position, kept):
        kept = [(block, state.n, seen) for block, (_, seen) in state.live.items()]
        return super().is_owed(look, state, position, kept)


@caught("crash in flight", "aux")
class KeptParentIsTakenForNarrow(Protocol):
    """A generation from before a split is given the interval that its block has now."""

    def kept_generations(self, look, state):
        return [(block, state.n, seen) for block, _, seen in super().kept_generations(look, state)]


@caught("kill then cut, careful", "missing")
class NewestPublishedGenerationIsKept(Protocol):
    """Superseded by what is published, not by what is in the log: the parent of an open plan goes."""

    def removable_generations(self, look, state, block, opened):
        cycles = [int(name) for name in look.names(f"R/{block}")]
        sealed = [c for c in cycles if look.has(f"R/{block}/{c}/manifest")]
        return [(block, c) for c in sorted(sealed)[: -1 - self.setting.keep]]


@caught("walks", "missing", seed=72)
class GenerationOfOpenPlanIsDeleted(Protocol):
    """Superseded by the plan's own commit, while its verifier has not ended and may be run again."""

    def needed_generations(self, look, opened):
        return ()


@caught("walks", "text", seed=1)
class TextDeletedWithItsBlock(Protocol):
    """Forgets that the other child of a split names the same segment."""

    def removable_text(self, look, opened):
        removable = super().removable_text(look, opened)
        entries = self.read_log(look).entries
        block = {entry.cycle: entry.block for entry in entries}
        named = {(made.block, cycle) for made in self.generations(look) for cycle in made.text}
        cycles = [c for c in map(int, look.names("R/text")) if c in block and c not in opened]
        return sorted({*removable, *(c for c in cycles if (block[c], c) not in named)})


@caught("walks", "text", seed=0)
class TextOfOpenCycleIsGarbage(Protocol):
    def removable_text(self, look, opened):
        return super().removable_text(look, ())


@caught("kill then cut", "text")
class TextNotSynced(Protocol):
    def publish_generation(self, look, cycle, made):
        steps = super().publish_generation(look, cycle, made)
        return tuple(step for step in steps if step != ("sync", "R/text"))


@caught("kill then cut", "text")
class TextWrittenAgain(Protocol):
    """A verifier that is run again after its generation was published replaces a segment in use."""

    def publish_generation(self, look, cycle, made):
        segment = f"R/text/{cycle}"
        again = (("create", segment, cycle), ("fsync", segment), ("sync", "R/text"))
        return (*again, super().publish_generation(look, cycle, made)[-1])


# Rule 9: trouble.


@caught("walks", "rows", seed=175)
class AbandonedListIsCharged(Protocol):
    """Each URL of an abandoned list gets a failed attempt: a fault of the machine burns the frontier."""

    def abandon(self, look, cycle):
        plan, urls, steps = look.read(f"cycles/{cycle}/plan"), (), ()
        if look.has(f"cycles/{cycle}/scheduler/manifest"):
            urls = look.read(f"cycles/{cycle}/scheduler/list")
            steps = self.adopt(look, f"cycles/{cycle}/scheduler")
        failed = (("AUX", tuple((url, 0, 1, 0) for url in urls)),)
        return (
            *steps,
            ("call", "publish", f"cycles/{cycle}/verifier", failed),
            ("call", "commit", Entry("abandon", cycle, plan.block)),
        )

    def offered(self, look, entry):
        return self.published(look, entry.cycle, "verifier", "AUX")


@caught("kill then cut", "refetched")
class CycleWithPagesIsAbandoned(Protocol):
    def is_held(self, look, cycle):
        return False


# Rule 10: decisions.


@caught("walks", "rows", seed=1)
class DecisionAfterOutcomes(Protocol):
    """A failure of the cycle that absorbs the decision is forgotten with the earlier ones."""

    def merge_turn(self, rows, decided, happened, arrived):
        return take_back(merge(rows, happened, *arrived), decided)


@caught("walks", "rows", seed=19)
class DecisionTakenTwice(Protocol):
    def decided_from(self, parent):
        return 0


@caught("walks", "rows", seed=1)
class DecisionDeletedAtOnce(Protocol):
    def stays(self, look, state, position, stage, kept):
        return state.entries[position].kind != "reconsider" and super().stays(look, state, position, stage, kept)


# Rule 12: forks.


@caught("walks", "missing", seed=19)
class ForkLinksOpenCycles(Protocol):
    def forked_files(self, look, state):
        yield from super().forked_files(look, state)
        for cycle in self.open_plans(look, self.read_log(look)):
            for name in look.names(f"cycles/{cycle}"):
                path = f"cycles/{cycle}/{name}"
                if look.is_folder(path):
                    yield from (f"{path}/{file}" for file in look.names(path))
                else:
                    yield path
