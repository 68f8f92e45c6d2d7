"""The tables that the verifier reads, as the extractor would have published them, made from the stream."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.verifier.stream import Stream, Urls, mix
from contract import names
from contract.plan import Plan
from contract.tables import ANSWERED, COLLECTED, CYCLE_SERVERS, DISTINCT, EXTRACTED, METADATA, RANDOM
from storage.publish import publishing
from storage.tables import write_table

DEPTH_MAX = 12  # a URL's depth is its number's logarithm, at most this: early URLs of a server lie near its root
ROBOTS_EVERY_MS = 86_400_000
ROBOTS = (
    b"",
    b"User-agent: *\nDisallow: /admin/\nDisallow: /search\n",
    b"User-agent: *\nDisallow:\n",
    b"User-agent: *\nDisallow: /wp-admin/\nAllow: /wp-admin/admin-ajax.php\n\n"
    b"Sitemap: https://www.example.com/sitemap.xml\n",
)
BASE32 = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", np.uint8)


def write_inputs(folder: Path, stream: Stream, plan: Plan, extracted: Urls, collected: Urls) -> None:
    tables = {
        names.EXTRACTED: extracted_table(stream, extracted),
        names.COLLECTED: collected_table(stream, collected, plan.now_ms),
        names.METADATA: metadata_table(stream, collected, plan.now_ms),
        names.SERVERS: servers_table(stream, collected, plan.now_ms),
    }
    with publishing(folder) as manifest:
        for name, table in tables.items():
            distinct = tuple(column for column in DISTINCT if column in table.column_names)
            write_table(folder / name, table, distinct, RANDOM if name == names.METADATA else ())
        manifest |= {
            "stage": names.EXTRACTOR,
            "cycle": plan.cycle,
            "config_digest": plan.config.digest(),
            "inputs": {},
            "counts": {"listed": len(collected), "answered": len(collected), "extracted_rows": len(extracted)},
        }


def keys_of(stream: Stream, urls: Urls) -> dict:
    return {
        "domain_key": stream.domain_key[urls.server],
        "url_key": urls.key,
        "server_key": stream.server_key[urls.server],
    }


def depth_of(urls: Urls) -> np.ndarray:
    return np.minimum(np.log2(urls.number.astype(np.float64) + 1), DEPTH_MAX).astype(np.uint8)


def extracted_table(stream: Stream, urls: Urls) -> pa.Table:
    return as_table(
        EXTRACTED,
        len(urls),
        {
            **keys_of(stream, urls),
            "url": stream.urls_of(urls.server, urls.number),
            "depth": depth_of(urls),
            "links_in": urls.links_in,
        },
    )


def collected_table(stream: Stream, urls: Urls, now_ms: int) -> pa.Table:
    return as_table(
        COLLECTED,
        len(urls),
        {
            **keys_of(stream, urls),
            "url": stream.urls_of(urls.server, urls.number),
            "depth": depth_of(urls),
            "outcome": ANSWERED,
            "status": 200,
            "attempts": 1,
            "fetched_at_ms": fetched_at_ms(urls, now_ms),
        },
    )


def metadata_table(stream: Stream, urls: Urls, now_ms: int) -> pa.Table:
    digests = np.stack([mix(urls.key), mix(~urls.key)], axis=1)
    sizes = (mix(urls.key + np.uint64(2)) % np.uint64(40_000)).astype(np.int64) + 2_000
    letters = BASE32[digests.view(np.uint8).repeat(2, axis=1) & 31]
    return as_table(
        METADATA,
        len(urls),
        {
            **keys_of(stream, urls),
            "url": stream.urls_of(urls.server, urls.number),
            "file": f"{names.PAGES}/00000.warc.zst",
            "offset": np.cumsum(sizes),
            "length": sizes,
            "status": 200,
            "type": "text/html",
            "charset": "utf-8",
            "payload_digest": pa.StringArray.from_buffers(
                len(urls), pa.py_buffer(np.arange(len(urls) + 1, dtype=np.int32) * 32), pa.py_buffer(letters)
            ),
            "content_digest": pa.FixedSizeBinaryArray.from_buffers(
                pa.binary(16), len(urls), [None, pa.py_buffer(digests)]
            ),
            "fetched_at_ms": fetched_at_ms(urls, now_ms),
            "total_ms": (sizes // 100).astype(np.uint32),
            "bytes": sizes,
            "address": "192.0.2.1",
            "parsed": 1,
            "reader": "html",
            "links_inside": 6,
            "links_outside": 3,
        },
    )


def servers_table(stream: Stream, collected: Urls, now_ms: int) -> pa.Table:
    """What was observed of the servers of the list; robots.txt of those that are asked for the first time."""
    server, requests = np.unique(collected.server, return_counts=True)
    texts = pa.array(ROBOTS, pa.binary()).take(pa.array(server % len(ROBOTS)))
    is_first = stream.taken[server] == 0
    return as_table(
        CYCLE_SERVERS,
        len(server),
        {
            "server": stream.texts.servers.take(pa.array(server)),
            "server_key": stream.server_key[server],
            "domain_key": stream.domain_key[server],
            "robots": pa.array(
                [text if first else None for text, first in zip(texts.to_pylist(), is_first.tolist())], pa.binary()
            ),
            "robots_expires_at_ms": np.full(len(server), now_ms + ROBOTS_EVERY_MS),
            "delay_ms": 1_000,
            "last_request_at_ms": np.full(len(server), now_ms),
            "ready_at_ms": np.full(len(server), now_ms),
            "address": "192.0.2.1",
            "requests": requests,
            "mean_ms": 100,
            "sitemaps": pa.array([[]] * len(server), pa.list_(pa.string())),
        },
    )


def fetched_at_ms(urls: Urls, now_ms: int) -> np.ndarray:
    return now_ms + np.arange(len(urls), dtype=np.int64) * 2


def as_table(schema: pa.Schema, rows: int, columns: dict) -> pa.Table:
    """The columns that are given, as arrays or as one value for all; the others are zeros, false or empty."""
    arrays = []
    for field in schema:
        value = columns.get(field.name, "" if pa.types.is_string(field.type) else 0)
        if isinstance(value, pa.Array):
            arrays.append(value)
        elif isinstance(value, np.ndarray):
            arrays.append(pa.array(value).cast(field.type))
        else:
            arrays.append(
                pa.repeat(pa.scalar(value, None if isinstance(value, str) else pa.int64()), rows).cast(field.type)
            )
    return pa.Table.from_arrays(arrays, schema=schema)
