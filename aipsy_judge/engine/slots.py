"""Reading an answer slot by slot: the skeleton is fed, the choice is read from the model's distribution.

Where a slot begins is a matter of tokens, not of text. Every option is tokenised inside the whole answer, with what
follows it; the tokens all options have in common are fed, and the choice runs from there. At each step every token
whose bytes continue a legal option counts as legal, however odd a spelling of it that is: so the choice is the one
that grammar-constrained greedy decoding makes at this place.

`AnswerReader` is one answer in progress. It knows no backend: `request()` says which tokens it wants evaluated,
`take()` gives it the logits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..answer import AnswerForm, Option, Slot
from ..backends.protocol import Logits
from .tree import common_prefix

Tokenize = Callable[[str], list[int]]


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


@dataclass(frozen=True, slots=True)
class Request:
    """Tokens to feed after what is fed already, logits wanted after the last of them, and again after each probe.

    Probes are short continuations that are looked at and dropped: places further inside the options where the
    distribution branches again.
    """

    feed: tuple[int, ...]
    probes: tuple[tuple[int, ...], ...] = ()


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


class AnswerReader:
    """One answer in progress: feeds the skeleton, reads the slots in order, keeps the readings."""

    def __init__(
        self,
        form: AnswerForm,
        tokenize: Tokenize,
        vocabulary: Vocabulary,
        temperatures: Mapping[str, float] | None = None,
    ) -> None:
        self._form = form
        self._tokenize = tokenize
        self._vocabulary = vocabulary
        self._temperatures = temperatures or {}
        self._part = 0  # the part of the form that comes next
        self._text = ""  # the answer as far as it is decided
        self._path: list[int] = []  # its tokens: those fed, then those decided but not yet fed
        self._fed = 0
        self._anchor: tuple[list[int], int] = ([], 0)  # see _spell
        self.readings: dict[str, SlotReading] = {}
        self._choice: _Choice | None = None
        self._advance()

    @property
    def done(self) -> bool:
        """Nothing is left to read; `tail` may still be fed (the rationale goes on from there)."""
        return self._choice is None

    @property
    def labels(self) -> dict[str, str]:
        return {name: reading.label for name, reading in self.readings.items()}

    @property
    def text(self) -> str:
        """The answer as far as it is decided; once `done`, all of it up to the rationale."""
        return self._text

    @property
    def takes_prose(self) -> bool:
        """A rationale may follow."""
        return self._form.rationale

    def answer(self, rationale: str = "") -> str:
        """The whole answer as text, once `done`."""
        return self._form.render(self.labels, rationale)

    @property
    def room(self) -> int:
        """Most tokens that the answer can take beyond the first request, probes included."""
        fixed = sum(len(self._tokenize(p)) for p in self._form.parts if isinstance(p, str))
        slots = [[len(self._tokenize(o.text)) for o in s.options] for s in self._form.slots]
        # a boundary between two texts can cost a token; probes hold part of an option once more
        return fixed + sum(max(s) + 2 for s in slots) + max((sum(s) for s in slots if max(s) > 1), default=0)

    def request(self) -> Request:
        """What to evaluate next. Only while not `done`."""
        assert self._choice is not None
        return Request(tuple(self._path[self._fed :]), self._choice.probes())

    def take(self, logits: Logits, probed: Sequence[Logits] = ()) -> None:
        """Logits after the request's feed and after each of its probes."""
        choice = self._choice
        assert choice is not None
        self._fed = len(self._path)
        choice.look(logits, probed)
        if choice.label is None:
            self._path += choice.step
            return
        self._path += choice.step
        self.readings[choice.slot.name] = choice.reading()
        self._text += choice.option_text
        self._part += 1
        self._choice = None
        self._advance()

    def tail(self) -> tuple[int, ...]:
        """Once `done`: tokens of the decided answer that have not been fed."""
        return tuple(self._spell(self._text)[self._fed :])

    def _advance(self) -> None:
        """Run over fixed text and forced slots up to the next slot with a choice."""
        while self._part < len(self._form.parts):
            part = self._form.parts[self._part]
            if isinstance(part, str):
                self._text += part
            else:
                options = part.legal(self.labels)
                if len(options) > 1:
                    self._open(part, options)
                    return
                self.readings[part.name] = SlotReading(options[0].label, forced=True)
                self._text += options[0].text
            self._part += 1

    def _open(self, slot: Slot, options: tuple[Option, ...]) -> None:
        following = self._form.parts[self._part + 1]
        assert isinstance(following, str)
        spelled = {o.label: self._spell(self._text + o.text + following) for o in options}
        shared = common_prefix(list(spelled.values()))
        self._path = next(iter(spelled.values()))[:shared]
        rest = {o.label: _after(self._bytes(self._path), self._text + o.text + following) for o in options}
        self._choice = _Choice(
            slot=slot,
            options={o.label: o.text for o in options},
            spelled={label: tokens[shared:] for label, tokens in spelled.items()},
            rest=rest,
            vocabulary=self._vocabulary,
            temperature=self._temperatures.get(slot.name, 1.0),
        )

    def _spell(self, text: str) -> list[int]:
        """Tokens of `text` that begin with all tokens decided so far.

        Ordinarily that is the tokenisation of the text. Where a choice took an unusual spelling, the text after it
        is tokenised from there on (the anchor: tokens, and how many bytes they stand for).
        """
        tokens, offset = self._anchor
        spelled = tokens + self._tokenize(text.encode()[offset:].decode())
        if spelled[: len(self._path)] != self._path:
            self._anchor = (list(self._path), len(self._bytes(self._path)))
            return self._path + self._tokenize(text.encode()[self._anchor[1] :].decode())
        return spelled

    def _bytes(self, tokens: Sequence[int]) -> bytes:
        return b"".join(self._vocabulary.pieces[t] for t in tokens)


def _after(done: bytes, text: str) -> bytes:
    whole = text.encode()
    assert whole.startswith(done), "the tokenizer does not keep the text's bytes"
    return whole[len(done) :]


class _Choice:
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
        piece = self._vocabulary.pieces[token]
        self._rest = {k: r[len(piece) :] for k, r in self._rest.items() if r.startswith(piece)}
        usual = {k: s[1:] for k, s in self._spelled.items() if k in self._rest and s and s[0] == token}
        self._spelled = usual if len(usual) == len(self._rest) else {}
        return token

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
