"""crawl-ranks: writes the PageRank of a crawl's own links, as a file for [scheduler] ranks_file and bin/train-qrank.

  environment/enter study study.crawl_ranks --crawl DIR --out FILE

Each line has a URL that the crawl collected, a blank and its rank; the mean of all ranks is 1. With --drop-ports, URLs
lose their ports, as those of a web that was served on loopback should: port 80 was not free there.

Example: environment/enter study study.crawl_ranks --crawl demo/crawl --out /tmp/ranks.txt
"""

import re

from contract.command import file_to_write, make_parser, run
from storage.publish import put
from study.ranked_urls import rank_crawl

NAME = "crawl-ranks"
PORT = re.compile(r"(?<=[^/:]):\d+/")


def main() -> None:
    parser = make_parser(NAME, __doc__)
    parser.add_argument("--out", type=file_to_write, required=True, metavar="FILE", help="the file of ranks; replaced")
    parser.add_argument("--drop-ports", action="store_true", help="write URLs without their ports")
    arguments = parser.parse_args()
    known = rank_crawl(arguments.crawl)
    names = [line.decode().rstrip("\n") for line in known.lines.to_pylist()]
    if arguments.drop_ports:
        names = [PORT.sub("/", name, count=1) for name in names]
    ranks = known.ranks * len(known) / known.ranks.sum()
    lines = sorted(f"{name} {rank:.6g}\n" for name, rank in zip(names, ranks))
    put(arguments.out, "".join(lines).encode())
    print(f"wrote {arguments.out}: {len(lines):,} URLs", flush=True)


if __name__ == "__main__":
    run(main, NAME)
