"""Variants that break a rule and do no harm, because another rule covers them: why each was written twice.

Each variant, and why nothing catches it:

- OrphanCounts: An entry whose parent is not live is never written while held blocks are neither planned nor split (rule
  4) and orphans keep the lock (rule 8). The rule is the second line: if a held block is split all the same, it costs
  pages fetched in vain with it, generations without it (HeldBlockIsSplitAndOrphanCounts).
- SecondEntryCountsUnlessAbandon: The parent of a second `crawl`, `absorb` or `grow` entry is no longer live, so it is
  void anyway. Only the abandon of a committed cycle needs the rule that a cycle has one entry
  (SecondEntryOfCycleCounts).
- LogNotSyncedAfterCommitButForSeeds: The next plan, the next deletion and start-up sync log/ themselves. The sync is
  still wanted: without it a verifier's exit code 0 says nothing, and Done could be reported on an entry that a power
  cut takes back, if nothing were left to delete.
- SeenTakenFromGeneration: A verifier that works out p anew does no harm if its entry takes `seen` from the generation
  that it found published: the two agree, whichever run wrote them. The plan is needed for the same bytes, not for the
  rows.
- KnownSeedRemovedWithoutSync: Start-up synced log/ before the inbox was looked at, and the same supervisor synced after
  its commit.
- (the protocol as it is): Removal of garbage at start-up is not synced, though its id is given out again: the new
  folder is another inode, and its making syncs cycles/ before anything is built on it, which ends the old one. On a
  store without inodes a deletion would have to be final.
- (the protocol as it is): Deleted files and folders are not synced after the manifest's removal is: what comes back is
  garbage again.
"""

from .protocol import Protocol


class OrphanCounts(Protocol):
    def is_orphan(self, entry, n, live):
        return False


class SecondEntryCountsUnlessAbandon(Protocol):
    def is_repeated(self, entry, closed):
        return entry.kind == "abandon" and super().is_repeated(entry, closed)


class LogNotSyncedAfterCommitButForSeeds(Protocol):
    def commit(self, look, entry):
        *steps, number = super().commit(look, entry)
        if entry.kind != "seed":
            number = ("call", "take_number_unsynced", *number[2:])
        return (*steps, number)

    def take_number_unsynced(self, look, aside):
        sync, (link, old, new, made, _) = self.take_number(look, aside)
        again = (("call", "take_number_unsynced", aside),)
        return (sync, (link, old, new, tuple(step for step in made if step[0] != "sync"), again))


class SeenTakenFromGeneration(Protocol):
    def absorb_up_to(self, look, plan):
        return len(self.read_log(look).entries)

    def commit(self, look, entry):
        if entry.kind in ("crawl", "absorb"):
            entry = entry._replace(seen=self.generation(look, (entry.block, entry.cycle)).seen)
        return super().commit(look, entry)


class KnownSeedRemovedWithoutSync(Protocol):
    def take_seed(self, look, name):
        return tuple(step for step in super().take_seed(look, name) if step != ("sync", "log"))


COVERED = (
    OrphanCounts,
    SecondEntryCountsUnlessAbandon,
    LogNotSyncedAfterCommitButForSeeds,
    SeenTakenFromGeneration,
    KnownSeedRemovedWithoutSync,
)
