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
from dataclasses import dataclass

from ..answer import AnswerForm, Option, Slot
from ..backends.protocol import Logits
from .choice import Choice, SlotReading, Vocabulary
from .tree import common_prefix

Tokenize = Callable[[str], list[int]]


@dataclass(frozen=True, slots=True)
class Request:
    """Tokens to feed after what is fed already, logits wanted after the last of them, and again after each probe.

    Probes are short continuations that are looked at and dropped: places further inside the options where the
    distribution branches again.
    """

    feed: tuple[int, ...]
    probes: tuple[tuple[int, ...], ...] = ()


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
        self._choice: Choice | None = None
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

    def answer(self, rationale: str = "", labels: Mapping[str, str] | None = None) -> str:
        """The whole answer as text, once `done`; with other `labels` than those that were read where such are given."""
        return self._form.render(self.labels if labels is None else labels, rationale)

    @property
    def room(self) -> int:
        """Most tokens that the answer can take beyond the first request, probes included."""
        fixed = sum(len(self._tokenize(p)) for p in self._form.parts if isinstance(p, str))
        slots = [[len(self._tokenize(o.text)) for o in s.options] for s in self._form.slots]
        # a boundary between two texts can cost a token; probes hold part of an option once more
        return fixed + sum(max(s) + 2 for s in slots) + max((sum(s) for s in slots if max(s) > 1), default=0)

    def request(self) -> Request:
        """What to evaluate next; once `done`, what is left of the answer, which needs no reading."""
        if self._choice is None:
            return Request(self.tail())
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
        self._decided(choice, choice.reading())

    def _decided(self, choice: Choice, reading: SlotReading) -> None:
        self._path += choice.step
        self.readings[choice.slot.name] = reading
        self._text += choice.option_text
        self._part += 1
        self._choice = None
        self._advance()

    def fed_whole(self) -> None:
        """An answer without any choice was evaluated with its prompt: nothing is left to feed."""
        assert self._choice is None
        self._fed = len(self.tokens)

    def tail(self) -> tuple[int, ...]:
        """Once `done`: tokens of the decided answer that have not been fed."""
        return self.tokens[self._fed :]

    # -- writing an answer that is known, as training does, in the tokens in which it would be read -------------------

    @property
    def tokens(self) -> tuple[int, ...]:
        """Tokens up to where the open slot begins; once `done`, of the whole answer up to the rationale."""
        return tuple(self._path if self._choice is not None else self._spell(self._text))

    @property
    def open_slot(self) -> Choice | None:
        """The slot that is to be read next; what its options' tokens are, `Choice.way` says."""
        return self._choice

    def choose(self, label: str) -> None:
        """Go on as if `label` had been read in its usual tokens. ValueError where it is no legal option."""
        choice = self._choice
        if choice is None or label not in choice.labels:
            raise ValueError(
                f"{label!r} cannot be chosen here ({', '.join(choice.labels) if choice else 'all is read'})"
            )
        choice.settle(label)
        self._decided(choice, SlotReading(label))

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
        self._choice = Choice(
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
