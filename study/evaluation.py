"""What a learned rank is worth: its error and its order on URLs that it has not seen, beside those of other guesses."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from contract.qrank.network import LEVEL_MAX, Network
from study.training import fit_trees

Array = npt.NDArray[np.float64]
Data = tuple[npt.NDArray[np.float32], Array]  # features and targets
THESIS_ERROR = 0.14


class Row(NamedTuple):
    name: str
    error: float  # mean of |predicted - target|
    correlation: float | None  # Spearman's, with the rank; none where all predictions are the same, or not known


def compare(network: Network, training: Data, testing: Data, ranks: Array, seed: int) -> list[Row]:
    """`ranks` are those of the rows of `testing`."""
    from scipy.stats import spearmanr

    features, targets = testing
    predictions = {
        "network, as a crawl applies it": network.levels(features) / LEVEL_MAX,
        "gradient boosted trees": fit_trees(*training, seed)(features),
        "always the mean": np.full(len(targets), training[1].mean()),
        "always the median": np.full(len(targets), np.median(training[1])),
    }
    return [
        Row(
            name,
            float(np.abs(predicted - targets).mean()),
            float(spearmanr(predicted, ranks).statistic) if np.ptp(predicted) and np.ptp(ranks) else None,
        )
        for name, predicted in predictions.items()
    ] + [Row("the thesis's network, on its pages", THESIS_ERROR, None)]


def table_lines(rows: list[Row]) -> list[str]:
    lines = [f"{'':34} mean error  rank correlation"]
    for row in rows:
        correlation = "-" if row.correlation is None else f"{row.correlation:.3f}"
        lines.append(f"{row.name:34} {row.error:10.1%}  {correlation:>16}")
    return lines
