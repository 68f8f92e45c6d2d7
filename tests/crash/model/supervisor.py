"""The supervisor: start-up, plans, turns, seeds, growth, trouble (rules 3, 4, 6, 8, 9, 10, 11).

It keeps nothing in memory that the files do not say, but for the deaths that it counted. A careful
one looks, when a stage has died, whether its commit came through; a careless one starts the stage
again, or abandons the cycle, without looking. The rules must hold for both: the first frees a block
whose entry nobody synced, the second commits a cycle twice.
"""

from typing import NamedTuple

from .log import Entry
from .web import take_back, victim


class Plan(NamedTuple):
    cycle: int
    kind: str  # crawl, absorb, grow
    block: int
    n: int
    generation: tuple | None  # the block's live generation


class Verification(NamedTuple):
    """verifier.plan: what fixes the verifier's bytes."""

    kind: str
    block: int
    n: int
    parent: tuple | None
    p: int  # absorb the log entries before this position


class Generation(NamedTuple):
    cycle: int | None
    block: int | None
    n: int | None  # with the block this gives the interval of keys
    seen: int
    rows: tuple
    text: tuple = ()  # the segments in R/text that its rows point into, by the cycle that wrote them


class Supervisor:
    """Part of the protocol: what the one supervisor does."""

    # Start-up, under the lock: nobody else runs.

    def startup(self, look):
        """Sync all that is going to be built on, then remove garbage.

        An id of garbage may be given out again, though its removal was not synced: the new folder is
        another inode, and the sync of cycles/ that follows its making ends the old one for good.
        """
        state = self.read_log(look)
        steps = [("unlink", f"log/{name}") for name in look.names("log") if name.endswith(".new")]
        steps += [("sync", "log"), *self.keep_open_cycles(look, state)]
        steps += self.remove_half_removed(look, state)
        for cycle in self.cycles(look):
            if cycle not in state.closed and not look.has(f"cycles/{cycle}/plan"):
                steps += self.remove_cycle(look, cycle)
        return (*steps, ("loop",))

    def keep_open_cycles(self, look, state):
        """What dead processes left in open cycles is seen; sync it, so that it is also kept."""
        steps = [("sync", "cycles")]
        for cycle in self.open_plans(look, state):
            folder = f"cycles/{cycle}"
            for name in look.names(folder):
                if look.has(f"{folder}/{name}/manifest"):
                    steps += self.adopt(look, f"{folder}/{name}")
                elif name.endswith(".new"):
                    steps.append(("unlink", f"{folder}/{name}"))
            steps.append(("sync", folder))
        return steps

    def remove_half_removed(self, look, state):
        """Generations whose manifest a dead supervisor took away: synced before anybody counts on it."""
        steps, opened = [], self.open_plans(look, state)
        for block in self.blocks(look):
            for cycle in look.names(f"R/{block}"):
                if int(cycle) not in opened and not look.has(f"R/{block}/{cycle}/manifest"):
                    steps += self.remove_folder(look, f"R/{block}/{cycle}")
        return steps

    def remove_cycle(self, look, cycle):
        folder, steps = f"cycles/{cycle}", []
        for name in look.names(folder):
            if look.is_folder(f"{folder}/{name}"):
                steps += self.remove_folder(look, f"{folder}/{name}")
            else:
                steps.append(("unlink", f"{folder}/{name}"))
        return [*steps, ("rmdir", folder)]

    def cycles(self, look):
        return sorted(int(name) for name in look.names("cycles"))

    def next_id(self, look, state):
        return 1 + max([0, *state.closed, *self.cycles(look)])

    def open_plans(self, look, state, unfinished=()):
        """Plans of cycles that have no entry in the log, or whose stage has not ended."""
        cycles = [c for c in self.cycles(look) if c not in state.closed or c in unfinished]
        return {c: look.read(f"cycles/{c}/plan") for c in cycles if look.has(f"cycles/{c}/plan")}

    # The loop: everything that could be done now, the most urgent first.

    def actions(self, look, running, deaths, dead):
        """`running`: cycles with a stage; `deaths`: how often their stages died; `dead`: not started again."""
        state, out = self.read_log(look), []
        opened = self.open_plans(look, state, (*running, *dead))
        for cycle, plan in opened.items():
            if cycle in dead and cycle in state.closed and self.setting.careful:
                out.append((("forget", cycle),))
            elif cycle in dead and deaths[cycle] >= self.setting.deaths_max:
                if not self.is_held(look, cycle):
                    out.append((("call", "abandon", cycle), ("forget", cycle)))
            elif cycle in dead:
                out.append((("spawn", cycle, dead[cycle]),))
            elif cycle not in running:
                out.append(self.next_stage(look, cycle, plan))
        for name in look.names("inbox"):
            if not name.startswith("."):
                out.append((("call", "take_seed", name),))
        if len(opened) < self.setting.workers:
            out += self.turns(look, state, self.held(opened))
        if out or self.removals(look, state, opened):
            return [*out, (("delete", tuple(opened)),)]
        if opened and all(cycle in dead and cycle not in running for cycle in opened):
            return [(("stop",),)]  # every open cycle is held: the next run tries again
        return [(("wait",),)] if opened else [(("done",),)]

    def is_held(self, look, cycle):
        """A cycle that has pages is not abandoned when its stage keeps dying: it waits for the next run."""
        pages = f"cycles/{cycle}/fetcher/pages"
        return look.has(pages) and look.read(pages) != ()

    def held(self, opened):
        return {plan.block for plan in opened.values()}

    def next_stage(self, look, cycle, plan):
        if plan.kind == "grow":
            return (("spawn", cycle, "splitter"),)
        stages = ("scheduler", "fetcher") if plan.kind == "crawl" else ()
        for stage in stages:
            if not look.has(f"cycles/{cycle}/{stage}/manifest"):
                return (("spawn", cycle, stage),)
        if not look.has(f"cycles/{cycle}/verifier.plan"):
            return (("call", "plan_verifier", cycle),)
        return (("spawn", cycle, "verifier"),)

    def turns(self, look, state, held):
        """One plan a free block that has something to do, oldest turn first."""
        out, growing = [], self.growing(look, state)
        if growing is not None and growing not in self.unsplittable(held):
            out.append((("call", "plan", "grow", growing),))
        ages = dict.fromkeys(range(state.n), -1)
        for position, entry in enumerate(state.entries):
            if entry.kind in ("crawl", "abandon") and position not in state.void:
                ages[entry.block] = position
        for block in sorted(ages, key=lambda b: (ages[b], b)):
            if block not in held and block != growing and (kind := self.turn(look, state, block)):
                out.append((("call", "plan", kind, block),))
        return out

    def unsplittable(self, held):
        return held

    def growing(self, look, state):
        """The block to split, if one passed its bound: whatever the victim itself holds."""
        if state.n >= self.setting.n_max:
            return None
        sizes = [len(self.generation(look, state.live[b][0]).rows) for b in range(state.n)]
        return victim(state.n) if max(sizes) > self.setting.rows_max else None

    def turn(self, look, state, block):
        """crawl, absorb or nothing."""
        generation, seen = state.live[block]
        rows = self.generation(look, generation).rows
        if self.waiting(rows):
            return "crawl"
        if self.slices(look, state, block, state.n, seen, len(state.entries)):
            return "absorb"
        decided = self.decisions(look, state, seen, len(state.entries))
        return "absorb" if take_back(rows, decided) != rows else None

    # What it does. Each looks first and syncs log/ after, so the sync covers all that it looked at.

    def plan(self, look, kind, block):
        state = self.read_log(look)
        cycle = self.next_id(look, state)
        plan = Plan(cycle, kind, block, state.n, state.live[block][0])
        return (*self.sync_log(), *self.write_plan(cycle, plan))

    def sync_log(self):
        return (("sync", "log"),)

    def write_plan(self, cycle, plan):
        return (("mkdir", f"cycles/{cycle}"), *self.put_new(f"cycles/{cycle}/plan", plan), ("sync", "cycles"))

    def plan_verifier(self, look, cycle):
        state = self.read_log(look)
        plan = look.read(f"cycles/{cycle}/plan")
        fixed = Verification(plan.kind, plan.block, state.n, plan.generation, len(state.entries))
        return (*self.sync_log(), *self.put_new(f"cycles/{cycle}/verifier.plan", fixed))

    def abandon(self, look, cycle):
        """Charges nobody: the list of the next cycle may have the same URLs."""
        plan = look.read(f"cycles/{cycle}/plan")
        return (("call", "commit", Entry("abandon", cycle, plan.block)),)

    # Seeds.

    def leave_seed(self, look, name, urls):
        """bin/seed, without the lock. It reports success (`promise`) when a power cut cannot take it back."""
        aside = f"inbox/.{name}"
        return (
            ("create", aside, urls),
            ("fsync", aside),
            ("rename", aside, f"inbox/{name}"),
            ("sync", "inbox"),
            ("promise", name),
        )

    def take_seed(self, look, name):
        state = self.read_log(look)
        if self.is_taken(state, name):
            return (("sync", "log"), ("unlink", f"inbox/{name}"))
        cycle = self.next_id(look, state)
        urls = look.read(f"inbox/{name}")
        entry = Entry("reconsider" if name.startswith("r") else "seed", cycle, seed=name, ghost=urls)
        aux = tuple((url, 0, 0, 0) for url in sorted(urls))
        return (
            ("mkdir", f"cycles/{cycle}"),
            ("sync", "cycles"),
            ("call", "publish", f"cycles/{cycle}/verifier", (("AUX", aux),)),
            ("call", "commit", entry),
            ("unlink", f"inbox/{name}"),
        )

    def is_taken(self, state, name):
        return any(entry.seed == name for entry in state.entries)
