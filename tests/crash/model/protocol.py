"""The commit protocol of design section 4 as a program that can be run: the right one, in one class.

Theory. The protocol rests on three habits, and most of the wrong variants break one of them:

1. *What is seen need not be kept.* A process that dies leaves names that everybody sees and that a
   power cut may take back. Whoever builds on what it found, syncs it first: log/ before a plan or a
   deletion, a manifest found in place, an open cycle's folders at start-up, a manifest found gone.
2. *Look, sync, act.* The sync comes after the look, so that it covers all that the look saw; the
   other way round, an entry that came in between is built on and may vanish.
3. *What is taken is taken by position.* `seen` and p are positions in the log, fixed before the
   work begins, so that every block takes every entry exactly once, however often the work is redone.

Where the design is terse, the model chose:

- Block of a domain key: its top k bits reversed, k = ceil(log2 N); if >= N, one bit less.
- A block without a generation is empty and has seen 0. Live generations and N come from replaying
  the log in order; void entries are skipped. *Any* entry closes its cycle, a void one too.
- An entry is void if its cycle has an entry, or its parent generation is not the live one of its
  block (or, for `grow`, if it does not make N one larger).
- Pending for block j: rows with a key of j, of AUX of the entries [seen of j, length of the log)
  that are not void. A missing AUX has no rows: the books must tell whether it was deleted or lost.
- An `abandon` entry closes its cycle for ever and charges nobody. A cycle that has pages is not
  abandoned: when its stage keeps dying it is held, and the next run tries again.
- A URL that kills its fetcher is charged one failed attempt by the next one, which finds it as a suspect.
- A `reconsider` entry comes from inbox/ as seeds do. Its keys are routed like AUX; a turn takes the
  failed attempts of those URLs back before it adds the outcomes of its own cycle. A seed does that too.
- A split is a cycle with a plan of its own; so its id and its folders are those of an open cycle
  and are resumed. A seed cycle has no plan: before its entry it is garbage.
- An id has been given out when its plan is on the disk; the next one is 1 + the largest in log/ and
  cycles/. Folders without plan or entry are garbage and their ids may come again.
- A generation is used by an open plan until the stage of that plan has *ended*, not only until its
  commit: a verifier that died after its commit may be run again.
- A segment in R/text is named by the cycle that wrote it and belongs to no folder with a manifest: it
  is needed while a generation of any block names it, or while its cycle is open.
- Pages of committed cycles are kept; everything else goes as soon as rule 7 lets it.
- A fork is made under the lock of its source, at a position whose live generations are all there.

Left out: the extractor (it publishes as the scheduler does), caches, `slots`, damage, time.
"""

from typing import NamedTuple

from .deletion import Deletion
from .fork import Fork
from .log import Log
from .publishing import Publishing
from .stages import Stages
from .supervisor import Supervisor
from .web import SMALL, Web


class Setting(NamedTuple):
    web: Web = SMALL
    n_first: int = 2
    n_max: int = 2
    rows_max: int = 1  # a block with more rows asks for growth
    workers: int = 1  # cycles in flight
    list_max: int = 2
    attempts_max: int = 2
    deaths_max: int = 2  # then a cycle is abandoned, or held if it has pages
    segments_max: int = 2  # of text a generation, then they are rewritten as one
    keep: int = 1  # superseded generations of a block
    careful: bool = False  # does the supervisor look into the log when a stage has died?


class Protocol(Publishing, Log, Stages, Supervisor, Deletion, Fork):
    """The right one. Those of wrong.py derive from it, and change one thing each."""

    lock_is_inherited = True

    def __init__(self, setting):
        self.setting, self.web = setting, setting.web
        self.replays = {}  # a cache: entries to what they mean
