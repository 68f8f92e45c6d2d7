"""Random walks through the model: larger worlds, any subset of unsynced entries, forks; all from seeds.

Theory. A crash at a random step seldom hurts; the walks are a malicious operator's:

- crashes come just after a name changed, when the change is seen and not yet kept;
- a kill there is followed by a power cut while the change is still not kept, and loses just it:
  that finds processes that build on what a dead one left;
- in every other walk a process that is about to touch log/ waits until another one is, and the two
  are then interleaved at random: that finds mistakes in the order of commits.
"""

from random import Random

from .books import check, check_done, delivered
from .exploration import Failure, matters, touches_log, unsynced_entries
from .files import TOP
from .log import Violation
from .protocol import Setting
from .web import LARGE, LATE, MIRROR, POISONED, SMALL
from .world import SUPERVISOR, World, new_world

STEPS_MAX = 3000  # a walk takes about 650, the longest of 11,000 about 1,500
WORLDS = (
    Setting(web=LARGE, workers=3, n_max=4),
    Setting(web=POISONED, workers=3, n_max=3),
    Setting(web=SMALL, workers=2, n_max=3),
    Setting(web=MIRROR, workers=2, n_max=3),
    Setting(web=LATE, workers=2),
    Setting(web=LATE, workers=1),
)


def walk(protocol_class, seed):
    """One walk from its seed; gives the number of steps, or raises Failure with the seed and the story.

    72 seeds in a row have every combination of world and settings.
    """
    turn, world = divmod(seed, len(WORLDS))
    setting = WORLDS[world]._replace(keep=turn % 2, careful=turn // 2 % 2 == 1, rows_max=1 + turn // 4 % 3)
    one = Walk(protocol_class(setting), Random(seed), forks=world < 2 and turn % 3 == 0)
    try:
        return one.run()
    except Violation as violation:
        raise Failure(violation, one.world, f"walk with seed {seed}") from None


class Walk:
    def __init__(self, protocol, random, world=None, crashes_max=8, forks=False):
        self.protocol, self.random = protocol, random
        self.crashes_left, self.forks = crashes_max, forks
        self.world = world or new_world(
            protocol, [name for name in sorted(protocol.web.seeds) if name.startswith("s")][:1]
        )
        self.current, self.last = SUPERVISOR, ("start",)
        self.meets = random.random() < 0.5  # do processes wait for each other before log/?
        self.tidied = False  # was something deleted since the books were checked?
        self.unkept = []  # entries that were seen and not kept when a process was killed

    def run(self):
        """To Done, with all seeds delivered; the books are checked after each crash and at the end."""
        world, random, steps = self.world, self.random.random, 0
        while steps < STEPS_MAX:
            steps += 1
            if world.unpromised and random() < 0.01:
                self.deliver()
            if world.may_start():
                if world.done and not world.procs and not delivered(world.look()):  # none came after its look
                    check_done(world)
                    if not world.unpromised:
                        return steps
                elif not world.orphans():
                    check(world)
                world.start()
            if self.forks and random() < 0.005:
                self.fork()
            elif self.crashes_left and random() < self.rate():
                self.crashes_left -= 1
                self.crash()
            else:
                self.step()
        raise Violation("endless", f"not Done after {steps} steps")

    def deliver(self):
        """bin/seed or bin/reconsider starts at a random time, and again after a crash that it did not survive."""
        waiting = [name for name in sorted(self.world.unpromised) if name not in self.world.procs]
        if waiting:
            self.world.deliver(self.random.choice(waiting))

    # Whose turn it is.

    def step(self):
        world, random = self.world, self.random
        enabled = world.enabled()
        if not enabled:
            return
        if self.meets and len(enabled) > 1:
            enabled = self.meet(enabled)
        if self.current not in enabled or random.random() < 0.2:
            self.current = random.choice(enabled)
        if isinstance(self.current, tuple) and random.random() < 0.05:
            world.kill_worker(self.current)  # it noticed that its supervisor is gone
            return
        self.last = world.procs[self.current][1][0]
        world.step(self.current, choose=self.choose)
        if self.last[0] == "rmdir":
            self.tidied = True
        elif self.last[0] == "loop" and random.random() < (0.25 if self.tidied else 0.01):
            self.tidied = False
            check(world)

    def meet(self, enabled):
        """Those that are not at the log go first; once two are at it, they alone go, in any order."""
        steps = self.world.procs
        at_log = [name for name in enabled if touches_log(steps[name][1][0])]
        if len(at_log) > 1:
            self.current = self.random.choice(at_log)
            return at_log
        return [name for name in enabled if name not in at_log] or enabled

    def choose(self, options):
        """The most urgent thing half of the time, else anything: the rules must hold for every order."""
        return options[0] if self.random.random() < 0.5 else self.random.choice(options)

    # What goes wrong.

    def rate(self):
        """How likely is a crash now?"""
        if self.unkept:
            pending = self.world.files.pending()
            self.unkept = [entry for entry in self.unkept if entry in pending]
            if self.unkept:
                return 0.08
        elif self.meets and (racing := unsynced_entries(self.world)) and self.last[0] != "link":
            self.unkept = racing
            return 0.05
        return 0.04 if matters(self.last) else 0.003

    def crash(self):
        world, random = self.world, self.random
        if self.unkept and random.random() < 0.7:
            kept = self.survivors()
            world.cut([entry for entry in kept if entry not in self.unkept], random.random() < 0.3)
            self.unkept = []
            return
        how = random.random()
        if how < 0.4:
            world.cut(self.survivors(), random.random() < 0.3)
            return
        pending = world.files.pending()
        self.unkept = [entry for entry in world.files.recent[:2] if entry in pending]
        workers = world.workers() + world.orphans()
        if how < 0.8 and workers:
            world.kill_worker(self.current if self.current in workers else random.choice(workers))
        elif how < 0.9 and SUPERVISOR in world.procs:
            world.kill_supervisor()
        else:
            world.kill_all()

    def survivors(self):
        pending, how = self.world.files.pending(), self.random.random()
        if how < 0.2 or not pending:
            return pending
        if how < 0.3:
            return []
        one = self.random.choice([entry for entry in self.world.files.recent if entry in pending] or pending)
        if how < 0.45:
            return [one]
        if how < 0.7:
            return [other for other in pending if other != one]
        share = self.random.random()
        return [entry for entry in pending if self.random.random() < share]

    def fork(self):
        """Fork at any position that is kept, run the fork to its end; the source goes on after it."""
        source = self.world
        source.kill_all()
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
        fork.trace, fork.unpromised = top.trace, {}
        if self.random.random() < 0.5:
            fork.cut([])
        for entry in self.protocol.read_log(fork.look()).entries:
            if entry.kind == "crawl":
                fork.asked.update((url, "kept") for url in entry.ghost)
        Walk(self.protocol, self.random, fork, crashes_max=2).run()
        source.trace = fork.trace
        # The power may have failed under both: pages of the source that were not synced are excused.
        source.asked = {url: how for url, how in source.asked.items() if how == "kept"}
        self.world, self.forks, self.unkept = source, False, []
