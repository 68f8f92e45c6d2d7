"""What to do next: pure decisions from the log and the manifests of generations."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from contract.config import Blocks
from contract.log import ABSORB, CRAWL, FORGET, GROW


@dataclass(frozen=True)
class BlockView:
    """What decides about the turn of one block."""

    block: int
    last_turn: int = -1  # position in the log; -1 before the first
    known: int = 0
    waiting: int = 0
    earliest_due_ms: int | None = None  # of what waits
    revisit_due_ms: int | None = None  # when enough collected pages are due again for a cycle
    forget_due_ms: int | None = None  # when enough rows can be forgotten
    forget_until_ms: int | None = None  # until when answers of its pages say what still has links; none: for good
    servers: int = 0
    largest_domain_known: int = 0
    largest_domain_servers: int = 0
    pending: bool = False  # AUX or decisions wait for it
    has_absorbed: bool = False  # since its last turn
    free: bool = True  # no open plan, no damage, no stage that kept dying
    was_abandoned: bool = False  # its last cycle: what killed that one should not stay alone in the next list
    is_prepared: bool = True  # for the policy, scope and revisits of this run's configuration

    def due_at_ms(self, revisits: bool) -> int | None:
        """When it is due; none where there is nothing to wait for. `revisits`: whether this run makes any."""
        moments = [self.earliest_due_ms or 0] if self.waiting else []
        if revisits and self.revisit_due_ms is not None:
            moments.append(self.revisit_due_ms)
        return min(moments, default=None)


class Turn(NamedTuple):
    """The cycle to plan next."""

    kind: str  # crawl, absorb, forget or grow
    block: int


class Sleep(NamedTuple):
    """All that waits in free blocks is due later, and so are revisits."""

    until_ms: int


class Done(NamedTuple):
    """Nothing is waiting in any free block."""

    blocked: bool  # there may be work in blocks that are not free


def next_turn(views: Sequence[BlockView], now_ms: int, revisits: bool = True) -> Turn | Sleep | Done:
    """The turn goes to the free block whose last turn is oldest, ties by number.

    A block that is not prepared is not listed: it gets a turn that prepares it first. One that has enough to forget
    forgets first, and before that it absorbs, once per turn: what waits for it may say that a URL still has links.
    Without `revisits` only URLs that wait make a block due, so that such a run can end.
    """
    later, forget_ms = [], forget_clock_ms(views, now_ms)
    for view in sorted((view for view in views if view.free), key=lambda view: (view.last_turn, view.block)):
        due_at_ms = view.due_at_ms(revisits)
        if not view.is_prepared:
            return Turn(ABSORB, view.block)
        if view.forget_due_ms is not None and view.forget_due_ms <= forget_ms:
            if view.has_absorbed or not view.pending:
                return Turn(FORGET, view.block)
            if view.last_turn >= 0:
                return Turn(ABSORB, view.block)
        if due_at_ms is not None and due_at_ms <= now_ms and not (view.pending and view.was_abandoned):
            return Turn(CRAWL, view.block)
        if view.pending:
            return Turn(ABSORB, view.block)
        if due_at_ms is not None:
            later.append(due_at_ms)
    if later:
        return Sleep(min(later))
    return Done(blocked=any(not view.free for view in views))


def forget_clock_ms(views: Sequence[BlockView], now_ms: int) -> int:
    """The moment by which URLs are forgotten: pages of any block may link to those of any other."""
    return min([now_ms, *(view.forget_until_ms for view in views if view.forget_until_ms is not None)])


def next_step(
    views: Sequence[BlockView], now_ms: int, bounds: Blocks, block_to_split: int | None, revisits: bool = True
) -> Turn | Sleep | Done:
    """As next_turn, but a split comes first. `block_to_split` is none where no split may be planned now.

    So a block that is to be split gets no other turn before, and while it is in flight the other blocks continue.
    """
    if block_to_split is not None and views[block_to_split].free and must_grow(views, bounds):
        return Turn(GROW, block_to_split)
    return next_turn(views, now_ms, revisits)


def must_grow(views: Sequence[BlockView], bounds: Blocks) -> bool:
    """Whether a block passed a bound. One that is mostly one domain does not count: no split can divide a domain."""
    return any(
        (view.known > bounds.urls_max and 2 * view.largest_domain_known <= view.known)
        or (view.servers > bounds.servers_max and 2 * view.largest_domain_servers <= view.servers)
        for view in views
    )
