"""What may be deleted, and when (rule 7)."""

from .log import whole
from .web import block_of


class Deletion:
    """Part of the protocol: the supervisor's tidying, in a thread, while cycles are planned, run and committed."""

    def tidy(self, look, opened):
        """Look, sync log/, then remove: what the look found removable stays so, whoever commits meanwhile."""
        state = self.read_log(look)
        return (*self.sync_log_before_deletion(), *self.removals(look, state, opened))

    def sync_log_before_deletion(self):
        return (("sync", "log"),)

    def removals(self, look, state, opened):
        steps, kept = [], list(self.kept_generations(look, state))
        for cycle in self.cycles(look):
            if cycle in state.closed and cycle not in opened:
                steps += self.cycle_removals(look, state, cycle, kept)
        for block in self.blocks(look):
            for generation in self.removable_generations(look, state, block, opened):
                steps += self.remove_folder(look, f"R/{block}/{generation[1]}")
        return steps + [("unlink", f"R/text/{cycle}") for cycle in self.removable_text(look, opened)]

    def blocks(self, look):
        """The numbers that have a folder in R, of a split that did not come to its commit too."""
        return [int(name) for name in look.names("R") if name.isdigit()]

    def cycle_removals(self, look, state, cycle, kept):
        """Of a cycle that is closed: plans always, the list and AUX once nobody needs them.

        Pages of a committed cycle stay. An abandoned or void cycle leaves nothing.
        """
        position, folder = state.closed[cycle], f"cycles/{cycle}"
        steps, left = [], 0
        for name in look.names(folder):
            path = f"{folder}/{name}"
            if not look.is_folder(path):
                steps.append(("unlink", path))
            elif self.stays(look, state, position, name, kept):
                left += 1
            else:
                steps += self.remove_folder(look, path)
        return steps if left else [*steps, ("rmdir", folder)]

    def stays(self, look, state, position, stage, kept):
        kind = state.entries[position].kind
        if position in state.void:
            return False
        if stage == "fetcher":
            return kind == "crawl"
        if stage == "scheduler" or kind not in ("crawl", "seed", "reconsider"):
            return False
        return self.is_owed(look, state, position, kept)

    def is_owed(self, look, state, position, kept):
        """Does a kept generation, or a block without one, still have rows of this entry to take?"""
        rows = self.offered(look, state.entries[position])
        return any(seen <= position and self.in_block(rows, block, n) for block, n, seen in kept)

    def in_block(self, rows, block, n):
        return any(block_of(self.web.keys[row[0]], n) == block for row in rows)

    def kept_generations(self, look, state):
        """(block, N, seen) of every generation that is there, and of every block that has none.

        A generation's interval is that of its own N: a parent that is kept after its split is
        still as wide as it was.
        """
        for block, (generation, seen) in state.live.items():
            if generation is None:
                yield block, state.n, seen
        for made in self.generations(look):
            if (made.block, made.cycle) in state.born:
                yield made.block, made.n, made.seen

    def generations(self, look):
        """All that have a manifest, whatever the log says of them."""
        for block in self.blocks(look):
            for cycle in look.names(f"R/{block}"):
                if look.has(f"R/{block}/{cycle}/manifest"):
                    yield whole(look, f"R/{block}/{cycle}/rows")

    def removable_generations(self, look, state, block, opened):
        """All but the live one, `keep` superseded ones, and those that an open plan names.

        Open means: not in the log, or its stage has not ended. A verifier that died after its commit
        is started again, and reads its parent again; keeping that also keeps the AUX it has yet to see.
        """
        cycles = [int(name) for name in look.names(f"R/{block}")]
        born = sorted((state.born[block, c], c) for c in cycles if (block, c) in state.born)
        stale = [(block, c) for _, c in born[: -1 - self.setting.keep]]
        never = [(block, c) for c in cycles if (block, c) not in state.born and c not in opened]
        needed = self.needed_generations(look, opened)
        return [generation for generation in stale + never if generation not in needed]

    def needed_generations(self, look, opened):
        return {look.read(f"cycles/{cycle}/plan").generation for cycle in opened}

    def removable_text(self, look, opened):
        """Segments that no generation names, of whatever block: both children of a split name the parent's.

        A verifier at work has written its segment and not yet the generation that will name it.
        """
        named = {cycle for made in self.generations(look) for cycle in made.text}
        return [c for c in map(int, look.names("R/text")) if c not in named and c not in opened]
