"""Texts of a turn: one new segment with the new URLs and robots.txt files, or all of the block's texts in one."""

import os
from pathlib import Path

import numpy as np

from contract import names
from storage.publish import ASIDE, describe, make_folder, sync_file, sync_folder
from storage.text_segments import NO_TEXT, read_texts, segments_of, write_segment

SEGMENTS_MAX = 16  # more would make reading a selection of rows a walk over many files


def store_texts(crawl: Path, out: Path, cycle: int, parent_texts: dict, rows: dict, is_new: np.ndarray, new_urls: list[str],
                servers: dict, new_robots: dict[int, bytes]) -> dict[str, dict]:
    """Writes a segment and sets the positions in rows['text'] and servers['robots_text']; returns the segments in use.

    `new_urls` are in the order of the new rows; `new_robots` maps a place in the table of servers to its text.
    """
    kept_rows = np.flatnonzero(~is_new)
    has_robots = servers["robots_text"] != NO_TEXT
    if must_rewrite(parent_texts, len(kept_rows) + int(has_robots.sum())):
        urls = np.empty(len(rows["key"]), object)
        urls[kept_rows] = read_texts(crawl / names.TEXT, names.segment, rows["text"][kept_rows])
        urls[is_new] = [url.encode() for url in new_urls]
        keepers = [place for place in np.flatnonzero(has_robots).tolist() if place not in new_robots]
        old = read_texts(crawl / names.TEXT, names.segment, servers["robots_text"][keepers], servers["robots_length"][keepers])
        robots = {**dict(zip(keepers, old)), **new_robots}
        which = np.arange(len(urls))
    else:
        which = np.flatnonzero(is_new)
        urls = np.empty(len(rows["key"]), object)
        urls[which] = [url.encode() for url in new_urls]
        robots = new_robots
    places = sorted(robots)
    if len(which) or places:
        domain = servers["domain_key"][rows["server"][which]]
        which = which[np.lexsort((rows["key"][which], domain))]
        name = names.segment(cycle)
        positions = write(out / names.TEXT / name, cycle, [*urls[which], *(robots[place] for place in places)])
        rows["text"][which] = positions[:len(which)]
        servers["robots_text"][places] = positions[len(which):]
        servers["robots_length"][places] = [len(robots[place]) for place in places]
        parent_texts = {**parent_texts, name: {**describe(out / names.TEXT / name), "texts": len(positions)}}
    in_use = segments_of(np.concatenate([rows["text"], servers["robots_text"]]))
    return {names.segment(int(number)): parent_texts[names.segment(int(number))] for number in in_use}


def must_rewrite(texts: dict, in_use: int) -> bool:
    written = sum(text["texts"] for text in texts.values())
    return len(texts) >= SEGMENTS_MAX or in_use * 2 < written


def write(path: Path, number: int, texts: list[bytes]) -> np.ndarray:
    """Durable, and in one step where an earlier attempt of the same turn has written it."""
    make_folder(path.parent)
    aside = path.with_name(f"{ASIDE}{os.getpid()}-{path.name}")
    aside.unlink(missing_ok=True)
    positions = write_segment(aside, number, texts)
    sync_file(aside)
    aside.rename(path)
    sync_folder(path.parent)
    return positions
