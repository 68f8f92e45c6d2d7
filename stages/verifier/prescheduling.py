"""Which of a server's waiting URLs the scheduler may pick from: the few nearest to a seed."""

import numpy as np

from contract.tables import PRESCHEDULED, WAITING
from storage.arrays import rank_in_run


def refill(rows: dict, servers: int, refill_below: int, most: int) -> None:
    """Prescheduled again up to `most` a server, where fewer than `refill_below` are left; by depth, then key."""
    prescheduled = np.bincount(rows["server"][rows["state"] == PRESCHEDULED], minlength=servers)
    waiting = np.flatnonzero(rows["state"] == WAITING)
    waiting = waiting[prescheduled[rows["server"][waiting]] < refill_below]
    order = waiting[np.lexsort((rows["key"][waiting], rows["depth"][waiting], rows["server"][waiting]))]
    server = rows["server"][order]
    chosen = rank_in_run(server) + prescheduled[server] < most
    rows["state"][order[chosen]] = PRESCHEDULED
