"""Exhaustive exploration of the model: every run with a bounded number of crashes and of switches."""

from .books import check, check_done
from .log import Violation
from .world import SUPERVISOR, new_world


class Failure(Exception):
    """A violation with the story that led to it."""

    def __init__(self, violation, world, where):
        super().__init__(f"{violation}\n--- {where}, step by step:\n{world.story()}")
        self.violation, self.where = violation, where


def crashes(world, singles):
    """Every way to stop the world here."""
    dead = world.clone()
    dead.kill_all()
    yield dead
    for name in world.workers() + world.orphans():
        one = world.clone()
        one.kill_worker(name)
        yield one
    if world.workers():
        left = world.clone()
        left.kill_supervisor()
        yield left
    if not world.changed:
        return
    pending = world.files.pending()
    choices = [pending, []] if pending else [[]]
    if singles and len(pending) > 1:
        last = [one for one in pending if one in world.files.recent]
        choices += [[one] for one in last] + [[o for o in pending if o is not one] for one in last]
    for survivors in choices:
        cut = world.clone()
        cut.cut(survivors)
        yield cut


def explore(protocol, stops, switches, singles=True, states_max=10**9, steps_max=3000):
    """All runs with at most `stops` crashes and `switches` forced switches of process; gives the number of states."""
    start = new_world(protocol, protocol.web.seeds)
    start.start()
    seen, stack = {}, [(start, stops, switches, SUPERVISOR, 0)]
    while stack:
        world, stops, switches, current, steps = stack.pop()
        try:
            while True:
                key = (world.key(), current, switches)
                if seen.get(key, -1) >= stops:
                    break
                seen[key] = stops
                if len(seen) > states_max:
                    return len(seen)
                if stops:
                    for crashed in crashes(world, singles):
                        stack.append((crashed, stops - 1, switches, SUPERVISOR, steps))
                steps += 1
                if steps > steps_max:
                    raise Violation("endless", f"not Done after {steps} steps")
                if not world.procs:
                    if world.done:
                        check_done(world)
                        break
                    check(world)
                if world.may_start():
                    world.start()
                enabled = world.enabled()
                if current not in enabled:
                    current = enabled[0]
                if switches:
                    for other in enabled:
                        if other != current:
                            stack.append((world.clone(), stops, switches - 1, other, steps))
                world.step(current)
        except Violation as violation:
            raise Failure(violation, world, "exhaustive") from None
    return len(seen)
