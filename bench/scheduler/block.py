"""The block that lists are made of: a crawl folder with one generation and the tables of the cycles that led to it."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.verifier.inputs import as_table
from bench.verifier.stream import Shape, Stream
from contract import names
from contract.crawl_folder import CrawlFolder, create
from contract.generation import BLOCK_SERVERS, PREFIXES, GenerationWriter
from contract.tables import COLLECTED_STATE, DISTINCT, METADATA, PRESCHEDULED, RANDOM, WAITING
from storage.arrays import rank_in_run, starts_of_runs
from storage.publish import describe, publishing
from storage.tables import write_table
from storage.text_segments import NO_TEXT, SegmentWriter, take_lines

NOW_MS = 1_800_000_000_000
DAY_MS = 86_400_000
COLLECTED_SHARE = 0.6
PRESCHEDULED_MAX = 1_000
ROWS_AT_ONCE = 1 << 20
SEED = 17
RULES = 4  # URLs fall under none of [[priority]] or under one of so many rules


@dataclass(frozen=True)
class Size:
    rows: int = 10_000_000
    servers: int = 100_000
    cycles: int = 1_000


def make_block(folder: Path, size: Size) -> tuple[CrawlFolder, Stream]:
    """Block 0 of a crawl with one block; its generation has the number of the last cycle."""
    crawl = create(folder, 1, hash_seed=SEED)
    random = np.random.Generator(np.random.PCG64(SEED))
    stream = Stream(Shape(servers=size.servers, extracted=min(Shape.extracted, size.rows // 10), seed=SEED))
    urls = stream._urls(*draw_urls(stream, random, size.rows), np.zeros(size.rows, np.uint32))
    server_order = np.lexsort((stream.server_key, stream.domain_key))
    index = np.empty(size.servers, np.int64)
    index[server_order] = np.arange(size.servers)
    first = starts_of_runs(stream.domain_key[server_order])
    of_domain = np.empty(size.servers, np.uint32)
    of_domain[server_order] = np.arange(size.servers) - np.repeat(first, np.diff(np.append(first, size.servers)))
    server = index[urls.server]

    state = np.where(random.random(size.rows) < COLLECTED_SHARE, COLLECTED_STATE, WAITING).astype(np.uint8)
    waiting = np.flatnonzero(state == WAITING)
    waiting = waiting[np.argsort(server[waiting], kind="stable")]
    state[waiting[rank_in_run(server[waiting]) < PRESCHEDULED_MAX]] = PRESCHEDULED
    pages = np.flatnonzero(state == COLLECTED_STATE)

    (crawl.path / names.TEXT).mkdir(exist_ok=True)
    text = crawl.path / names.TEXT / names.segment(size.cycles)
    segment = SegmentWriter(text, size.cycles)
    for start in range(0, size.rows, ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        lines = stream.urls_of(urls.server[part], urls.number[part])
        segment.append(take_lines([lines], np.arange(len(lines), dtype=np.int32)))
    segment.close([])

    side = visit_pages(random, len(pages), size.cycles)
    with publishing(crawl.path / names.generation(0, size.cycles)) as manifest:
        writer = GenerationWriter(crawl.path / names.generation(0, size.cycles))
        writer.rows.append(
            {
                "key": urls.key,
                "server": of_domain[urls.server],
                "state": state,
                "depth": np.minimum(np.log2(urls.number + 1.0), 12).astype(np.uint8),
                **describe_rows(random, size.rows),
            }
            | {name: np.zeros(size.rows, np.uint8) for name in ("segment", "attempts")}
        )
        writer.side.append(side)
        writer.close_rows()
        writer.write_servers(describe_servers(stream, server_order, server, state, random), PREFIXES.empty_table())
        manifest |= {
            "texts": {text.name: {**describe(text), "texts": segment.lines, "first": 0}},
            "seen": 0,
            "known": size.rows,
        }
    write_metadata(crawl.path, side, urls.key[pages])
    return crawl, stream


def draw_urls(stream: Stream, random: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """(server, number) of so many distinct URLs, of each server the first ones."""
    counts = np.bincount(stream._draw_servers(random, rows), minlength=stream.shape.servers)
    server = np.repeat(np.arange(len(counts), dtype=np.uint32), counts)
    return server, rank_in_run(server).astype(np.uint32)


def describe_rows(random: np.random.Generator, rows: int) -> dict[str, np.ndarray]:
    """Accumulators and the columns of features, in the ranges that a crawl has."""
    links_in = np.minimum(random.pareto(1.0, rows) + 1, 1e6).astype(np.uint32)
    ranked = random.random(rows).astype(np.float32).view(np.uint32)
    return {
        "links_in": links_in,
        "mentions": links_in // 3,
        "cash": random.integers(0, 1 << 32, rows, np.uint64),
        "added": random.integers(1, 1_000, rows, np.uint32),
        "levels": random.integers(0, 8, rows).astype(np.uint8),
        "rank": ranked,
        "inherited": random.integers(0, 1 << 32, rows, np.uint64),
        "relevance": 3 * links_in,
        "nearness": random.integers(0, 1 << 31, rows, np.uint32),
        "past_rank": np.where(ranked > np.median(ranked), ranked, np.uint32(0)),
        "terms": random.integers(0, 3, rows).astype(np.uint8),
        "promise": random.integers(1, 2_400, rows).astype(np.uint16),
        "spread": random.integers(0, 4_000_000, rows, np.uint32),
        "rule": np.where(random.random(rows) < 0.05, random.integers(1, RULES + 1, rows), 0).astype(np.uint8),
        "budget": np.zeros(rows, np.uint8),
    }


def visit_pages(random: np.random.Generator, pages: int, cycles: int) -> dict[str, np.ndarray]:
    """The side set: changes at lognormal rates, visits at irregular intervals, the last one up to a month ago."""
    cycle = random.integers(0, cycles, pages, np.uint32)
    order = np.argsort(cycle, kind="stable")
    row = np.empty(pages, np.uint32)
    row[order] = rank_in_run(cycle[order])
    visits = random.integers(1, 12, pages).astype(np.uint16)
    interval_min = random.integers(1_440, 30 * 1_440, pages)
    rate_per_min = np.exp(random.normal(-10.5, 1.5, pages))
    changes = random.binomial(visits - 1, -np.expm1(-rate_per_min * interval_min)).astype(np.uint16)
    seen = NOW_MS - random.integers(0, 10 * DAY_MS, pages)
    is_304 = random.random(pages) < 0.3
    return {
        "cycle": cycle,
        "row": row,
        "fetched_at_ms": np.where(is_304, seen - 20 * DAY_MS, seen),
        "content_digest": random.integers(0, 1 << 63, 2 * pages, np.uint64).view("V16"),
        "duplicate": (random.random(pages) < 0.1).astype(np.uint8),
        "parsed": (random.random(pages) < 0.9).astype(np.uint8),
        "visited_at_ms": np.where(is_304, seen, 0),
        "visits": visits,
        "changes": changes,
        "unchanged_min": ((visits - 1 - changes) * interval_min).astype(np.uint32),
        "changed_min": (changes * interval_min).astype(np.uint32),
        "period_min": np.where(visits > 1, interval_min, 0).astype(np.uint32),
        "misses": (random.random(pages) < 0.02).astype(np.uint8),
    }


def describe_servers(
    stream: Stream, order: np.ndarray, server: np.ndarray, state: np.ndarray, random: np.random.Generator
) -> pa.Table:
    count = len(order)

    def count_in(*states: int) -> np.ndarray:
        return np.bincount(server[np.isin(state, states)], minlength=count)

    return as_table(
        BLOCK_SERVERS,
        count,
        {
            "server": stream.texts.servers.take(pa.array(order)),
            "server_key": stream.server_key[order],
            "domain_key": stream.domain_key[order],
            "robots_text": np.full(count, NO_TEXT),
            "delay_ms": 1_000,
            "requests": 10,
            "mean_ms": random.integers(20, 2_000, count),
            "known": np.bincount(server, minlength=count),
            "collected": count_in(COLLECTED_STATE),
            "waiting": count_in(WAITING, PRESCHEDULED),
            "prescheduled": count_in(PRESCHEDULED),
            "mentions": random.integers(0, 10_000, count),
        },
    )


def write_metadata(crawl: Path, side: dict[str, np.ndarray], key: np.ndarray) -> None:
    """MetadadosUrlsColetadas of each cycle, with the validators of its pages."""
    order = np.lexsort((side["row"], side["cycle"]))
    for here in np.split(order, np.flatnonzero(np.diff(side["cycle"][order].astype(np.int64))) + 1):
        folder = crawl / names.cycle(int(side["cycle"][here[0]])) / names.EXTRACTOR
        folder.mkdir(parents=True)
        own = pa.array(key[here])
        columns = {
            "url_key": key[here],
            "etag": own.cast(pa.string()),
            "last_modified": "Wed, 01 Jan 2025 00:00:00 GMT",
            "payload_digest": own.cast(pa.string()),
            "fetched_at_ms": side["fetched_at_ms"][here],
            "content_digest": pa.FixedSizeBinaryArray.from_buffers(
                pa.binary(16), len(here), [None, pa.py_buffer(np.ascontiguousarray(side["content_digest"][here]))]
            ),
            "status": 200,
            "type": "text/html",
            "title": own.cast(pa.string()),
        }
        write_table(folder / names.METADATA, as_table(METADATA, len(here), columns), DISTINCT, RANDOM)
