"""A bag of words that learns: TF-IDF over words and pairs of words of three texts, ridge or logistic regression.

How much each text weighs and how strongly is regularised is chosen by cross-validation that keeps groups whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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

FOLDS = 5
# What the reply is made of tells most; how much the rest adds is not the same for every metric.
WEIGHTS = ((1.0, 1.0, 1.0), (1.0, 0.5, 0.25), (1.0, 0.25, 0.1))
# Decades about the usual 1, which rows of length 1 are made for; below the least alpha nothing changes any more.
ALPHAS = (0.01, 0.1, 0.3, 1.0, 3.0, 10.0)
CS = (0.1, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
FEWEST = 20  # items to learn from; below, and where all are alike, the mean stands for the model
WORDS = r"(?u)\b\w[\w']*\b|[!?]"
EMPTY = "__empty__"  # stands for a text that is empty, so that "nothing was said before" is a word too


class Words:
    """TF-IDF of some texts, in coordinates of the space that their rows span: (texts,) -> (texts, at most rows).

    Ridge and logistic regression with a quadratic penalty put no weight on any other direction (Kimeldorf and Wahba
    1971), so nothing of the tens of thousands of words is lost, and learning is several times as fast.
    """

    def __init__(self, texts: Sequence[Texts], weights: tuple[float, float, float]) -> None:
        self._vectoriser = _vectoriser(weights).fit(texts)
        self._rows = self._vectoriser.transform(texts).tocsr()
        squares, axes = np.linalg.eigh((self._rows @ self._rows.T).toarray())
        kept = squares > 1e-9 * squares.max()
        self._axes: Floats = axes[:, kept] / np.sqrt(squares[kept])

    def of(self, texts: Sequence[Texts]) -> Floats:
        found: Floats = (self._vectoriser.transform(texts) @ self._rows.T).toarray() @ self._axes
        return found


@dataclass(frozen=True, slots=True, eq=False)
class _Fold:
    """Rows to learn from and to try on, and all rows' words by what was learnt."""

    learn: Ints
    attempt: Ints
    words: Floats


@dataclass(frozen=True, slots=True, eq=False)
class _Space:
    """One weighting of the three texts: words by all rows, those rows, and the folds."""

    weights: tuple[float, float, float]
    words: Words
    rows: Floats
    folds: tuple[_Fold, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Learnt:
    """One model. weights, strength: what was chosen; None where the mean stands for a model."""

    mean: float
    words: Words | None = None
    model: Any = None
    weights: tuple[float, float, float] | None = None
    strength: float | None = None

    def predict(self, texts: Sequence[Texts]) -> Floats:
        """(texts,) values, or probabilities."""
        if self.words is None:
            return np.full(len(texts), self.mean)
        return _predict(self.model, self.words.of(texts))


class Bag:
    """Learns many targets from the same texts; `groups` (texts,) are not torn apart."""

    def __init__(self, texts: Sequence[Texts], groups: Ints) -> None:
        self._spaces = [_space(texts, groups, weights) for weights in WEIGHTS]

    def values(self, target: Floats) -> Learnt:
        """A ridge regression of (texts,) values, NaN where unknown."""
        ridge = stats_library("sklearn.linear_model").Ridge
        return self._learn(target, {a: partial(ridge, alpha=a, solver="lsqr") for a in ALPHAS}, _squares)

    def probabilities(self, target: Floats) -> Learnt:
        """A logistic regression of (texts,) 0 and 1, NaN where unknown."""
        logistic = stats_library("sklearn.linear_model").LogisticRegression
        return self._learn(target, {c: partial(logistic, C=c, max_iter=5000) for c in CS}, _log_loss)

    def _learn(
        self, target: Floats, makers: dict[float, Callable[[], Any]], loss: Callable[[Floats, Floats], float]
    ) -> Learnt:
        """The weights and the strength with the least loss over the folds, learnt anew on all known rows."""
        known = ~np.isnan(target)
        mean = float(target[known].mean()) if known.any() else float("nan")
        if known.sum() < FEWEST or len(np.unique(target[known])) < 2:
            return Learnt(mean)
        losses = {
            (n, strength): sum(_fold_loss(fold, make, target, known, loss) for fold in space.folds)
            for n, space in enumerate(self._spaces)
            for strength, make in makers.items()
        }
        place, strength = min(losses, key=lambda k: losses[k])
        space = self._spaces[place]
        model = makers[strength]().fit(space.rows[known], target[known])
        return Learnt(mean, space.words, model, space.weights, strength)


def _space(texts: Sequence[Texts], groups: Ints, weights: tuple[float, float, float]) -> _Space:
    """The words of each fold are learnt without the rows that it tries."""
    words = Words(texts, weights)
    folds = []
    splits = min(FOLDS, len(np.unique(groups)))
    if splits > 1:
        for learn, attempt in stats_library("sklearn.model_selection").GroupKFold(splits).split(texts, groups=groups):
            folds.append(_Fold(learn, attempt, Words([texts[n] for n in learn], weights).of(texts)))
    return _Space(weights, words, words.of(texts), tuple(folds))


def _fold_loss(
    fold: _Fold, make: Callable[[], Any], target: Floats, known: Bools, loss: Callable[[Floats, Floats], float]
) -> float:
    learn, attempt = fold.learn[known[fold.learn]], fold.attempt[known[fold.attempt]]
    if not len(attempt) or not len(learn):
        return 0.0
    if len(np.unique(target[learn])) < 2:
        return loss(np.full(len(attempt), target[learn][0]), target[attempt])
    return loss(_predict(make().fit(fold.words[learn], target[learn]), fold.words[attempt]), target[attempt])


def _predict(model: Any, words: Floats) -> Floats:
    found: Floats = model.predict_proba(words)[:, 1] if hasattr(model, "predict_proba") else model.predict(words)
    return found


def _squares(said: Floats, target: Floats) -> float:
    return float(((said - target) ** 2).sum())


def _log_loss(said: Floats, target: Floats) -> float:
    p = np.clip(said, 1e-6, 1 - 1e-6)
    return float(-(target * np.log(p) + (1 - target) * np.log(1 - p)).sum())


def _vectoriser(weights: Sequence[float]) -> Any:
    """Each text's words by themselves: a row is as long as the weights say, however long the texts are."""
    tfidf = stats_library("sklearn.feature_extraction.text").TfidfVectorizer
    made = [
        (str(n), tfidf(ngram_range=(1, 2), sublinear_tf=True, token_pattern=WORDS, preprocessor=_Block(n)))
        for n in range(len(weights))
    ]
    union = stats_library("sklearn.pipeline").FeatureUnion
    return union(made, transformer_weights={str(n): weight for n, weight in enumerate(weights)})


@dataclass(frozen=True, slots=True)
class _Block:
    """Picks one of the three texts of an item."""

    number: int

    def __call__(self, texts: Texts) -> str:
        return texts[self.number].lower() or EMPTY
