"""What the dashboard knows of the crawl: the status, read when asked for, and pictures, made in the background.

The status takes milliseconds at any size of the crawl. The pictures rest on all tables, so they are made again only
after a commit, and take at most a tenth of the time of one core.
"""

import threading
import time
from dataclasses import dataclass, field

from contract.crawl_folder import CrawlFolder
from contract.errors import ColetorError
from contract.units import moment
from examine.crawl_figures import describe
from examine.report.charts import draw_svg
from examine.report.collection import show_kinds, show_seeds, show_servers, show_sizes
from examine.report.figures import gather, has_grown
from examine.report.progress import show_cycles, show_progress, show_rate, show_stages, show_waits
from examine.report.sections import Section
from examine.report.words import Words
from storage.errors import Damaged, UnknownFormat

STATUS_KEPT_S = 1.0  # several browsers share one look
LOOK_EVERY_S = 2.0
REST_FACTOR = 9  # seconds of rest per second of work
SECTIONS = (
    *(show_progress, show_rate, show_waits, show_cycles, show_stages),
    *(show_servers, show_seeds, show_kinds, show_sizes),
)
TROUBLE = (ColetorError, Damaged, UnknownFormat, OSError)


@dataclass(frozen=True)
class Pictures:
    """One state of all pictures; `version` changes with it."""

    version: int = 0
    as_of: str = ""
    sections: list[Section] = field(default_factory=list)
    svg: dict[str, bytes] = field(default_factory=dict)  # name -> picture
    notes: list[str] = field(default_factory=list)  # what could not be read


class Watch:
    def __init__(self, crawl: CrawlFolder, kept_s: float = STATUS_KEPT_S):
        self.crawl = crawl
        self.pictures = Pictures()
        self._status: dict = {}
        self._kept_s, self._looked_at_s = kept_s, -kept_s
        self._lock = threading.Lock()
        self._stopped = threading.Event()

    def status(self) -> dict:
        """What bin/status --json prints, at most `kept_s` seconds old."""
        with self._lock:
            if time.monotonic() - self._looked_at_s >= self._kept_s:
                self._status = describe(self.crawl, time.time_ns() // 1_000_000)
                self._looked_at_s = time.monotonic()
            return self._status

    def start(self) -> None:
        threading.Thread(target=self._keep_pictures, daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()

    def _keep_pictures(self) -> None:
        drawn: dict = {}  # the status that the pictures show
        while not self._stopped.is_set():
            began_s = time.monotonic()
            try:
                if not drawn or has_grown(self.crawl, drawn):
                    drawn = self.draw()
            except TROUBLE as error:
                self.pictures = Pictures(self.pictures.version + 1, notes=[str(error)])
            self._stopped.wait(max(LOOK_EVERY_S, REST_FACTOR * (time.monotonic() - began_s)))

    def draw(self) -> dict:
        """Makes the pictures; returns the status that they show."""
        words = Words()
        of = gather(self.crawl, time.time_ns() // 1_000_000, allow_partial=True)
        sections = [show(of, words) for show in SECTIONS]
        svg = {
            part.name: draw_svg(part.chart, words).encode("utf-8", "backslashreplace")
            for section in sections
            for part in section.parts
            if part.chart is not None
        }
        self.pictures = Pictures(self.pictures.version + 1, moment(of.status["now_ms"]), sections, svg, of.left_out)
        return of.status
