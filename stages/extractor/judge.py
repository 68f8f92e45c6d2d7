"""judge: tells which rule of [scope] a URL breaks under the configuration of a cycle; bin/why asks it.

  python -m stages.extractor.judge --crawl DIR --cycle ID URL [--page PAGE --depth N --kind KIND ...]

URL and PAGE are canonical. With a page, what holds for links of that page, N hops from a seed and of those kinds, is
judged too. Prints one JSON object: `rule`, empty where the URL is wanted, and `is_trap`.

Example: python -m stages.extractor.judge --crawl demo/crawl --cycle 4 http://a.test/calendar/2087/05/
"""

import json

from contract.command import make_parser, run
from contract.config import LINK_KINDS
from contract.crawl_folder import open_folder
from contract.errors import Usage
from contract.plan import read_plan
from contract.url import NotCanonical, canonicalise
from stages.extractor.__main__ import year_of
from stages.extractor.document import bits_of
from stages.extractor.requisites import Requisites
from stages.extractor.scope import TRAPS, Scope

NAME = "judge"


def main() -> None:
    parser = make_parser(NAME, __doc__)
    parser.add_argument("url", metavar="URL")
    parser.add_argument("--cycle", type=int, required=True, metavar="ID", help="the cycle whose rules count")
    parser.add_argument("--page", metavar="PAGE", help="the page that links to it")
    parser.add_argument("--depth", type=int, default=0, metavar="N", help="how many hops that page is from a seed")
    parser.add_argument("--kind", choices=LINK_KINDS, action="append", default=[], help="a kind of its links to it")
    arguments = parser.parse_args()
    for url in filter(None, (arguments.url, arguments.page)):
        expect_canonical(url)
    crawl = open_folder(arguments.crawl)
    plan, keys = read_plan(crawl.path, arguments.cycle), crawl.keys()
    url, page, depth, year = arguments.url, arguments.page, arguments.depth, year_of(plan.now_ms)
    scope = Scope(plan.config.scope, keys, year)
    rule = scope.judge_link(url, page, depth) if page else scope.judge(url)
    requisites = Requisites(plan.config, scope, keys, year)
    if rule and page and requisites.kinds_from(page, depth) & bits_of(arguments.kind):
        rule = requisites.judge(url, page, depth)
    print(json.dumps({"rule": rule, "is_trap": rule in TRAPS}))


def expect_canonical(url: str) -> None:
    try:
        if canonicalise(url) == url:
            return
    except NotCanonical:
        pass
    raise Usage(f"{url}: expected a canonical URL")


if __name__ == "__main__":
    run(main, NAME)
