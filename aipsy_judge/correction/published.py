"""The published rule as proposed in full: weights by alignment with the expert, times recall on the failure tail.

Keeman and Keeman (arXiv:2608.24899) weight each judge per metric by its alignment with the psychologist and weigh a
judge down where it misses failures; no weights are published. The definition used here: with mse_j the mean squared
difference from the expert, q_j = 1 / (mse_j + .25) normalised (scales of 5 points: a half-point floor),
w_j = (n q_j + 20 / J) / (n + 20), times the recall of the expert's failures (at least .1), normalised. No bias is
subtracted: that would import the expert's leniency.
"""

from __future__ import annotations

import numpy as np

from .numbers import Bools, Floats

# Half a point of a scale that spans 4 points (1 to 5), squared, on the unit scale.
FLOOR = (0.5 / 4) ** 2
EQUAL_ITEMS = 20.0
LEAST_RECALL = 0.1


def published_weights(judges: Floats, expert: Floats, fails: Bools, cut: float, *, tail_rule: bool = True) -> Floats:
    """(J,) weights, not negative, sum 1, from n anchors: judges (n, J) without gaps, expert (n,), unit scale.

    fails  (n,) the expert's failures; a judge sees one where it scores below `cut` too
    """
    n, count = judges.shape
    if n == 0:
        return np.full(count, 1.0 / count)
    fit = 1.0 / (((judges - expert[:, None]) ** 2).mean(axis=0) + FLOOR)
    weight = (n * fit / fit.sum() + EQUAL_ITEMS / count) / (n + EQUAL_ITEMS)
    if tail_rule and fails.any():
        weight = weight * np.maximum((judges[fails] < cut).mean(axis=0), LEAST_RECALL)
    found: Floats = weight / weight.sum()
    return found
