"""Each kind of file of a crawl folder as (a line about it, rows): what bin/show prints."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from contract import names
from contract.accumulators import ACCUMULATORS
from contract.centrality_files import SUFFIX as POSITIONS_SUFFIX
from contract.dictionary import read_dictionary
from contract.errors import Usage
from contract.generation import SERVERS_FILE, Generation, open_generation, read_urls
from contract.journal_tail import SUFFIX as JOURNAL_SUFFIX
from contract.log import positions, read_entry
from contract.tables import STATES
from contract.units import count
from contract.warc import ANSWERS, PageReader, parse_response
from examine.run_files import LIVE_MAX_BYTES
from storage.arrays import read_small_array
from storage.columns import PACKED, read_packed
from storage.errors import Damaged
from storage.frames import dictionary_id
from storage.publish import is_published, read_manifest
from storage.tables import UNREADABLE, column
from storage.text_segments import Segment
from storage.unsynced_files import open_regular, read_start

Rows = Iterator[dict]
LINE_MAX_BYTES = 1 << 16  # of the journal and of messages.log; a longer one is shown in parts
MESSAGES = re.compile(rf"{re.escape(names.MESSAGES)}(\.\d+)?")
GENERATION_CHUNK_ROWS = 10_000


def read_any(path: Path) -> tuple[str, Rows]:
    """The reader is chosen by the file's name alone, as a crawl folder has it."""
    if path.is_dir():
        return read_folder(path)
    name = path.name
    if ".warc." in name:
        return f"{path}: WARC records", iterate_records(path)
    if name.endswith(".parquet"):
        return read_parquet(path)
    if name.endswith((".npy", POSITIONS_SUFFIX, PACKED)):
        array = read_packed(path) if name.endswith(PACKED) else read_small_array(path)
        return f"{path}: {count(len(array), 'row')} of {array.dtype}", (
            {"row": row, "value": plain(value)} for row, value in enumerate(array)
        )
    if name.endswith(".zst"):
        return f"{path}: text", iterate_text(path)
    if name == names.LIVE:
        return f"{path}: what the present or the last run wrote about itself", iterate_live(path)
    if name.endswith(JOURNAL_SUFFIX):
        return f"{path}: a part of the journal", iterate_journal(path)
    if name.endswith(".json"):
        return "", iter([read_json_file(path)])
    if name == names.SLOTS:
        slots = np.frombuffer(path.read_bytes(), "<u8")
        used = np.flatnonzero(slots)
        return f"{path}: {len(used):,} of {count(len(slots), 'slot')} used", (
            {"slot": int(slot), "earliest_next_ms": int(slots[slot])} for slot in used
        )
    if name == names.DICTIONARY:
        dictionary = read_dictionary(path)
        return f"{path}: a zstd dictionary", iter(
            [{"dictionary_id": dictionary_id(dictionary), "bytes": len(dictionary)}]
        )
    if MESSAGES.fullmatch(name):
        return str(path), ({"line": line.decode("utf-8", "replace").rstrip("\n")} for line in iterate_lines(path))
    if name in (names.SUFFIX_LIST, names.LOCK) or name.endswith((".txt", ".dat", ".toml")):
        return str(path), ({"line": line} for line in path.read_text("utf-8", "replace").splitlines())
    raise Usage(f"{path}: no file of a crawl folder that this program knows")


def read_folder(path: Path) -> tuple[str, Rows]:
    if (path / SERVERS_FILE).exists():
        return read_generation(path)
    if (path / names.PLAN).exists():
        return f"{path}: a cycle", iterate_cycle(path)
    if path.name == names.LOG:
        return f"{path}: commits", iterate_log(path.parent)
    if is_published(path):
        return f"{path}: a published folder", iter([read_manifest(path)])
    return f"{path}: a folder", ({"name": inner.name} for inner in sorted(path.iterdir()))


def read_generation(path: Path) -> tuple[str, Rows]:
    crawl = path.resolve().parent.parent.parent
    generation = open_generation(crawl, int(path.parent.name), int(path.name))
    return f"{path}: {count(len(generation), 'URL')} of {count(len(generation.servers), 'server')}", iterate_generation(
        crawl, generation
    )


def iterate_generation(crawl: Path, generation: Generation) -> Rows:
    servers = column(generation.servers, "server")
    for start in range(0, len(generation), GENERATION_CHUNK_ROWS):
        part = {name: array[start : start + GENERATION_CHUNK_ROWS] for name, array in generation.rows.items()}
        urls = read_urls(crawl, generation, np.arange(start, start + len(part["key"])))
        for row, url in enumerate(urls):
            yield {
                "url": url,
                "state": STATES[part["state"][row]],
                "depth": int(part["depth"][row]),
                **{accumulator.name: int(part[accumulator.name][row]) for accumulator in ACCUMULATORS},
                "attempts": int(part["attempts"][row]),
                "server": servers[generation.server_index[start + row]],
                "key": int(part["key"][row]),
            }


def iterate_cycle(path: Path) -> Rows:
    plan = read_json_file(path / names.PLAN)
    yield {"plan": {name: value for name, value in plan.items() if name != "config"}}
    for stage in names.STAGES:
        if is_published(path / stage):
            manifest = read_manifest(path / stage)
            yield {
                "stage": stage,
                "counts": manifest.get("counts"),
                "files": {name: about["bytes"] for name, about in manifest["files"].items()},
            }


def iterate_log(crawl: Path) -> Rows:
    for position in positions(crawl):
        yield {"position": position, **vars(read_entry(crawl, position))}


def read_parquet(path: Path) -> tuple[str, Rows]:
    try:
        file = pq.ParquetFile(path, page_checksum_verification=True)
    except UNREADABLE as error:
        raise Damaged(path, f"expected a Parquet file, found {' '.join(str(error).split())[:200]}") from None

    def rows() -> Rows:
        try:
            for batch in file.iter_batches(batch_size=1024):
                yield from batch.to_pylist()
        except UNREADABLE as error:
            raise Damaged(path, f"expected Parquet pages, found {' '.join(str(error).split())[:200]}") from None

    return f"{path}: {count(file.metadata.num_rows, 'row')}", rows()


def iterate_records(path: Path) -> Rows:
    for record in PageReader(path).records():
        profile = {"profile": record.get("WARC-Profile").rpartition("/")[2]} if record.type == "revisit" else {}
        yield {
            "offset": record.offset,
            "length": record.length,
            "type": record.type,
            **profile,
            "url": record.url,
            **{
                name.removeprefix("coletor-"): value
                for name, value in record.headers.items()
                if name.startswith("coletor-")
            },
            **({"status": parse_response(record.block).status} if record.type in ANSWERS else {}),
            "bytes": len(record.block),
        }


def iterate_text(path: Path) -> Rows:
    for text in Segment(path).frame_texts():
        for line in text.decode("utf-8", "replace").splitlines():
            yield {"line": line}


def iterate_journal(path: Path) -> Rows:
    """One row per line; what is no JSON object, such as an unfinished last line, is shown as it is."""
    for line in iterate_lines(path):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            value = None
        yield value if isinstance(value, dict) else {"line": line.decode("utf-8", "replace").rstrip("\n")}


def iterate_lines(path: Path) -> Iterator[bytes]:
    """The lines of a file that grows meanwhile; a pipe in its place is an error, not a wait."""
    with os.fdopen(open_regular(path, os.O_RDONLY), "rb") as file:
        while line := file.readline(LINE_MAX_BYTES):
            yield line


def iterate_live(path: Path) -> Rows:
    """The run, then one row per cycle in flight."""
    live = decode_object(path, read_start(path, LIVE_MAX_BYTES))
    cycles = live.pop("cycles", None)
    yield live
    if isinstance(cycles, list):
        yield from (cycle if isinstance(cycle, dict) else {"cycle": cycle} for cycle in cycles)


def read_json_file(path: Path) -> dict:
    return decode_object(path, path.read_bytes())


def decode_object(path: Path, content: bytes) -> dict:
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise Damaged(path, f"expected JSON, found {error}") from None
    if not isinstance(value, dict):
        raise Damaged(path, f"expected a JSON object, found {type(value).__name__}")
    return value


def plain(value):
    return value.item() if not isinstance(value, np.void) else value.tobytes().hex()
