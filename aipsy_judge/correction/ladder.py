"""The ladder of corrections fitted to the anchors of one metric, and the blend of its rungs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .blend import blend_weights
from .design import Design
from .folds import INNER_FOLDS, fold_of, left_out
from .gaussian import averaged, posteriors, sums_without
from .numbers import Bools, Floats, Ints
from .published import published_weights
from .rungs import SHARES, Rung, equal_start, learnt_rungs


@dataclass(frozen=True, slots=True, eq=False)
class Anchors:
    """The n items that an expert has rated, of one metric, on the unit scale, judges without gaps.

    judges (n, J), others (n, M), expert (n,), groups (n,) conversation, weights (n,) mean 1, fails (n,) the expert
    sees a failure; `cut` is where on the scale a failure begins.
    """

    judges: Floats
    others: Floats
    expert: Floats
    groups: Ints
    weights: Floats
    fails: Bools
    cut: float

    def __len__(self) -> int:
        return len(self.expert)

    def rows(self, keep: Bools | Ints) -> Anchors:
        return Anchors(
            self.judges[keep],
            self.others[keep],
            self.expert[keep],
            self.groups[keep],
            self.weights[keep],
            self.fails[keep],
            self.cut,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Ladder:
    """names of the R rungs; coefficients (R, K) over the design's columns; blend (R,), sums to 1.

    fold                 (n,) fold of each anchor
    fold_coefficients    (F, R, K) fitted without that fold
    out_of_fold          (n, R) each rung's value at each anchor, fitted without its fold; not cut to the scale
    """

    names: tuple[str, ...]
    coefficients: Floats
    blend: Floats
    fold: Ints
    fold_coefficients: Floats
    out_of_fold: Floats

    @property
    def combined(self) -> Floats:
        """(K,) coefficients of the blend."""
        found: Floats = self.blend @ self.coefficients
        return found

    @property
    def blended_out_of_fold(self) -> Floats:
        """(n,) the blend at each anchor; rungs fitted without its fold, the blend's R weights with it."""
        found: Floats = self.out_of_fold @ self.blend
        return found


def fit_ladder(design: Design, anchors: Anchors, seed: int, only: str | None = None) -> Ladder:
    """Fit every rung (or `only` one) and blend them by their error out of fold (folds by conversation)."""
    fold = fold_of(anchors.groups, INNER_FOLDS, seed)
    out, x = left_out(fold), design.columns(anchors.judges, anchors.others)
    rungs = {r.name: r for r in learnt_rungs(design)}
    names = tuple(n for n in SHARES if (n in rungs or n in ("mean", "published")) and only in (None, n))
    fitted = np.stack([_coefficients(n, rungs, design, anchors, x, out) for n in names], axis=1)
    predicted = np.einsum("nk,nrk->nr", x, fitted[fold])
    errors = np.clip(predicted, 0, 1) - anchors.expert[:, None]
    shares = np.array([SHARES[n] for n in names])
    blend = blend_weights(errors, shares, anchors.groups, anchors.weights, seed)
    return Ladder(names, fitted[-1], blend, fold, fitted[:-1], predicted)


def unfitted_ladder(design: Design) -> Ladder:
    """The equal mean alone: where there are too few anchors to learn from."""
    start = equal_start(design)[None]
    nothing = np.empty((0, 1))
    return Ladder(("mean",), start, np.ones(1), np.empty(0, dtype=np.int64), start[None][:0], nothing)


def _coefficients(
    name: str, rungs: dict[str, Rung], design: Design, anchors: Anchors, x: Floats, out: Floats
) -> Floats:
    """(F + 1, K): fitted without each fold, and on all anchors."""
    if name == "mean":
        return np.tile(equal_start(design), (len(out), 1))
    if name == "published":
        return np.stack([_published(design, anchors.rows(gone == 0)) for gone in out])
    parts = []
    for guess in rungs[name].guesses:
        sums = sums_without(x[:, guess.columns], anchors.expert - x @ guess.start, out)
        evidence, moved = posteriors(sums, guess.spreads)
        whole = np.broadcast_to(guess.start, (*evidence.shape, len(guess.start))).copy()
        whole[:, :, guess.columns] += moved
        parts.append((evidence, whole))
    found = averaged(parts)
    return _not_negative(found, design) if rungs[name].not_negative else found


def _published(design: Design, anchors: Anchors) -> Floats:
    weights = published_weights(anchors.judges, anchors.expert, anchors.fails, anchors.cut)
    found = np.zeros(design.width)
    found[0], found[design.blocks["judges"]] = weights @ design.judges, weights
    return found


def _not_negative(coefficients: Floats, design: Design) -> Floats:
    """Negative weights become 0 and the others are scaled so that their sum stays; the value at the centre stays."""
    place = design.blocks["judges"]
    weights = coefficients[:, place]
    kept = np.maximum(weights, 0.0)
    total, kept_total = weights.sum(axis=1, keepdims=True), kept.sum(axis=1, keepdims=True)
    scale = np.where(kept_total > 0, np.maximum(total, 0.0) / np.maximum(kept_total, 1e-12), 0.0)
    found = coefficients.copy()
    found[:, place] = kept * scale
    return found
