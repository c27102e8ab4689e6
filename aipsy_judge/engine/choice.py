"""One slot being read: the choice among its legal options, and how probability lay on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..answer import Slot
from ..backends.protocol import Logits
from .tree import common_prefix


@dataclass(frozen=True, slots=True)
class SlotReading:
    """What was read at one slot.

    label         the greedy choice; forced is True where only one option was legal, and then nothing was read
    distribution  probability per legal label, sums to 1 (empty if forced), at the slot's temperature
    legal_mass    share of the whole vocabulary's probability on legal tokens, the least along the greedy path
    near_tie      the most probable whole option is another than the greedy choice
    """

    label: str
    forced: bool = False
    distribution: Mapping[str, float] = field(default_factory=dict)
    legal_mass: float | None = None
    near_tie: bool = False


class Vocabulary:
    """Token bytes, and which tokens can begin a given text."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self.pieces = pieces
        self._ids: dict[bytes, list[int]] = {}
        for token, piece in enumerate(pieces):
            if piece:
                self._ids.setdefault(piece, []).append(token)
        self._longest = max(map(len, self._ids), default=0)

    def beginnings(self, text: bytes) -> list[int]:
        """Ids of all tokens whose bytes are a beginning of `text`."""
        lengths = range(1, min(len(text), self._longest) + 1)
        return [token for n in lengths for token in self._ids.get(text[:n], ())]


class Choice:
    """One slot being read: from the common tokens of its options down to one option."""

    def __init__(
        self,
        slot: Slot,
        options: Mapping[str, str],
        spelled: Mapping[str, list[int]],
        rest: Mapping[str, bytes],
        vocabulary: Vocabulary,
        temperature: float,
    ) -> None:
        self.slot = slot
        self.label: str | None = None
        self.step: list[int] = []  # tokens decided by the last look
        self._options = options
        self._spelled = dict(spelled)  # usual tokens still ahead; dropped once an unusual spelling was taken
        self._rest = dict(rest)  # bytes still ahead, per option that is still possible
        self._vocabulary = vocabulary
        self._temperature = temperature
        self._nodes = _inner_nodes(spelled)
        self._distribution: dict[str, float] = {}
        self._legal_mass = 1.0
        self._first = True

    @property
    def option_text(self) -> str:
        assert self.label is not None
        return self._options[self.label]

    @property
    def labels(self) -> tuple[str, ...]:
        """The legal options."""
        return tuple(self._options)

    def probes(self) -> tuple[tuple[int, ...], ...]:
        return tuple(self._nodes) if self._first else ()

    def look(self, logits: Logits, probed: Sequence[Logits]) -> None:
        at = {(): logits, **dict(zip(self._nodes, probed, strict=True))} if self._first else {}
        if self._first:
            self._distribution = self._whole_options(at)
            self._first = False
        walked: tuple[int, ...] = ()
        self.step = []
        here: Logits | None = logits
        while here is not None and self.label is None:
            token = self._narrow(here)
            self.step.append(token)
            if len(self._rest) == 1:
                self.label = next(iter(self._rest))
                return
            walked = (*walked, token, *self._forced())
            here = at.get(walked)

    def _narrow(self, logits: Logits) -> int:
        """Take the most probable legal token; options that do not begin with it fall away."""
        legal = sorted({t for rest in self._rest.values() for t in self._vocabulary.beginnings(rest)})
        values = logits[legal].astype(np.float64)
        token = legal[int(values.argmax())]
        self._legal_mass = min(self._legal_mass, float(np.exp(_logsumexp(values) - _logsumexp(logits))))
        self._rest, self._spelled = _narrowed(self._rest, self._spelled, token, self._vocabulary.pieces[token])
        return token

    def way(self, label: str) -> list[tuple[int, bool]]:
        """The usual tokens of an option from here to where it is decided, each with whether it is chosen there
        (True) or taken unread, since all options that are left go on with it. Only before the first look."""
        rest, spelled, steps = self._rest, self._spelled, list[tuple[int, bool]]()
        for token in self._spelled[label]:
            unread = len(spelled) == len(rest) and all(s[0] == token for s in spelled.values())
            steps.append((token, not unread))
            rest, spelled = _narrowed(rest, spelled, token, self._vocabulary.pieces[token])
            if len(rest) == 1:
                return steps
        raise AssertionError(f"{self.slot.name}: {label} is spelled like another option")

    def settle(self, label: str) -> None:
        """Take an option without looking."""
        self.step = [token for token, _ in self.way(label)]
        self.label = label

    def _forced(self) -> tuple[int, ...]:
        """Tokens that all remaining options share next in their usual spelling; they are taken unread."""
        if len(self._spelled) != len(self._rest):
            return ()
        shared = common_prefix(list(self._spelled.values()))
        tokens = next(iter(self._spelled.values()))[:shared]
        length = sum(len(self._vocabulary.pieces[t]) for t in tokens)
        self._rest = {k: r[length:] for k, r in self._rest.items()}
        self._spelled = {k: s[shared:] for k, s in self._spelled.items()}
        self.step += tokens
        return tuple(tokens)

    def _whole_options(self, at: Mapping[tuple[int, ...], Logits]) -> dict[str, float]:
        """Probability of each option among the legal ones: down its usual tokens, branching by branching.

        At every branching the legal tokens share the probability; an unusual token that only one option can mean
        counts for that option.
        """
        masses = dict.fromkeys(self._options, 1.0)
        for path, logits in at.items():
            inside = {k: s[len(path) :] for k, s in self._spelled.items() if tuple(s[: len(path)]) == path}
            skipped = sum(len(self._vocabulary.pieces[t]) for t in path)
            rest = {k: self._rest[k][skipped:] for k in inside}
            for label, share in _shares(inside, rest, logits, self._temperature, self._vocabulary).items():
                masses[label] *= share
        total = sum(masses.values())
        return {k: m / total for k, m in masses.items()} if total > 0 else {}

    def reading(self) -> SlotReading:
        assert self.label is not None
        best = max(self._distribution, key=self._distribution.__getitem__, default=self.label)
        return SlotReading(
            label=self.label,
            distribution=self._distribution,
            legal_mass=self._legal_mass,
            near_tie=best != self.label,
        )


def _narrowed(
    rest: dict[str, bytes], spelled: dict[str, list[int]], token: int, piece: bytes
) -> tuple[dict[str, bytes], dict[str, list[int]]]:
    """What is still ahead, in bytes and in usual tokens, of the options that `token` leaves; no usual tokens where
    one of them would be spelled otherwise."""
    left = {k: r[len(piece) :] for k, r in rest.items() if r.startswith(piece)}
    usual = {k: s[1:] for k, s in spelled.items() if k in left and s and s[0] == token}
    return left, usual if len(usual) == len(left) else {}


def _shares(
    inside: Mapping[str, list[int]],
    rest: Mapping[str, bytes],
    logits: Logits,
    temperature: float,
    vocabulary: Vocabulary,
) -> dict[str, float]:
    """At one branching, the share of probability that goes towards each option.

    Options behind the same next token get that token's share each (they are told apart further down).
    """
    meanings: dict[int, set[str]] = {}
    for label, text in rest.items():
        for token in vocabulary.beginnings(text):
            meanings.setdefault(token, set()).add(label)
    usual = {tokens[0] for tokens in inside.values()}
    counted = [t for t, labels in meanings.items() if t in usual or len(labels) == 1]
    values = logits[counted].astype(np.float64) / temperature
    weights = np.exp(values - values.max())
    weights /= weights.sum()
    mass = dict(zip(counted, weights.tolist(), strict=True))
    shares = {label: mass[tokens[0]] for label, tokens in inside.items()}
    for token, labels in meanings.items():
        if token not in usual and len(labels) == 1:
            shares[next(iter(labels))] += mass[token]
    return shares


def _inner_nodes(spelled: Mapping[str, Sequence[int]]) -> list[tuple[int, ...]]:
    """Paths, beyond the first branching, where the options' usual tokens branch again; short ones first."""
    nodes: list[tuple[int, ...]] = []
    paths: list[tuple[tuple[int, ...], list[Sequence[int]]]] = [((), list(spelled.values()))]
    while paths:
        path, group = paths.pop()
        by_token: dict[int, list[Sequence[int]]] = {}
        for tokens in group:
            by_token.setdefault(tokens[len(path)], []).append(tokens)
        for members in by_token.values():
            if len(members) > 1:
                shared = tuple(members[0][: common_prefix(members)])
                nodes.append(shared)
                paths.append((shared, members))
    return sorted(nodes, key=lambda p: (len(p), p))


def _logsumexp(values: NDArray[Any]) -> float:
    top = values.max()
    return float(top) + float(np.log(np.exp(values - top).sum(dtype=np.float64)))
