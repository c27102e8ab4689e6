"""A bag of words that learns: TF-IDF over words and pairs of words of three texts, ridge or logistic regression.

How much each text weighs and how strongly is regularised is chosen by cross-validation that keeps groups whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aipsy_judge.agreement.library import stats_library

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.integer]
Texts = tuple[str, str, str]
"""The reply, the person's last message, what was said before."""
Weights = tuple[float, float, float]
Maker = Callable[[], Any]
Loss = Callable[[Floats, Floats], float]

FOLDS = 5
# Of qualities the reply's own words tell most, of crises the person's; which of these is best is tried each time.
WEIGHTS: tuple[Weights, ...] = (
    (1.0, 1.0, 1.0),
    (1.0, 0.5, 0.25),
    (1.0, 0.25, 0.1),
    (1.0, 0.1, 0.0),
    (0.25, 1.0, 0.5),
    (0.25, 0.5, 1.0),
)
USUAL = 1  # of WEIGHTS: those that the strength of regularisation is chosen with
# Decades about the usual 1, which rows of length 1 are made for; below the least alpha nothing changes any more.
ALPHAS = (0.01, 0.1, 0.3, 1.0, 3.0, 10.0)
CS = (0.1, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
FEWEST = 20  # items to learn from; below, and where all are alike, the mean stands for the model
WORDS = r"(?u)\b\w[\w']*\b|[!?]"
EMPTY = "__empty__"  # stands for a text that is empty, so that "nothing was said before" is a word too


@dataclass(frozen=True, slots=True, eq=False)
class Kernels:
    """What some texts have in common with those that were learnt from: (texts, rows) for each of the three."""

    blocks: tuple[Floats, ...]

    def weighed(self, weights: Weights) -> Floats:
        """Products of whole rows, each text's words as long as its weight."""
        found: Floats = sum((w * w * k for w, k in zip(weights, self.blocks, strict=True)), np.zeros(()))
        return found

    def of(self, places: Ints) -> Kernels:
        return Kernels(tuple(k[places] for k in self.blocks))


class Vocabulary:
    """TF-IDF of the rows' words, each of the three texts by itself."""

    def __init__(self, rows: Sequence[Texts]) -> None:
        tfidf = stats_library("sklearn.feature_extraction.text").TfidfVectorizer
        self._vectorisers = [
            tfidf(ngram_range=(1, 2), sublinear_tf=True, token_pattern=WORDS, preprocessor=_Block(n)).fit(rows)
            for n in range(3)
        ]
        self._rows = [v.transform(rows) for v in self._vectorisers]

    def kernels(self, texts: Sequence[Texts]) -> Kernels:
        """Of any texts with the rows."""
        both = zip(self._vectorisers, self._rows, strict=True)
        return Kernels(tuple((v.transform(texts) @ rows.T).toarray() for v, rows in both))


def axes(kernel: Floats) -> Floats:
    """(rows, R) that turn products with the rows into coordinates of the space that the rows span.

    Ridge and logistic regression with a quadratic penalty put no weight on any other direction (Kimeldorf and Wahba
    1971), so nothing of the tens of thousands of words is lost, and learning is several times as fast.
    """
    squares, found = np.linalg.eigh(kernel)
    kept = squares > 1e-9 * squares.max()
    scaled: Floats = found[:, kept] / np.sqrt(squares[kept])
    return scaled


@dataclass(frozen=True, slots=True, eq=False)
class _Fold:
    """Rows to learn from and to try on, and for each of WEIGHTS all rows' words by what was learnt."""

    learn: Ints
    attempt: Ints
    words: tuple[Floats, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Learnt:
    """One model. weights, strength: what was chosen; None where the mean stands for a model."""

    mean: float
    model: Any = None
    axes: Floats | None = None
    weights: Weights | None = None
    strength: float | None = None

    def predict(self, kernels: Kernels) -> Floats:
        """(texts,) values, or probabilities."""
        if self.axes is None or self.weights is None:
            return np.full(len(kernels.blocks[0]), self.mean)
        return _predict(self.model, kernels.weighed(self.weights) @ self.axes)


class Bag:
    """Learns many targets from the same texts; `groups` (texts,) are not torn apart."""

    def __init__(self, texts: Sequence[Texts], groups: Ints) -> None:
        self._vocabulary = Vocabulary(texts)
        self._kernels = self._vocabulary.kernels(texts)
        self._folds = _folds(texts, groups)

    def kernels(self, texts: Sequence[Texts]) -> Kernels:
        """Of texts that something is to be said of."""
        return self._vocabulary.kernels(texts)

    def values(self, target: Floats) -> Learnt:
        """A ridge regression of (texts,) values, NaN where unknown."""
        ridge = stats_library("sklearn.linear_model").Ridge
        return self._learn(target, {a: partial(ridge, alpha=a, solver="lsqr") for a in ALPHAS}, _squares)

    def probabilities(self, target: Floats) -> Learnt:
        """A logistic regression of (texts,) 0 and 1, NaN where unknown."""
        logistic = stats_library("sklearn.linear_model").LogisticRegression
        return self._learn(target, {c: partial(logistic, C=c, max_iter=5000) for c in CS}, _log_loss)

    def _learn(self, target: Floats, makers: Mapping[float, Maker], loss: Loss) -> Learnt:
        """The strength with the least loss over the folds, then the weights; learnt anew on all known rows."""
        known = ~np.isnan(target)
        mean = float(target[known].mean()) if known.any() else float("nan")
        if known.sum() < FEWEST or len(np.unique(target[known])) < 2:
            return Learnt(mean)

        def missed(strength: float, place: int) -> float:
            return sum(_fold_loss(fold, place, makers[strength], target, known, loss) for fold in self._folds)

        strength = min(makers, key=lambda s: missed(s, USUAL))
        place = min(range(len(WEIGHTS)), key=lambda p: missed(strength, p))
        kernel = self._kernels.weighed(WEIGHTS[place])
        turned = axes(kernel)
        model = makers[strength]().fit((kernel @ turned)[known], target[known])
        return Learnt(mean, model, turned, WEIGHTS[place], strength)


def _folds(texts: Sequence[Texts], groups: Ints) -> list[_Fold]:
    """The words of each fold are learnt without the rows that it tries."""
    splits = min(FOLDS, len(np.unique(groups)))
    if splits < 2:
        return []
    folds = []
    for learn, attempt in stats_library("sklearn.model_selection").GroupKFold(splits).split(texts, groups=groups):
        kernels = Vocabulary([texts[n] for n in learn]).kernels(texts)
        words = []
        for weights in WEIGHTS:
            turned = axes(kernels.of(learn).weighed(weights))
            words.append(kernels.weighed(weights) @ turned)
        folds.append(_Fold(learn, attempt, tuple(words)))
    return folds


def _fold_loss(fold: _Fold, place: int, make: Maker, target: Floats, known: Bools, loss: Loss) -> float:
    learn, attempt = fold.learn[known[fold.learn]], fold.attempt[known[fold.attempt]]
    if not len(attempt) or not len(learn):
        return 0.0
    if len(np.unique(target[learn])) < 2:
        return loss(np.full(len(attempt), target[learn][0]), target[attempt])
    words = fold.words[place]
    return loss(_predict(make().fit(words[learn], target[learn]), words[attempt]), target[attempt])


def _predict(model: Any, words: Floats) -> Floats:
    found: Floats = model.predict_proba(words)[:, 1] if hasattr(model, "predict_proba") else model.predict(words)
    return found


def _squares(said: Floats, target: Floats) -> float:
    return float(((said - target) ** 2).sum())


def _log_loss(said: Floats, target: Floats) -> float:
    p = np.clip(said, 1e-6, 1 - 1e-6)
    return float(-(target * np.log(p) + (1 - target) * np.log(1 - p)).sum())


@dataclass(frozen=True, slots=True)
class _Block:
    """Picks one of the three texts of an item."""

    number: int

    def __call__(self, texts: Texts) -> str:
        return texts[self.number].lower() or EMPTY
