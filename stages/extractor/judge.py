"""judge: tells which rule of [scope] a URL breaks under the configuration of a cycle; bin/why asks it.

  python -m stages.extractor.judge --crawl DIR --cycle ID URL [--page PAGE --depth N]

URL and PAGE are canonical. With a page, what holds for links of that page, N hops from a seed, is judged too. Prints one JSON
object: `rule`, empty where the URL is wanted, and `is_trap`.

Example: python -m stages.extractor.judge --crawl demo/crawl --cycle 4 http://a.test/calendar/2087/05/
"""

import json

from contract.command import make_parser, run
from contract.crawl_folder import open_folder
from contract.errors import Usage
from contract.plan import read_plan
from contract.url import NotCanonical, canonicalise
from stages.extractor.__main__ import year_of
from stages.extractor.scope import TRAPS, Scope

NAME = "judge"


def main() -> None:
    parser = make_parser(NAME, __doc__)
    parser.add_argument("url", metavar="URL")
    parser.add_argument("--cycle", type=int, required=True, metavar="ID", help="the cycle whose rules count")
    parser.add_argument("--page", metavar="PAGE", help="the page that links to it")
    parser.add_argument("--depth", type=int, default=0, metavar="N", help="how many hops that page is from a seed")
    arguments = parser.parse_args()
    for url in filter(None, (arguments.url, arguments.page)):
        expect_canonical(url)
    crawl = open_folder(arguments.crawl)
    plan = read_plan(crawl.path, arguments.cycle)
    scope = Scope(plan.config.scope, crawl.keys(), year_of(plan.now_ms))
    rule = scope.judge(arguments.url)
    if not rule and arguments.page:
        rule = scope.judge_depth(arguments.depth) or (scope.judge_from(arguments.page, arguments.url) if scope.is_suspect(arguments.page) else "")
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
