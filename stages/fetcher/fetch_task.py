"""What is to be fetched by a run of the fetcher, or by one of its processes, and what came of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from contract.config import Fetcher
from stages.fetcher.revisit import Revisit
from stages.fetcher.server_queues import Known
from stages.fetcher.slots import FileSlots, MemorySlots


class Part(NamedTuple):
    """What one of several processes does of a list."""

    number: int
    processes: int
    first_number: int  # of the page files that they write, which they take in turn
    takes: Callable[[str], bool]  # whether a server is asked by this process
    attempt: int  # as suspects.py counts them, and the runs in it
    run: int


@dataclass(frozen=True)
class Job:
    folder: Path  # the stage's folder, not published
    urls: list[str]
    known: dict[str, Known]
    config: Fetcher
    refused: dict[str, str]  # URLs that are not asked for, and why
    part_of: str
    slots: FileSlots | MemorySlots
    domain_of: Callable[[str], str]
    on_final: Callable[[str, str, int, int], None]  # URL, status or reason, bytes, ms
    earlier: dict[str, Revisit] = field(default_factory=dict)  # what is known of pages that are visited again
    dictionary: bytes | None = None
    on_end: Callable[[bool], None] = lambda is_interrupted: None  # called in the process that called on_final
    part: Part | None = None  # where this process is one of several


class Result(NamedTuple):
    counts: dict[str, int]  # over all attempts
    not_reached: list[
        tuple[str, str]
    ]  # URL, and why its server's robots.txt could not be had, where that is the reason
    errors: dict[str, int] = {}  # reason -> how often
