"""Training of QRank: a network of 20 features, 60 hidden units and one output, from URLs whose ranks are known.

Target. With r for a page's rank and m for the mean rank of all pages, the level of a page is the natural logarithm of
r / m, cut towards zero to an integer, and at least -1 and at most 10; a rank of 0 has level -1. The target is
(level + 1) / 11, from 0 to 1. The thesis names these levels; base, mean and cut are our reading of them: the smallest
PageRank is 0.15 of the mean, whose logarithm is -1.9, so that the levels begin at -1.

Network. All units are sigmoids. scikit-learn's MLPRegressor has a linear output, so it learns the logit of the target,
which is cut a quarter of a level before 0 and 1, and the sigmoid is applied behind it. Adam (Kingma and Ba, 2015) takes
the place of the thesis's Quickprop. Inputs are standardised for training; mean and deviation are then put into the
weights. A feature that is the same in all training data gets the weight 0: nothing is known of its other values.
"""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from contract.qrank.features import features_of
from contract.qrank.network import HIDDEN, Network
from contract.qrank.weights import Weights
from study.dictionary import read_dictionary

Array = npt.NDArray[np.float64]
LEVEL_MIN, LEVEL_MAX = -1, 10
LEVELS = LEVEL_MAX - LEVEL_MIN
TRAIN, TEST = 50_000, 200_000  # URLs, as in the thesis
EPOCHS = 60
STEPS_MIN = 6_000  # of few URLs there are more epochs
BATCH = 200  # URLs per step
LEARNING_RATE = 0.002  # of Adam
DECAY = 0.0001  # scikit-learn's alpha, the weight of the squared weights; its default


def targets_of(ranks: Array) -> Array:
    """The target of each rank (0 or more), beside the mean of all."""
    mean = ranks.mean()
    with np.errstate(divide="ignore"):
        levels = np.trunc(np.log(ranks / mean)) if mean else np.full(len(ranks), -np.inf)
    return (np.clip(levels, LEVEL_MIN, LEVEL_MAX) - LEVEL_MIN) / LEVELS


def train(lines: pa.LargeBinaryArray, ranks: Array, seed: int, most: int = TRAIN, decay: float = DECAY) -> Weights:
    """Weights from `most` of these canonical URLs, each with a newline; which ones, the seed decides."""
    chosen = np.random.default_rng(seed).permutation(len(lines))[:most]
    return train_on(lines.take(pa.array(chosen)), targets_of(ranks)[chosen], seed, decay)


def train_on(lines: pa.LargeBinaryArray, targets: Array, seed: int, decay: float = DECAY) -> Weights:
    words = read_dictionary()
    return Weights(fit(features_of(lines, words), targets, seed, decay), words)


def fit(features: npt.NDArray[np.float32], targets: Array, seed: int, decay: float) -> Network:
    """The network for these rows; the same rows and seed give the same weights."""
    from sklearn.neural_network import MLPRegressor

    mean, deviation = features.mean(axis=0, dtype=np.float64), features.std(axis=0, dtype=np.float64)
    is_constant = deviation < 1e-6  # of a feature that is the same in all rows nothing can be learned
    deviation[is_constant] = 1.0
    inputs = (features - mean) / deviation
    least = 0.25 / LEVELS
    cut = np.clip(targets, least, 1 - least)
    logits = np.log(cut / (1 - cut))
    machine = MLPRegressor(
        hidden_layer_sizes=(HIDDEN,),
        activation="logistic",
        alpha=decay,
        learning_rate_init=LEARNING_RATE,
        batch_size=min(BATCH, len(inputs)),
        random_state=seed,
    )
    epochs = max(EPOCHS, STEPS_MIN * BATCH // len(inputs))
    for epoch in range(epochs):
        machine.partial_fit(inputs, logits)
        show_progress(epoch + 1, epochs)
    (hidden, output), (hidden_bias, output_bias) = machine.coefs_, machine.intercepts_
    hidden = np.where(is_constant[:, np.newaxis], 0.0, hidden / deviation[:, np.newaxis])
    return Network(
        hidden.astype(np.float32),
        (hidden_bias - mean @ hidden).astype(np.float32),
        output[:, 0].astype(np.float32),
        output_bias.astype(np.float32),
    )


def fit_trees(features: npt.NDArray[np.float32], targets: Array, seed: int) -> Callable[[Any], Array]:
    """What gradient boosted trees learn from these rows, to compare with: a function from features to targets."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    predict: Callable[[Any], Array] = HistGradientBoostingRegressor(random_state=seed).fit(features, targets).predict
    return predict


def show_progress(epoch: int, epochs: int) -> None:
    """Over the previous line, on a terminal only."""
    if sys.stderr.isatty():
        print(f"\rtraining: {epoch} of {epochs} epochs", end="\n" * (epoch == epochs), file=sys.stderr, flush=True)
