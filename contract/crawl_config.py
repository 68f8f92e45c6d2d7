"""The configuration of a crawl: configuration.toml in its folder, and how two configurations differ.

The file has every key, so that a new default of a later version changes nothing. Its last line is a checksum of all
lines before it: a file that was cut off or edited could widen the scope of a crawl unnoticed.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from contract import names
from contract.config import NAMES, PATHS, RULES, SECTIONS, Config, lookup
from contract.config_file import parse
from contract.errors import BadConfiguration
from storage.publish import FORMAT, put

LINE_MAX = 120  # columns
ITEMS_SHOWN_MAX = 12  # of a list; for a longer one, only what was added and removed
HEADER = f"""\
# The configuration of this crawl, format {FORMAT}: every key. Runs without --config use it.
# bin/run-cycle --config FILE replaces it. A path that is not absolute begins at this folder.
"""
CHECK = b"# check "


class Difference(NamedTuple):
    name: str  # section.key
    before: Any
    after: Any

    def __str__(self) -> str:
        if isinstance(self.after, tuple) and max(len(self.before), len(self.after)) > ITEMS_SHOWN_MAX:
            added = tuple(item for item in self.after if item not in self.before)
            removed = tuple(item for item in self.before if item not in self.after)
            return f"{self.name}: added {encode_value(added)}, removed {encode_value(removed)}"
        return f"{self.name}: {encode_value(self.before)} -> {encode_value(self.after)}"


def find_differences(before: Config, after: Config) -> list[Difference]:
    pairs = ((name, lookup(before, name), lookup(after, name)) for name in NAMES)
    return [Difference(*pair) for pair in pairs if pair[1] != pair[2]]


def read_crawl_config(crawl: Path, overrides: Sequence[str] = ()) -> Config:
    """The configuration of the crawl, with overrides on top."""
    path = crawl / names.CONFIGURATION
    replaced_by = f"bin/run-cycle --crawl {crawl} --config FILE"
    if not path.is_file():
        if os.path.lexists(path):
            raise BadConfiguration(
                f"{path}: expected a file, found something else: move it away, then give a configuration: {replaced_by}"
            )
        raise BadConfiguration(
            f"{path} is missing, so the crawl has no configuration: give one again, or pipeline.toml: {replaced_by}"
        )
    content = path.read_bytes()
    body, _, check = content.rpartition(CHECK)
    if check.strip() != digest(body):
        raise BadConfiguration(
            f"{path}: expected its checksum in the last line, found another one: it was changed or cut off "
            f"after it was written. Replace it: {replaced_by}; to keep the change, FILE is {path} itself"
        )
    try:
        parse(body, path)
    except BadConfiguration as error:
        raise BadConfiguration(f"{error}. Replace the file: {replaced_by}") from None
    return parse(body, path, overrides)


def write_crawl_config(crawl: Path, config: Config) -> None:
    put(crawl / names.CONFIGURATION, encode_config(config, crawl))


def encode_config(config: Config, crawl: Path) -> bytes:
    """The bytes of configuration.toml. A path inside the crawl folder is relative, so that the folder can be moved."""
    lines = [HEADER]
    for section, kind in SECTIONS.items():
        lines.append(f"[{section}]")
        for part in fields(kind):
            value = getattr(getattr(config, section), part.name)
            if (section, part.name) in PATHS and value and Path(value).is_relative_to(os.path.abspath(crawl)):
                value = str(Path(value).relative_to(os.path.abspath(crawl)))
            lines.append(encode_pair(part.name, value))
        lines.append("")
    for name in RULES:
        for rule in getattr(config, name):
            lines += [f"[[{name}]]", *(encode_pair(part.name, getattr(rule, part.name)) for part in fields(rule)), ""]
    body = "\n".join(lines).encode()
    return body + CHECK + digest(body) + b"\n"


def encode_pair(key: str, value: object) -> str:
    line = f"{key} = {encode_value(value)}"
    if len(line) <= LINE_MAX or not isinstance(value, tuple):
        return line
    rows = [""]
    for item in map(encode_value, value):
        if rows[-1] and len(rows[-1]) + len(item) + 6 > LINE_MAX:
            rows.append("")
        rows[-1] += f"{item}, "
    return "\n".join([f"{key} = [", *(f"    {row.rstrip()}" for row in rows), "]"])


def encode_value(value: object) -> str:
    """The value as TOML."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(encode_value, value))}]"
    if is_dataclass(value):
        return f"{{{', '.join(f'{part.name} = {encode_value(getattr(value, part.name))}' for part in fields(value))}}}"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # JSON allows it raw, TOML does not
    return json.dumps(value)


def digest(body: bytes) -> bytes:
    return blake2b(body, digest_size=16).hexdigest().encode()
