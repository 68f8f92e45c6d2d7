"""The world around the protocol: processes that run step by step, and everything that stops them.

A process is a tuple of steps still to do. A step is one file operation, or a `call`: a look at the
files that puts further steps in front. So a process is a value: the explorers clone it, compare it
and drop it in the middle. A process looks and acts in different steps, so others may act in between.
"""

from .files import Files, Missing, View
from .log import Violation

SUPERVISOR = "supervisor"
DELETION = "deletion"  # a thread of the supervisor: it goes on while cycles are planned, run and committed
OPERATIONS = (
    "create", "write", "append", "truncate", "fsync", "sync", "mkdir", "rmdir", "unlink", "rename",
)  # fmt: skip


class World:
    __slots__ = (
        "protocol", "files", "base", "procs", "asked", "deaths", "dead", "news", "done",
        "unpromised", "promised", "trace", "changed",
    )  # fmt: skip

    def __init__(self, protocol, files, base):
        self.protocol, self.files, self.base = protocol, files, base
        self.procs = {}  # name: (stage, steps); a worker is named by its cycle, an orphan ("orphan", cycle)
        self.asked = {}  # url: asked, noted (a record is written), kept (it is synced)
        self.deaths = {}  # cycle: how often its stages died; the supervisor's memory
        self.dead = {}  # cycle: the stage that died and was not started again
        self.news = False  # something ended since the supervisor last looked
        self.done = False  # the supervisor said Done
        self.unpromised = dict(protocol.web.seeds)  # what bin/seed has not yet reported as delivered
        self.promised = frozenset()  # the names that it has
        self.trace = None  # (earlier, event), for the report of a failure
        self.changed = True  # did the last step change a file?

    def clone(self):
        other = World.__new__(World)
        for name in self.__slots__:
            setattr(other, name, getattr(self, name))
        other.files = self.files.clone()
        for name in ("procs", "asked", "deaths", "dead", "unpromised"):
            setattr(other, name, getattr(self, name).copy())
        return other

    def key(self):
        tables = (self.procs, self.asked, self.deaths, self.dead)
        parts = [frozenset(table.items()) if table else None for table in tables]
        return hash((self.files.key(), self.done, self.news, *parts, self.promised))

    def look(self):
        return View(self.files, self.base)

    def note(self, *event):
        self.trace = (self.trace, event)

    # Starting.

    def start(self):
        """The lock lets a supervisor start only when the last one and all its orphans are gone."""
        self.procs[SUPERVISOR] = ("startup", (("call", "startup"),))
        self.done = False
        self.note("start")

    def may_start(self):
        if SUPERVISOR in self.procs:
            return False
        return not (self.protocol.lock_is_inherited and self.orphans())

    def workers(self):
        return [name for name in self.procs if isinstance(name, int)]

    def orphans(self):
        return [name for name in self.procs if isinstance(name, tuple)]

    def deliver(self, name):
        """bin/seed starts; its user runs it again until it reports success."""
        self.procs[name] = ("seed", (("call", "leave_seed", name, self.unpromised[name]),))

    def promise(self, name):
        self.promised |= {name}
        return self.unpromised.pop(name)

    # Stepping.

    def enabled(self):
        return [name for name, (_, steps) in self.procs.items() if steps[0][0] != "wait" or self.news]

    def step(self, name, choose=lambda options: options[0]):
        stage, steps = self.procs[name]
        step, rest = steps[0], steps[1:]
        self.note(name, step)
        self.changed = False
        try:
            steps = self.do(name, step, choose) + rest
        except (Missing, LookupError) as missing:
            raise Violation("missing", f"{stage} {name} at {step[:3]}: {missing!r}") from None
        if name not in self.procs:
            return  # it died
        if steps:
            self.procs[name] = (stage, steps)
        else:
            del self.procs[name]
            self.news = True

    def do(self, name, step, choose):
        """Do one step; gives the steps to put in front."""
        what = step[0]
        if what == "call":
            return getattr(self.protocol, step[1])(self.look(), *step[2:])
        if what == "loop":
            actions = self.protocol.actions(self.look(), self.workers(), self.deaths, self.dead)
            if DELETION in self.procs:  # one at a time, and no end before it has ended
                others = [action for action in actions if action[0][0] not in ("delete", "stop", "done")]
                actions = others or [(("wait",),)]
            return choose(actions) + (step,)
        self.changed = True
        if what in OPERATIONS:
            getattr(self.files, what)(*step[1:], base=self.base)
            if what in ("append", "fsync") and step[1].endswith("/pages"):
                self.record(what, step)
            return ()
        if what == "link":
            made = self.files.link(step[1], step[2], self.base)
            return step[3] if made else step[4]
        return self.do_outside(name, step)

    def do_outside(self, name, step):
        """Steps that touch no file."""
        what, *args = step
        if what == "fetch":
            self.fetch(args[0])
        elif what == "spawn":
            cycle, stage = args
            self.procs[cycle] = (stage, (("call", stage, cycle),))
            self.dead.pop(cycle, None)
        elif what == "delete":
            if steps := self.protocol.tidy(self.look(), args[0]):
                self.procs[DELETION] = (DELETION, steps)
        elif what == "forget":
            self.dead.pop(args[0], None)
            self.deaths.pop(args[0], None)
        elif what == "stop":
            del self.procs[name]
            self.deaths, self.dead, self.news = {}, {}, False
        elif what == "promise":
            self.promise(args[0])
        elif what == "wait":
            self.news = False
        elif what == "done":
            self.done = True
            del self.procs[name]
        elif what == "die":
            self.kill_worker(name)
        return ()

    # The web server's side: who asked for what, and was that necessary?

    def fetch(self, url):
        if url in self.asked:
            raise Violation("refetched", f"url {url}, though its first page was {self.asked[url]}")
        self.asked[url] = "asked"

    def record(self, what, step):
        """A page counts as kept from the sync of its record on."""
        if what == "append":
            self.asked[step[2]] = "noted"
        elif what == "fsync":
            for url in self.files.read(step[1], self.base):
                self.asked[url] = "kept"

    # Stopping.

    def drop(self, name):
        """A process ends in the middle; a page that it had asked for and not yet written is lost."""
        _, steps = self.procs.pop(name)
        if steps and steps[0][0] == "append":
            self.asked.pop(steps[0][2], None)

    def kill_worker(self, cycle):
        stage = self.procs[cycle][0]
        self.drop(cycle)
        self.note("killed", cycle)
        self.news = True
        if isinstance(cycle, int):  # the supervisor that waits for it is there
            self.deaths[cycle] = self.deaths.get(cycle, 0) + 1
            self.dead[cycle] = stage

    def kill_supervisor(self):
        """Its workers become orphans: they go on until they notice."""
        self.drop(SUPERVISOR)
        if DELETION in self.procs:
            self.drop(DELETION)
        for cycle in self.workers():
            self.procs["orphan", cycle] = self.procs.pop(cycle)
        self.deaths, self.dead, self.news = {}, {}, False
        self.note("killed supervisor")

    def kill_all(self):
        for name in list(self.procs):
            self.drop(name)
        self.deaths, self.dead, self.news, self.done = {}, {}, False, False
        self.changed = True
        self.note("killed all")

    def cut(self, survivors, contents_survive=False):
        before = Files()
        before.tree, before.disk = self.files.tree, self.files.disk  # cut() puts new tables in their place
        before.paths = self.files.paths
        self.kill_all()
        self.files.cut(survivors, contents_survive)
        self.asked = {url: how for url, how in self.asked.items() if how == "kept"}
        self.note("power cut", before, survivors, contents_survive)

    def story(self):
        """All that happened, one event a line."""
        lines, trace = [], self.trace
        while trace:
            trace, event = trace
            lines.append(tell(*event))
        return "\n".join(reversed(lines))


def tell(what, *parts):
    if what == "power cut":
        before, survivors, contents_survive = parts
        names = {entry: f"{before.paths[entry[0]]}/{entry[1]}" for entry in before.pending()}
        lost = [name for entry, name in names.items() if entry not in survivors]
        kept = [names[entry] for entry in survivors]
        contents = "contents kept" if contents_survive else "contents torn"
        return " ".join((what, "; entries lost:", *lost, "; kept:", *kept, ";", contents))
    text = " ".join(str(part) for part in (what, *parts))
    return text if len(text) < 200 else text[:197] + "..."


def new_world(protocol, delivered=()):
    """A crawl folder as `bin/crawl new` leaves it: all of it synced. Some seeds are there already."""
    files = Files()
    files.mkdir("crawl")
    base = files.find("crawl")
    for name in ("log", "inbox", "cycles", "R"):
        files.mkdir(name, base)
    for name in ("text", *range(protocol.setting.n_first)):
        files.mkdir(f"R/{name}", base)
    world = World(protocol, files, base)
    for name in delivered:
        files.create(f"inbox/{name}", world.promise(name), base)
        files.fsync(f"inbox/{name}", base)
    for path in ("R", "inbox", ""):
        files.sync(path, base)
    files.sync("")
    return world
