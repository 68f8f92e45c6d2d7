"""Exhaustive exploration of the model, within bounds: every run of a small world, step by step.

Theory. A world is a value, so the explorers walk a graph: from each state the process whose turn it
is takes its step, and the side roads are crashes and switches to another process. States already
met (with as many crashes and switches left) are not walked again. Each explorer is exhaustive in its
own direction, because all directions at once would be millions of states:

- OneCrash: a crash at every step: a kill of one, of the supervisor, of all; power cuts that keep all, none, each one,
  or all but each one of the entries last changed
- TwoCrashes: every pair of crashes (cuts keep all or none), the second within the recovery from the first
- KillThenCut: every kill just after a name appeared or a manifest went, then a second kill or a power cut while that
  change is still not on the disk, losing it alone, with all else, or only contents
- LogRaces: any two switches between processes at steps that touch log/, and a power cut while an entry is not on the
  disk
"""

from abc import ABC, abstractmethod
from typing import NamedTuple

from .books import check, check_done
from .log import Violation
from .world import SUPERVISOR, World, new_world

STEPS_MAX = 3000  # the longest run has about 1,000


class Failure(Exception):
    """A violation with the story that led to it."""

    def __init__(self, violation, world, where):
        super().__init__(f"{violation}\n--- {where}, step by step:\n{world.story()}")
        self.violation, self.where = violation, where


class Trail(NamedTuple):
    """A state on the way, and what may still happen to it."""

    world: World
    current: object  # the process whose turn it is
    last: tuple  # the step before
    crashes: int
    switches: int
    unkept: tuple  # changed entries, not on the disk, that the next crash is about
    steps: int


class Explorer(ABC):
    crashes, switches = 1, 0

    def __init__(self, protocol):
        self.protocol, self.states = protocol, 0

    def run(self):
        """Explore all; gives the number of states, or raises Failure."""
        world = new_world(self.protocol, self.protocol.web.seeds)
        trails = [Trail(world, SUPERVISOR, ("start",), self.crashes, self.switches, (), 0)]
        seen = {}
        while trails:
            trail = trails.pop()
            try:
                while trail:
                    key = hash((trail.world.key(), trail.current, trail.switches, trail.unkept))
                    if seen.get(key, -1) >= trail.crashes:
                        break
                    seen[key] = trail.crashes
                    trails += self.side_roads(trail)
                    trail = self.step(trail)
            except Violation as violation:
                raise Failure(violation, trail.world, type(self).__name__) from None
        return len(seen)

    def step(self, trail):
        world = trail.world
        if trail.steps > STEPS_MAX:
            raise Violation("endless", f"not Done after {STEPS_MAX} steps")
        if not world.procs:
            if world.done:
                return check_done(world)
            check(world)
        if world.may_start():
            world.start()
        enabled = world.enabled()
        current = trail.current if trail.current in enabled else enabled[0]
        last = world.procs[current][1][0]
        world.step(current)
        trail = trail._replace(current=current, last=last, steps=trail.steps + 1)
        return self.forget(trail) if trail.unkept else trail

    def forget(self, trail):
        """What was not kept has been synced since: no crash is about it any more."""
        pending = trail.world.files.pending()
        unkept = tuple(entry for entry in trail.unkept if entry in pending)
        return trail._replace(unkept=unkept) if unkept else trail._replace(unkept=(), crashes=0)

    @abstractmethod
    def side_roads(self, trail):
        """The worlds that part from the trail here."""

    # The ways to stop a world; each gives a new one.

    def killed(self, world):
        for name in world.workers() + world.orphans():
            one = world.clone()
            one.kill_worker(name)
            yield one
        if world.workers():
            left = world.clone()
            left.kill_supervisor()
            yield left
        if world.procs:
            none = world.clone()
            none.kill_all()
            yield none

    def cut(self, world, survivors):
        dark = world.clone()
        dark.cut(survivors)
        return dark


class OneCrash(Explorer):
    singles = True

    def side_roads(self, trail):
        if not trail.crashes or not trail.world.changed:  # a crash before a look does what one after it does
            return
        trail = trail._replace(crashes=trail.crashes - 1)
        for world in self.killed(trail.world):
            yield trail._replace(world=world)
        for survivors in self.choices(trail.world.files):
            yield trail._replace(world=self.cut(trail.world, survivors))

    def choices(self, files):
        pending = files.pending()
        yield pending
        if pending:
            yield []
        if self.singles and len(pending) > 1:
            for one in files.recent:
                if one in pending:
                    yield [one]
                    yield [entry for entry in pending if entry != one]


class TwoCrashes(OneCrash):
    crashes, singles = 2, False
    recovery_steps = 25  # start-up, and the first stage that is resumed

    def side_roads(self, trail):
        if trail.crashes == self.crashes:
            trail = trail._replace(steps=0)
        elif trail.steps > self.recovery_steps:
            return
        yield from super().side_roads(trail)


class KillThenCut(Explorer):
    crashes = 3

    def side_roads(self, trail):
        if not trail.crashes:
            return
        world, files = trail.world, trail.world.files
        trail = trail._replace(crashes=trail.crashes - 1)
        if trail.unkept:
            pending = files.pending()
            for survivors in (pending, [entry for entry in pending if entry not in trail.unkept], []):
                yield trail._replace(world=self.cut(world, survivors), unkept=(), crashes=0)
            for name in world.workers():
                again = world.clone()
                again.kill_worker(name)
                yield trail._replace(world=again)
        elif matters(trail.last) and files.recent[0] in files.pending():
            for dead in self.killed(world):
                yield trail._replace(world=dead, unkept=(files.recent[0],))


class LogRaces(Explorer):
    switches = 2

    def side_roads(self, trail):
        world = trail.world
        entries = unsynced_entries(world)
        if trail.crashes and entries:
            pending = world.files.pending()
            for lost in ([entry] for entry in entries):
                survivors = [entry for entry in pending if entry not in lost]
                yield trail._replace(world=self.cut(world, survivors), crashes=0, switches=0)
            yield trail._replace(world=self.cut(world, []), crashes=0, switches=0)
        if trail.switches and (self.at_log(trail) or touches_log(trail.last)):
            for name in world.enabled():
                if name != trail.current:
                    yield trail._replace(world=world.clone(), current=name, switches=trail.switches - 1)

    def at_log(self, trail):
        stage = trail.world.procs.get(trail.current)
        return stage is not None and touches_log(stage[1][0])


def unsynced_entries(world):
    """Entries of the log that are seen and not kept."""
    log = world.files.find("log", world.base)
    seen, kept = world.files.tree[log], world.files.disk[log]
    if seen is kept:
        return []
    return [(log, name) for name in seen if name.isdigit() and kept.get(name) != seen[name]]


def matters(step):
    """Does this step make or end something that others build on? (Removed files are nobody's concern.)"""
    return step[0] in ("link", "mkdir", "rename") or (step[0] == "unlink" and step[1].endswith("/manifest"))


def touches_log(step):
    """Does this step read or change what processes have in common?"""
    if step[0] == "call":
        return step[1].startswith(("take_number", "plan", "tidy"))
    return step[:2] == ("sync", "log") or (step[0] == "link" and step[2].startswith("log/"))
