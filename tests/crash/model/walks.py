"""Random walks through the model: larger worlds, any subset of unsynced entries, forks; all from seeds."""
from random import Random

from .books import check, check_done
from .exploration import Failure
from .files import TOP
from .log import Violation
from .world import SUPERVISOR, World, new_world


def walk(protocol, seed, **options):
    """One walk from its seed; gives the number of steps, or raises Failure with the seed and the story."""
    one = Walk(protocol, Random(seed), **options)
    try:
        return one.run()
    except Violation as violation:
        raise Failure(violation, one.world, f"walk with seed {seed}") from None


class Walk:
    """One random walk: seeds of the web arrive, processes run in turns, and up to `crashes_max` crashes come."""

    def __init__(self, protocol, random, world=None, crashes_max=5, crash_rate=0.012, forks=False):
        self.protocol, self.random = protocol, random
        self.crashes_left, self.crash_rate, self.forks = crashes_max, crash_rate, forks
        self.world = world or new_world(protocol, sorted(protocol.web.seeds)[:1])
        self.current = SUPERVISOR

    def run(self, steps_max=8000):
        """To Done, with all seeds delivered; the books are checked after each crash and at the end."""
        world, steps = self.world, 0
        while True:
            steps += 1
            if steps > steps_max:
                raise Violation("endless", f"not Done after {steps} steps")
            self.deliver()
            if world.may_start():
                if not world.orphans():
                    if world.done and not world.procs:
                        check_done(world)
                        if not world.unpromised:
                            return steps
                    else:
                        check(world)
                world.start()
            if self.crashes_left and self.random.random() < self.crash_rate:
                self.crashes_left -= 1
                self.crash()
                continue
            self.step()

    def deliver(self):
        """bin/seed starts at a random time, and again after a crash that it did not survive."""
        for name in self.world.unpromised:
            if name not in self.world.procs and self.random.random() < 0.01:
                self.world.deliver(name)

    def step(self):
        world, random = self.world, self.random
        enabled = world.enabled()
        if not enabled:
            return
        if self.current not in enabled or random.random() < 0.2:
            self.current = random.choice(enabled)
        if self.current in world.orphans() and random.random() < 0.05:
            world.kill_worker(self.current)  # it noticed that its supervisor is gone
            return
        world.step(self.current, choose=self.choose)

    def choose(self, options):
        """The most urgent thing half of the time, else anything: rules must hold for every order."""
        return options[0] if self.random.random() < 0.5 else self.random.choice(options)

    def crash(self):
        world, random = self.world, self.random
        how = random.random()
        if how < 0.25 and (world.workers() or world.orphans()):
            world.kill_worker(random.choice(world.workers() + world.orphans()))
        elif how < 0.4 and SUPERVISOR in world.procs:
            world.kill_supervisor()
        elif how < 0.55:
            world.kill_all()
            if self.forks:
                self.fork()
        else:
            world.cut(self.survivors(), random.random() < 0.3)

    def survivors(self):
        pending = self.world.files.pending()
        how = self.random.random()
        if how < 0.15:
            return pending
        if how < 0.3 or not pending:
            return []
        one = self.random.choice(pending)
        if how < 0.45:
            return [one]
        if how < 0.6:
            return [other for other in pending if other != one]
        share = self.random.random()
        return [entry for entry in pending if self.random.random() < share]

    def fork(self):
        """Fork at any position that is kept, run the fork to its end; the source goes on after it."""
        source = self.world
        lengths = self.protocol.forkable(source.look())
        if not lengths:
            return
        length = self.random.choice(lengths)
        self.world = top = World(self.protocol, source.files, TOP)
        top.trace = source.trace
        top.procs["fork"] = ("fork", (("call", "fork", "crawl", "fork", length),))
        while top.procs:
            top.step("fork")
        self.world = fork = World(self.protocol, source.files, source.files.find("fork"))
        fork.trace, fork.unpromised, fork.promised = top.trace, {}, frozenset()
        if self.random.random() < 0.5:
            fork.cut([])
        for entry in self.protocol.read_log(fork.look()).entries:
            if entry.kind == "crawl":
                fork.asked.update((url, "kept") for url in entry.ghost)
        Walk(self.protocol, self.random, fork, crashes_max=2).run()
        source.trace = fork.trace
        # The power may have failed under both: pages of the source that were not synced are excused.
        source.asked = {url: how for url, how in source.asked.items() if how == "kept"}
        self.world, self.forks = source, False
