"""What a profile changes in the demonstration: bin/run-cycle --demo --config FILE.

The profile sets the order, the caps, the canonical rules and what is rejected. Delays, contact, addresses and the hosts
in scope stay the demonstration's, so that it stays on loopback and ends soon.
"""

import shlex
from pathlib import Path
from typing import Any, NamedTuple

from contract import config_file
from contract.config import RULES
from contract.crawl_config import ITEMS_SHOWN_MAX, Difference, encode_pair, encode_value, find_differences
from contract.errors import Usage

# Beginnings of the keys that a profile sets.
TAKEN = (
    "blocks.first",
    "scheduler.",
    "revisit.",
    "fetcher.accept_types",
    "extractor.",
    "url.",
    "scope.reject_",
    "scope.hops_max",
    "verifier.prescheduled_",
    "verifier.server_max_urls",
    "verifier.domain_max_",
    "verifier.servers_max",
    "verifier.prefix_",
    "verifier.query_",
    *RULES,
)
# Names of no folder of a profile in demo/: what the demonstration without one has there, demo/ itself, its parent.
RESERVED = ("crawl", "web", ".", "..")


class Profile(NamedTuple):
    """A profile beside pipeline.toml: the keys that the demonstration takes from it, and those that it does not."""

    file: Path
    taken: list[Difference]
    kept: list[str]

    def describe(self) -> list[str]:
        lines = [describe(difference) for difference in self.taken] or ["nothing that the demonstration takes"]
        lines = [f"{self.file} sets:", *(f"  {line}" for line in lines)]
        return lines + ([f"the demonstration keeps its own {', '.join(self.kept)}"] if self.kept else [])


def read_profile(file: Path) -> Profile:
    changes = find_differences(config_file.load(), config_file.load(file))
    taken = [change for change in changes if change.name.startswith(TAKEN)]
    return Profile(file, taken, [change.name for change in changes if change not in taken])


def choose_folder(demo: Path, file: Path) -> Path:
    """The profile's folder in demo/."""
    if file.stem in RESERVED:
        raise Usage(f"--config {file}: {demo}/{file.stem} is no folder for a profile: give the file another name")
    return demo / file.stem


def combine(settings: str, profile: Profile) -> str:
    """The configuration file of the demonstration (`settings`, TOML) with what the profile sets on top."""
    tables: dict[str, Any] = config_file.parse_toml(settings.encode(), profile.file)
    rules = []
    for name, _, value in profile.taken:
        section, _, key = name.partition(".")
        if section in RULES:
            rules.append(encode_pair(name, value))  # before the first section
        else:
            tables.setdefault(section, {})[key] = value
    lines = [f"# The demonstration, with order, caps, canonical rules and rejections of {profile.file.name}", *rules]
    for section, table in tables.items():
        lines += ["", f"[{section}]", *(encode_pair(key, value) for key, value in table.items())]
    return "\n".join(lines) + "\n"


def require_same(settings: Path, content: str, profile: Profile) -> None:
    """Usage unless the demonstration, whose configuration file is there, began with this profile."""
    before = config_file.load(settings)
    changes = find_differences(before, config_file.parse(content.encode(), settings))
    if changes:
        raise Usage(
            f"--config {profile.file}: {settings.parent} began with another configuration "
            f"({'; '.join(map(str, changes))}): give the file that it began with, give this one another name, "
            f"or begin anew: rm -r {shlex.quote(str(settings.parent))}"
        )


def describe(change: Difference) -> str:
    """section.key = value; of a long list only what differs from pipeline.toml."""
    is_long = isinstance(change.after, tuple) and len(change.after) > ITEMS_SHOWN_MAX
    return str(change) if is_long else f"{change.name} = {encode_value(change.after)}"
