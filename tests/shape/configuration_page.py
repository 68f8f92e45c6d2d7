"""Makes docs/configuration.md from pipeline.toml and contract/config.py, so that the page cannot fall behind.

.venv/bin/python -m tests.shape.configuration_page writes the page; test_documents.py fails while it differs.
"""

import re
from dataclasses import Field, fields
from pathlib import Path

from contract import config
from contract.crawl_config import encode_value

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs/configuration.md"
HEAD = """\
# Configuration

Every key, by section. [pipeline.toml](../pipeline.toml) has the same in TOML, ready to copy. This page is made from it
and from the program, by `.venv/bin/python -m tests.shape.configuration_page`. A test fails while they differ.

- A file needs only the keys that differ from the defaults.
- An unknown key, a wrong type or a value that is not allowed is an error (exit 78). It names the key, what was
  expected, and the nearest key.
- Names carry units: `_s` seconds, `_ms` milliseconds, `_bytes` bytes. `_max` is a maximum.
- `bin/seed` stores the configuration in the crawl folder. `--config FILE` replaces it, `--set section.key=value` holds
  for one run ([operations](operations.md#the-configuration-of-a-crawl)).
- Lists on the command line are TOML: `--set 'scope.accept_suffixes=["br"]'`.
- Rules (`[[priority]]`, `[[budget]]`) stand in a file; `--set` cannot give them.
- A path (`hosts_file`, `ranks_file`, `weights_file`) is relative to the file that holds it; one given by `--set` is
  relative to the working folder.
"""
ABOUT = {
    "blocks": "Blocks and how they grow ([architecture](../ARCHITECTURE.md)). `first` counts only for a new crawl.",
    "scheduler": "What goes into a list, and in which order ([ordering](ordering.md)).",
    "revisit": "When collected pages are asked again ([coming back](ordering.md#coming-back)).",
    "fetcher": "How servers are asked. Set `contact` before the first cycle.",
    "extractor": "What is read of a page ([bounds](scope.md#what-is-read-of-a-page)), and which kinds of links\n"
    "([table](formats.md#ligacoesparquet)) are followed.",
    "url": "Which URLs count as one. [scope.md](scope.md#url-rules-what-is-folded) says what each rule might lose.",
    "scope": "Which URLs the crawl wants. [scope.md](scope.md#scope-rules-what-is-wanted) says how to tune each rule.",
    "verifier": "The merge, rules about whole servers ([table](scope.md#rules-about-a-whole-server)), when to give up.",
    "supervisor": "How stages are run.",
    "priority": "Rules for some URLs, on top of the policy\n"
    "([ordering](ordering.md#priority-some-urls-sooner-or-later)). Each is a table of its own, at most 255; the first\n"
    "one that a URL falls under counts. It has a `surt` or a `pattern`.",
    "budget": "Likewise: how many URLs are kept of those that fall under a rule"
    " ([budgets](ordering.md#fair-lists-and-budgets)).",
}
COLUMNS = "| key | default | allowed values | meaning |\n| --- | --- | --- | --- |\n"


def read_pipeline_toml() -> dict[str, tuple[str, str]]:
    """`section.key` -> its default as written there, empty where it takes several lines, and its comment."""
    found: dict[str, tuple[str, str]] = {}
    section = name = ""
    for line in (ROOT / "pipeline.toml").read_text().splitlines():
        rule = section in config.RULES and line.removeprefix("# ")
        if head := re.fullmatch(r"(?:# )?\[{1,2}(\w+)\]{1,2}(?: +# .*)?", line):
            section = head[1]
        elif rule and (key := re.fullmatch(r"(\w+) = (.*?)(?: +# (.*))?", rule)):
            found.setdefault(f"{section}.{key[1]}", ("", key[3] or ""))
        elif key := re.fullmatch(r"(\w+) = (.*?) +# (.*)", line):
            name = f"{section}.{key[1]}"
            found[name] = ("" if key[2] == "[" else key[2], key[3])
        elif more := re.fullmatch(r" +# (.*)", line):
            found[name] = (found[name][0], f"{found[name][1]} {more[1]}")
    return found


def describe_allowed(part: Field) -> str:
    if part.metadata.get("allowed"):
        return ", ".join(part.metadata["allowed"])
    least, most = part.metadata.get("least"), part.metadata.get("most")
    if least is None:
        return ""
    return f"{least:,} or more" if most is None else f"{least:,} to {most:,}"


def make_page() -> str:
    keys = read_pipeline_toml()
    sections = []
    for section, kind in {**config.SECTIONS, **config.RULES}.items():
        rows = []
        for part in fields(kind):
            default, comment = keys[f"{section}.{part.name}"]
            if section in config.RULES:  # pipeline.toml has an example of each instead of its default
                default = encode_value(part.default)
            shown = f"`{default}`" if default else "a list, see pipeline.toml"
            rows.append(f"| `{part.name}` | {shown} | {describe_allowed(part)} | {comment} |\n")
        title = f"[[{section}]]" if section in config.RULES else f"[{section}]"
        sections.append(f"## {title}\n{ABOUT[section]}\n\n{COLUMNS}{''.join(rows)}")
    return "\n".join([HEAD, *sections])


if __name__ == "__main__":
    PAGE.write_text(make_page())
