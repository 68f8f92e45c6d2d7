"""The kinds of exports: what each writes for one cycle or block, and what comes when all are written."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from contract import names
from contract.crawl_folder import CrawlFolder
from contract.errors import TryLater
from contract.log import replay
from contract.log_summary import read_log
from contract.scope.link_sources import LinkSources
from examine.export import cdxj, page_rows, wacz, warc_files
from examine.export.filters import Filters
from examine.export.folder import ARCHIVE, WRITTEN, ExportFolder, Problems, Progress
from examine.export.known_urls import KnownUrls
from examine.export.row_files import JSON_LINES, PARQUET, TEXT
from examine.export.selection import Selection, committed_cycles
from examine.text_reader import TextReader
from storage.errors import Damaged
from storage.publish import sync_file
from storage.tables import column

WARC, CDXJ, PAGES, UFMG, WACZ, URLS = "warc", "cdxj", "pages", "ufmg", "wacz", "urls"
VISIT_KINDS = (WARC, CDXJ, PAGES, UFMG, WACZ)
HAS_RECORDS = (WARC, WACZ)
FORMS = {
    WARC: ("gzip",),
    CDXJ: ("cdxj",),
    PAGES: (PARQUET, JSON_LINES),
    UFMG: ("txt",),
    WACZ: ("gzip",),
    URLS: (TEXT, JSON_LINES, PARQUET),
}
COLUMNS = {
    WARC: warc_files.COLUMNS,
    CDXJ: ("file", "offset", "length", "payload_digest", "revisit"),
    PAGES: page_rows.COLUMNS,
    UFMG: page_rows.COLUMNS,
    WACZ: (*warc_files.COLUMNS, "title", "revisit"),
}
SUFFIXES = {"gzip": warc_files.SUFFIX, "cdxj": ".cdxj", TEXT: ".txt"}  # else that of the form's name
LEFT_OUT = "link_sources_left_out"  # a count
SNAPSHOTS = 3  # of a crawl whose generations are deleted while they are read


class VisitExport:
    """Writes the chosen visits of one cycle after another."""

    def __init__(self, crawl: CrawlFolder, folder: ExportFolder, selection: Selection):
        self._crawl, self._folder, self._selection = crawl, folder, selection
        self._kind, self._form = folder.request["kind"], folder.request["form"]
        self._texts = TextReader() if self._kind == PAGES else None

    def write(self, cycle: int, allow_partial: bool) -> dict[str, Any]:
        """Writes the files of a cycle; returns the note about them."""
        problems = Problems(self._crawl.path, allow_partial)
        counts: Counter[str] = Counter()
        visits, left_out = None, 0
        with problems.noting():
            visits, left_out = self._selection.rows(cycle, COLUMNS[self._kind])
        if visits is not None:
            with problems.noting():
                counts = self._write_visits(cycle, visits, problems)
        return {"counts": with_left_out(counts, left_out), "missing": problems.found}

    def _write_visits(self, cycle: int, visits: pa.Table, problems: Problems) -> Counter[str]:
        if self._kind == CDXJ:
            return self._write_index(cycle, own_lines(cycle, visits))
        if not len(visits) and self._kind not in HAS_RECORDS:  # which may have exchanges for robots.txt
            return Counter()
        name = f"{cycle:08d}{suffix_of(self._form)}"
        with self._folder.writing(archive_path(self._folder, name).name if self._kind == WACZ else name) as file:
            if self._kind in HAS_RECORDS:
                writer = self._write_warc(cycle, visits, file, name, problems)
            elif self._texts:
                return page_rows.write_pages(self._crawl.path, cycle, visits, self._texts, file, self._form, problems)
            else:
                return page_rows.write_ufmg(self._crawl.path, cycle, visits, file, problems)
        if self._kind == WACZ:
            self._write_run(cycle, "pages", wacz.encode_pages(cycle, visits))
        return writer.counts + self._write_index(cycle, writer.lines)

    def _write_warc(
        self, cycle: int, visits: pa.Table, file: BinaryIO, name: str, problems: Problems
    ) -> warc_files.WarcWriter:
        at_ms = int(column(visits, "fetched_at_ms").max()) if len(visits) else self._crawl.began_at_ms
        writer = warc_files.WarcWriter(file, name, self._crawl.crawl_id, cycle, at_ms)
        warc_files.copy_cycle(self._crawl.path, cycle, visits, self._takes_robots, writer, problems)
        return writer

    def _takes_robots(self, server: str, at_ms: int) -> bool:
        """Whether an exchange for the robots.txt of a server belongs to the collection."""
        filters, link_sources = self._selection.filters, self._selection.link_sources
        in_dates = filters.from_ms <= at_ms < filters.until_ms
        return in_dates and filters.takes_server(server) and not link_sources.takes_server(server)

    def _write_index(self, cycle: int, lines: list[bytes]) -> Counter[str]:
        """The sorted lines of a cycle, which finish() merges with the others."""
        self._write_run(cycle, "cdxj", b"".join(sorted(lines)))
        return Counter(captures=len(lines))

    def _write_run(self, cycle: int, what: str, content: bytes) -> None:
        path = self._run_path(cycle, what)
        path.write_bytes(content)
        sync_file(path)  # the note that comes next says that it is whole

    def _run_path(self, cycle: int, what: str) -> Path:
        """A file that finish() joins with those of other cycles."""
        return self._folder.path / f"{WRITTEN}{cycle:08d}.{what}"

    def finish(self) -> None:
        if self._kind not in (*HAS_RECORDS, CDXJ):
            return
        runs = [path for cycle in self._selection.cycles if (path := self._run_path(cycle, "cdxj")).exists()]
        lines = cdxj.merge_files(runs, self._folder.path / f"{WRITTEN}merged-")
        if self._kind == WACZ:
            self._write_package(lines)
            return
        with self._folder.writing(cdxj.INDEX) as file:
            file.writelines(lines)

    def _write_package(self, lines: Iterator[bytes]) -> None:
        names_of = [f"{cycle:08d}{warc_files.SUFFIX}" for cycle in self._selection.cycles]
        paths = {name: archive_path(self._folder, name) for name in names_of}
        archives = {name: path for name, path in paths.items() if path.exists()}
        pages = [path for cycle in self._selection.cycles if (path := self._run_path(cycle, "pages")).exists()]
        title = f"Crawl {self._crawl.crawl_id}"
        with self._folder.writing(wacz.FILE) as file:
            wacz.write_package(file, title, self._crawl.began_at_ms, archives, lines, pages)

    def close(self) -> None:
        if self._texts:
            self._texts.close()


def with_left_out(counts: Counter[str], left_out: int) -> dict[str, int]:
    return {**counts, LEFT_OUT: left_out} if left_out else dict(counts)


def export_visits(
    crawl: CrawlFolder, folder: ExportFolder, filters: Filters, link_sources: LinkSources, allow_partial: bool
) -> dict[str, Any]:
    log = replay(crawl.path, crawl.blocks_first, folder.request["log_length"])
    selection = Selection(crawl.path, committed_cycles(log), filters, allow_partial, link_sources)
    parts = [f"{cycle:08d}" for cycle in selection.cycles]
    if filters.newest and not all(map(folder.is_done, parts)):
        selection.find_newest()
    export, progress = VisitExport(crawl, folder, selection), Progress(len(parts), "cycle")
    try:
        for done, (cycle, part) in enumerate(zip(selection.cycles, parts)):
            progress.show(done)
            if not folder.is_done(part):
                folder.remove(part)
                folder.finish(part, export.write(cycle, allow_partial))
        export.finish()
    finally:
        export.close()
        progress.end()
    return folder.publish(parts, {"cycles": len(parts)})


def own_lines(cycle: int, visits: pa.Table) -> list[bytes]:
    """Lines of the index of the crawl's own files, by their paths in the crawl folder."""
    return [
        cdxj.encode_line(
            row["url"],
            row["fetched_at_ms"],
            status=row["status"],
            type=row["type"],
            digest=row["payload_digest"],
            is_revisit=row["revisit"],
            file=f"{names.cycle(cycle)}/{names.FETCHER}/{row['file']}",
            offset=row["offset"],
            length=row["length"],
        )
        for row in visits.to_pylist()
    ]


def export_urls(
    crawl: CrawlFolder, folder: ExportFolder, filters: Filters, link_sources: LinkSources, allow_partial: bool
) -> dict[str, Any]:
    """All blocks as one moment of the log has them; anew where the crawl has deleted some of them since."""
    for _ in range(SNAPSHOTS):
        log = read_log(crawl)
        if log.length != folder.request["log_length"]:
            folder.restart(log.length)
        parts = [f"{block:04d}" for block in range(log.blocks)]
        progress = Progress(len(parts), "block")
        try:
            for block, part in enumerate(parts):
                progress.show(block)
                if not folder.is_done(part):
                    folder.remove(part)
                    urls = KnownUrls(crawl.path, block, log.generation(block), filters, link_sources)
                    note = write_block(crawl, folder, urls, allow_partial)
                    folder.finish(part, note)
            return folder.publish(parts, {"blocks": len(parts)})
        except Damaged:
            if read_log(crawl).length == log.length:
                raise
        finally:
            progress.end()
    raise TryLater("the crawl deletes blocks while they are read: try again later, or set [blocks] keep_generations")


def write_block(crawl: CrawlFolder, folder: ExportFolder, urls: KnownUrls, allow_partial: bool) -> dict[str, Any]:
    problems = Problems(crawl.path, allow_partial and read_log(crawl).length == folder.request["log_length"])
    counts: Counter[str] = Counter()
    form, states = folder.request["form"], tuple(folder.request["states"])
    with problems.noting(), folder.writing(f"{urls.block:04d}{suffix_of(form)}") as file:
        counts = urls.write(states, file, form)
    return {"counts": with_left_out(counts, urls.left_out), "missing": problems.found}


def suffix_of(form: str) -> str:
    return SUFFIXES.get(form, f".{form}")


def archive_path(folder: ExportFolder, name: str) -> Path:
    """Where a WARC file waits for the package that it goes into; removed with all that is unfinished."""
    return folder.path / f"{ARCHIVE}{name}"
