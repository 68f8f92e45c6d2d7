"""The searches that a protocol is put through: the right one passes all, a wrong one fails in one of them."""

from .exploration import KillThenCut, LogRaces, OneCrash, TwoCrashes
from .protocol import Setting
from .walks import walk
from .web import LINE, MIRROR, SMALL, SPLIT

WALKS = 800  # about 12 s on a free core; MODEL_WALKS of the test takes more


def walks(protocol_class, seeds=range(WALKS)):
    return sum(walk(protocol_class, seed) for seed in seeds)


# Each takes the class of a protocol, gives the number of states or steps, or raises Failure.
SEARCHES = {
    "crash": lambda cls: OneCrash(cls(Setting(web=SMALL))).run(),
    "crash in flight": lambda cls: OneCrash(cls(Setting(web=SPLIT, n_max=3, workers=2))).run(),
    "two crashes": lambda cls: TwoCrashes(cls(Setting(web=LINE))).run(),
    "kill then cut": lambda cls: KillThenCut(cls(Setting(web=LINE))).run(),
    "kill then cut, careful": lambda cls: KillThenCut(cls(Setting(web=MIRROR, careful=True, keep=0))).run(),
    "races": lambda cls: LogRaces(cls(Setting(web=MIRROR, workers=2))).run(),
    "walks": walks,
}
