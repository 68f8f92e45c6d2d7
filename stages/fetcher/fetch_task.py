"""What a run of the fetcher, or one of its processes, is to fetch, and its result."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from contract.config import Fetcher
from stages.fetcher.revisit import Revisit
from stages.fetcher.server_queues import Known
from stages.fetcher.slots import FileSlots, MemorySlots


class Part(NamedTuple):
    """The share of a list that one of several processes fetches."""

    number: int
    processes: int
    first_number: int  # of the page files that they write; the processes take numbers in turn
    takes: Callable[[str], bool]  # whether this process asks a server
    attempt: int  # counted by suspects.py, as is `run`, the number of the process within the attempt
    run: int


@dataclass(frozen=True)
class FetchTask:
    folder: Path  # the stage's folder, not published
    urls: list[str]
    known: dict[str, Known]
    config: Fetcher
    refused: dict[str, str]  # URLs that are not asked for -> reason
    part_of: str
    slots: FileSlots | MemorySlots
    domain_of: Callable[[str], str]
    on_final: Callable[[str, str, int, int], None]  # URL, status or reason, bytes, ms
    earlier: dict[str, Revisit] = field(default_factory=dict)  # what is known of pages that are fetched again
    dictionary: bytes | None = None
    on_end: Callable[[bool], None] = lambda is_interrupted: None  # called in the process that called on_final
    part: Part | None = None  # set where this process is one of several


class Result(NamedTuple):
    counts: dict[str, int]  # over all attempts
    not_reached: list[tuple[str, str]]  # URL, and the failure of its server's robots.txt where that is the cause
    errors: dict[str, int] = {}  # reason -> how often
