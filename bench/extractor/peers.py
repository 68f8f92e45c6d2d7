"""The peers, each in its own process: they find the links of decoded pages in memory, and print what it took.

    python -m bench.extractor.peers NAME FILE      (NAME: scrapy or lxml; FILE as corpus.write_decoded leaves it)

It prints JSON: `pages`, `links` (distinct in their page), `wall_s` and `cpu_s`, without starting and without reading
the file.
"""

import json
import pickle
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench.processes import Spent, on_cores, run_child
from contract.errors import TryLater

NAMES = ("scrapy", "lxml")

FindLinks = Callable[[str, bytes], int]


def run_peer(name: str, decoded: Path, count: int, core: int) -> tuple[Spent, int]:
    """What finding the links of the pages takes a peer on one core, and how many it found."""
    output, log = decoded.with_name(f"{name}.json"), decoded.with_name(f"{name}.log")
    with on_cores([core]):
        run_child([sys.executable, "-P", "-m", "bench.extractor.peers", name, decoded], log, output)
    found = json.loads(output.read_text())
    if found["pages"] != count:
        raise TryLater(f"{name} read {found['pages']} pages of {count}")
    return Spent(found["wall_s"], found["cpu_s"]), found["links"]


def scrapy_links() -> FindLinks:
    from scrapy.http import HtmlResponse
    from scrapy.linkextractors import LinkExtractor

    extractor = LinkExtractor()
    return lambda url, body: len(extractor.extract_links(HtmlResponse(url, body=body, encoding="utf-8")))


def lxml_links() -> FindLinks:
    from lxml import html

    parser = html.HTMLParser(encoding="utf-8")

    def find(url: str, body: bytes) -> int:
        document = html.document_fromstring(body, parser=parser)
        document.make_links_absolute(url, handle_failures="ignore")
        return len({link for _, _, link, _ in document.iterlinks()})

    return find


def read_decoded(path: Path) -> list[tuple[str, bytes]]:
    pages = []
    with open(path, "rb") as file:
        while True:
            try:
                pages.append(pickle.load(file))
            except EOFError:
                return pages


def main() -> None:
    name, path = sys.argv[1:]
    find = {"scrapy": scrapy_links, "lxml": lxml_links}[name]()
    pages = read_decoded(Path(path))
    find(*pages[0])  # what is made at first use is part of starting
    began_s, began_cpu_s = time.perf_counter(), time.process_time()
    links = sum(find(url, body) for url, body in pages)
    print(
        json.dumps(
            {
                "pages": len(pages),
                "links": links,
                "wall_s": time.perf_counter() - began_s,
                "cpu_s": time.process_time() - began_cpu_s,
            }
        )
    )


if __name__ == "__main__":
    main()
