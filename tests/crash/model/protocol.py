"""The protocol in one class: a setting, a web, and the parts that know the rules."""
from typing import NamedTuple

from .deletion import Deletion
from .fork import Fork
from .log import Log
from .publishing import Publishing
from .stages import Stages
from .supervisor import Supervisor
from .web import LARGE, SMALL, Web


class Setting(NamedTuple):
    web: Web = SMALL
    n_first: int = 2
    n_max: int = 2
    rows_max: int = 1  # a block with more rows asks for growth
    workers: int = 1  # cycles in flight
    list_max: int = 2
    attempts_max: int = 2
    deaths_max: int = 2  # then a cycle is abandoned
    keep: int = 1  # superseded generations of a block
    careful: bool = False  # does the supervisor look into the log when a stage has died?


class Protocol(Publishing, Log, Stages, Supervisor, Deletion, Fork):
    """The right one. Those of wrong.py derive from it, and change one thing each."""

    lock_is_inherited = True

    def __init__(self, setting):
        self.setting, self.web = setting, setting.web
        self.replays = {}  # a cache: entries to what they mean


# One cycle in flight, no growth: small enough for every pair of crashes.
TINY = Setting()
# Two cycles in flight and one split: for switches between processes.
PAIR = Setting(n_max=3, workers=2)
# Three cycles in flight, two splits, seeds that come late.
WIDE = Setting(web=LARGE, n_max=4, rows_max=2, workers=3)
