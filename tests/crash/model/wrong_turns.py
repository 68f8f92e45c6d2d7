"""Wrong variants of turns, growth, deletion, abandoning and forks (rules 4, 6, 7, 9, 12).

| not a variant of its own | because |
| --- | --- |
"""
from .protocol import Protocol
from .wrong import variant

# Rules 4 and 6: turns and growth.


@variant
class HeldBlockIsPlanned(Protocol):
    def held(self, opened):
        return set()


@variant
class HeldBlockIsSplit(Protocol):
    def unsplittable(self, held):
        return set()


@variant
class ChildrenHaveSeenAll(Protocol):
    def inherited(self, look, parent):
        return len(self.read_log(look).entries)


@variant
class ChildrenHaveSeenNothing(Protocol):
    def inherited(self, look, parent):
        return 0


# Rule 7: deletion.


@variant
class DeletionBeforeLogIsSynced(Protocol):
    def sync_log_before_deletion(self):
        return ()


@variant
class DeletionLooksAfterSync(Protocol):
    def tidy(self, look, opened):
        return (("sync", "log"), ("call", "tidy_now", opened))

    def tidy_now(self, look, opened):
        return super().tidy(look, opened)[1:]


@variant
class AuxDeletedOnceOwnBlockSawIt(Protocol):
    def is_owed(self, look, state, position, kept):
        block = state.entries[position].block
        return super().is_owed(look, state, position, [k for k in kept if block is None or k[0] == block])


@variant
class AuxDeletedOnceLiveGenerationsSawIt(Protocol):
    """Forgets the superseded generations that are kept."""

    def is_owed(self, look, state, position, kept):
        kept = [(block, state.n, seen) for block, (_, seen) in state.live.items()]
        return super().is_owed(look, state, position, kept)


@variant
class KeptParentIsTakenForNarrow(Protocol):
    """A generation from before a split is given the interval that its block has now."""

    def kept_generations(self, look, state):
        return [(block, state.n, seen) for block, _, seen in super().kept_generations(look, state)]


@variant
class NewestPublishedGenerationIsKept(Protocol):
    """Superseded by what is published, not by what is in the log: the parent of an open plan goes."""

    def removable_generations(self, look, state, block, opened):
        cycles = [int(name) for name in look.names(f"R/{block}")]
        sealed = [c for c in cycles if look.has(f"R/{block}/{c}/manifest")]
        return [(block, c) for c in sorted(sealed)[: -1 - self.setting.keep]]


@variant
class GenerationOfOpenPlanIsDeleted(Protocol):
    """Superseded by the plan's own commit, while its verifier has not ended and may be run again."""

    def needed_generations(self, look, opened):
        return ()


# Rule 9: trouble.


@variant
class AbandonedListIsNotCounted(Protocol):
    def offered(self, look, entry):
        return () if entry.kind == "abandon" else super().offered(look, entry)


@variant
class AbandonedListIsDeletedAtOnce(Protocol):
    def stays(self, look, state, position, stage, kept):
        return stage != "scheduler" and super().stays(look, state, position, stage, kept)


@variant
class AbandonedListIsCountedByBlockNumber(Protocol):
    """A child of a split does not see the list of the block that it was part of."""

    def slices(self, look, state, block, n, first, last):
        foreign = {
            position
            for position, entry in enumerate(state.entries)
            if entry.kind == "abandon" and entry.block != block
        }
        return super().slices(look, state._replace(void=state.void | foreign), block, n, first, last)


@variant
class AbandonedListWaitsForNextCrawl(Protocol):
    absorbs_abandoned_first = False


@variant
class AbandonedListIsNotSynced(Protocol):
    def abandon(self, look, cycle):
        return super().abandon(look, cycle)[-1:]


# Rule 12: forks.


@variant
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
