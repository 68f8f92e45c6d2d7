"""Forking a crawl at a position of its log (rule 12)."""

from .files import View


class Fork:
    """Part of the protocol: links from one crawl folder into another, under the source's lock."""

    def forkable(self, look):
        """The log positions at which every live generation is still there.

        What such a generation has yet to take is then there too (rule 7). Nobody guards that for a
        block that had no generation then and has one now: such a position is gone.
        """
        now = self.read_log(look)
        lengths = range(1, len(now.entries) + 1)
        return [length for length in lengths if self.is_kept(look, now, self.replay(now.entries[:length]))]

    def is_kept(self, look, now, then):
        for block, (generation, _) in then.live.items():
            if generation is None:
                if now.live[block][0] is not None:
                    return False
            elif not look.has(f"R/{block}/{generation[1]}/manifest"):
                return False
        return True

    def fork(self, top, source, target, length):
        """`source` and `target` are names in the folder `top`; crawl.json last makes the fork exist."""
        look = View(top.files, top.files.find(source, top.base))
        entries = self.read_log(look).entries[:length]
        state = self.replay(entries)
        made = [target]
        made += [f"{target}/{name}" for name in ("log", "inbox", "cycles", "R")]
        made += [f"{target}/R/{name}" for name in ("text", *state.live)]
        links = []
        for path in self.forked_files(look, state):
            parts = f"{target}/{path}".split("/")
            for depth in range(2, len(parts)):
                if (folder := "/".join(parts[:depth])) not in made:
                    made.append(folder)
            links.append(("link", f"{source}/{path}", f"{target}/{path}", (), ()))
        steps = [*(("mkdir", folder) for folder in made), *links, *(("sync", folder) for folder in made)]
        for number in range(length):
            steps.append(("link", f"{source}/log/{number}", f"{target}/log/{number}", (), ()))
        steps += [("sync", f"{target}/log"), ("create", f"{target}/crawl.json", "crawl")]
        steps += [("fsync", f"{target}/crawl.json"), ("sync", target), ("sync", "")]
        return tuple(steps)

    def forked_files(self, look, state):
        """Live generations, pages of committed cycles, what blocks have yet to take; nothing that is open."""
        for generation, _ in state.live.values():
            if generation is not None:
                yield from self.named(look, f"R/{generation[0]}/{generation[1]}")
        yield from sorted({
            f"R/text/{cycle}"
            for generation, _ in state.live.values()
            for cycle in self.generation(look, generation).text
        })  # fmt: skip
        for position, entry in enumerate(state.entries):
            if position not in state.void:
                for stage in ("scheduler", "fetcher", "verifier"):
                    if self.stays_in_fork(entry, stage):
                        yield from self.named(look, f"cycles/{entry.cycle}/{stage}")

    def stays_in_fork(self, entry, stage):
        return stage != "scheduler" and entry.kind in ("crawl", "seed", "reconsider")

    def named(self, look, folder):
        """What the folder's manifest names, and then the manifest."""
        if look.has(f"{folder}/manifest"):
            for name, _ in look.read(f"{folder}/manifest"):
                yield f"{folder}/{name}"
            yield f"{folder}/manifest"
