"""The configuration file: TOML, with `--set section.key=value` on top.

A path in a configuration is relative to the file that holds it; a path given by --set, to the working folder.
"""

import os
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from contract.config import NAMES, PATHS, RULES, Config
from contract.config_check import from_tables, suggest
from contract.errors import BadConfiguration, Usage

DEFAULT_FILE = Path(__file__).resolve().parent.parent / "pipeline.toml"
LINE_SHOWN_MAX = 80  # characters of a line with a syntax error
POSITION = re.compile(r"\(at line (\d+), column (\d+)\)$")
A_VALUE = 'a value: text in quotes, a number, true, false, or a list such as ["one", "two"]'
# What the TOML parser expects, by how its message begins (CPython's tomllib/_parser.py).
EXPECTED = {
    "Invalid value": A_VALUE,
    "Invalid date": A_VALUE,
    "Exceeds the limit": "a number of fewer digits",
    "Expected '=' after a key": "an equals sign after the key, as in delay_s = 5.0",
    "Expected ']": "a section in brackets, as in [fetcher]",
    "Expected newline": "the end of the line after the value",
    "Invalid statement": "a section, as in [fetcher], or a key with its value, as in delay_s = 5.0",
    "Invalid initial character for a key": "a key of letters, digits, _ and -",
    "Unclosed array": "a comma or the ] that ends the list",
    "Unclosed inline table": "a comma or the } that ends the table",
    "Unterminated string": "the quote that ends the text",
    "Expected": "the quote that ends the text",
    "Illegal character '\\n'": "the quote that ends the text",
    "Illegal character": "text without control characters",
    "Found invalid character": "text without control characters",
    "Unescaped": r"\\ for a backslash, or single quotes around the text",
    "Invalid hex": r"\\ for a backslash, or single quotes around the text",
    "Escaped character": r"\\ for a backslash, or single quotes around the text",
    "Cannot declare": "each section only once",
    "Cannot": "each key only once",
    "Duplicate": "each key only once",
}


def load(path: Path | None = None, overrides: Sequence[str] = ()) -> Config:
    """The configuration of a TOML file (default: the project's own) with `section.key=value` overrides on top."""
    source = path or DEFAULT_FILE
    try:
        return parse(source.read_bytes(), source, overrides)
    except OSError as error:
        raise BadConfiguration(f"{source}: no such configuration file ({error.strerror})") from None


def parse(content: bytes, source: Path, overrides: Sequence[str] = ()) -> Config:
    """The configuration that the content of a file holds; its paths are made absolute."""
    tables = parse_toml(content, source)
    anchor_paths(tables, source.parent)
    for text in overrides:
        apply_override(tables, text)
    anchor_paths(tables, Path())
    return from_tables(tables, f"{source} with --set" if overrides else str(source))


def parse_toml(content: bytes, source: Path) -> dict[str, Any]:
    """The tables of a TOML file; a syntax error is reported with its line, column, and what is expected there."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BadConfiguration(
            f"{source}: line {line}: expected text in UTF-8, found the byte 0x{content[error.start]:02x}"
        ) from None
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise BadConfiguration(f"{source}: expected TOML, found too many brackets inside each other") from None
    except ValueError as error:  # a syntax error, or a number of too many digits
        raise BadConfiguration(f"{source}: {describe_syntax_error(str(error), text)}") from None


def describe_syntax_error(message: str, text: str) -> str:
    """Where the TOML parser stopped, what it expected there, and that line; `message` is the parser's."""
    at = POSITION.search(message)  # none where it stopped at the end of the file
    lines = text.split("\n") if at else text.rstrip().split("\n")
    line, column = (int(at[1]), int(at[2])) if at else (len(lines), len(lines[-1]) + 1)
    expected = next((plain for start, plain in EXPECTED.items() if message.startswith(start)), "TOML")
    return f"line {line}, column {column}: expected {expected}; found: {lines[line - 1].strip()[:LINE_SHOWN_MAX]}"


def anchor_paths(tables: dict[str, Any], folder: Path) -> None:
    """Makes relative paths absolute: they begin at the folder."""
    for section, key in PATHS:
        table = tables.get(section)
        if isinstance(table, dict) and isinstance(table.get(key), str) and table[key]:
            table[key] = os.path.abspath(folder / table[key])


def apply_override(tables: dict[str, Any], text: str) -> None:
    name, equals, value = text.partition("=")
    section, dot, key = name.strip().partition(".")
    if section in RULES:
        raise Usage(f"--set {text}: rules are tables of their own: write [[{section}]] into a file for --config")
    if not (equals and dot):
        meant = suggest(name.strip(), NAMES) or "; as in --set fetcher.delay_s=2.5"
        raise Usage(f"--set {text}: expected section.key=value{meant}")
    try:
        parsed = tomllib.loads(f"value = {value}")["value"]
    except (ValueError, RecursionError):
        parsed = value.strip()  # a bare word is a string, so that a shell needs no second pair of quotes
    section_table = tables.setdefault(section, {})
    if not isinstance(section_table, dict):
        raise BadConfiguration(f"{section}: expected a table, found {section_table!r}")
    section_table[key] = parsed
