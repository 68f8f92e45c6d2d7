"""train-qrank: trains the rank that policies neural and neural-graph give to the text of a URL.

  bin/train-qrank --ranks FILE --out WEIGHTS      from a file of URLs and their ranks
  bin/train-qrank --crawl DIR --out WEIGHTS       from the PageRank of a crawl's own links

FILE is as [scheduler] ranks_file: a line per URL, with a blank and a rank from 0 on. Lines that name a
server are left out. WEIGHTS is what [scheduler] weights_file names.

50,000 URLs are for training and 200,000 others for testing. If there are fewer, a fifth is for training;
--train N and --test N ask for other numbers. With --test-ranks FILE or --test-crawl DIR, the test takes
its URLs from there: other sites than those of the training show best what the network is worth.

A network learns the names of sites by heart, so it ranks pages of the sites that it knows well, and those
of others badly. --decay X weakens that: 10 is good for other sites, the default for the same ones.

What is learned. With r for the rank of a page and m for the mean of all ranks, the level of the page is
ln(r / m), cut towards zero to an integer, and at least -1 and at most 10; rank 0 has level -1. The target
is (level + 1) / 11, from 0 to 1. The network has 20 inputs, the features of contract/qrank/features.py,
then 60 units and one, all sigmoids. Adam takes the place of Quickprop; scikit-learn learns the logit of
the target, and the sigmoid of the last unit is applied behind it.

What is printed. The mean error is the mean of |predicted - target|, in percent. The rank correlation is
Spearman's, between the prediction and the rank itself: 1 is the same order, 0 is chance. Beside the
network stand gradient boosted trees on the same features, and a guess that is the same for all URLs: an
error says something only beside that of the guess. On one machine, the same input and --seed give the same
file.

Example: bin/train-qrank --crawl demo/crawl --train 500 --test 500 --out /tmp/weights.npz
"""

from pathlib import Path

import numpy as np
import pyarrow as pa

from contract.command import at_least, file_to_write, is_crawl_given, make_parser, run
from contract.crawl_folder import expect_outside
from contract.errors import BadInput, Usage
from contract.qrank.features import features_of
from contract.qrank.weights import pack
from storage.publish import put
from study.evaluation import compare, table_lines
from study.ranked_urls import RankedUrls, rank_crawl, read_rank_file
from study.training import DECAY, TEST, TRAIN, targets_of, train_on

NAME = "train-qrank"
TRAIN_PART = 5  # of this many URLs one is for training, where there are few


def main() -> None:
    parser = make_parser(NAME, __doc__)
    parser.add_argument("--ranks", type=Path, metavar="FILE", help="URLs and their ranks")
    parser.add_argument(
        "--out", type=file_to_write, required=True, metavar="FILE", help="the file of weights; replaced"
    )
    parser.add_argument(
        "--train", type=at_least(100), metavar="N", help=f"URLs for training (default: {TRAIN:,}, at most a fifth)"
    )
    parser.add_argument(
        "--test", type=at_least(100), metavar="N", help=f"URLs for testing (default: {TEST:,}, at most all others)"
    )
    parser.add_argument("--test-ranks", type=Path, metavar="FILE", help="test on the URLs of this file")
    parser.add_argument("--test-crawl", type=Path, metavar="DIR", help="test on the pages of this crawl")
    parser.add_argument(
        "--decay",
        type=at_least(0.0, 1_000.0),
        default=DECAY,
        metavar="X",
        help=f"how strongly weights are drawn to 0; 10 where other sites are to be ranked (default: {DECAY})",
    )
    parser.add_argument("--seed", type=at_least(0), default=1, metavar="N", help="decides which URLs (default: 1)")
    arguments = parser.parse_args()
    if (arguments.ranks is not None) == is_crawl_given(arguments):
        raise Usage("expected either --ranks FILE or --crawl DIR")
    if arguments.test_ranks is not None and arguments.test_crawl is not None:
        raise Usage("expected at most one of --test-ranks and --test-crawl")
    expect_outside(arguments.out)
    known = open_ranked(arguments.ranks, arguments.crawl)
    others = None
    if arguments.test_ranks is not None or arguments.test_crawl is not None:
        others = open_ranked(arguments.test_ranks, arguments.test_crawl)
    train_and_report(known, others, arguments)


def open_ranked(ranks: Path | None, crawl: Path) -> RankedUrls:
    found = rank_crawl(crawl) if ranks is None else read_rank_file(ranks)
    left_out = f"; left out are lines that name servers: {found.servers:,}" if found.servers else ""
    print(f"{found.source}: {len(found):,} URLs with ranks{left_out}", flush=True)
    return found


def train_and_report(known: RankedUrls, others: RankedUrls | None, arguments) -> None:
    shuffled = np.random.default_rng(arguments.seed).permutation(len(known))
    if others is None:
        train, test = divide(known, arguments.train, arguments.test)
        training, testing, tested = shuffled[:train], shuffled[train : train + test], known
    else:
        training = shuffled[: arguments.train or TRAIN]
        testing = np.random.default_rng(arguments.seed).permutation(len(others))[: arguments.test or TEST]
        tested = others
    asked = arguments.train or TRAIN, arguments.test or TEST
    fewer = (
        "" if (len(training), len(testing)) == asked else f", fewer than the {asked[0]:,} and {asked[1]:,} asked for"
    )
    print(f"training on {len(training):,} URLs, testing on {len(testing):,} others{fewer}", flush=True)
    weights = train_on(
        known.lines.take(pa.array(training)), targets_of(known.ranks)[training], arguments.seed, arguments.decay
    )
    content = pack(weights)
    put(arguments.out, content)
    rows = compare(
        weights.network,
        (features_of(known.lines.take(pa.array(training)), weights.words), targets_of(known.ranks)[training]),
        (features_of(tested.lines.take(pa.array(testing)), weights.words), targets_of(tested.ranks)[testing]),
        tested.ranks[testing],
        arguments.seed,
    )
    print(*table_lines(rows), f"wrote {arguments.out}: {len(content):,} bytes", sep="\n", flush=True)


def divide(known: RankedUrls, train: int | None, test: int | None) -> tuple[int, int]:
    """How many URLs are for training, and how many of the others for testing."""
    train = train or min(TRAIN, len(known) // TRAIN_PART)
    if train >= len(known):
        raise BadInput(f"{known.source}: expected more than the {train:,} URLs of --train, found {len(known):,}")
    return train, min(test or TEST, len(known) - train)


if __name__ == "__main__":
    run(main, NAME)
