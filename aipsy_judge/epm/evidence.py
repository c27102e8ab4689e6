"""Evidence: for every level other than 0 the sentence that shows it best, chosen among those there are.

The judge does not write a quote, it picks a sentence's number at a slot; the sentence is then copied from the text.
So a quote cannot be anything else than what stands there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ..answer import AnswerForm, Option, Slot
from ..engine.slots import SlotReading
from ..errors import CapacityError
from ..prompt import ChatMessage, Piece
from ..rubric import Metric
from ..untrusted import clean
from .forms import Quote
from .sentences import sentences

_SYSTEM = (
    "Somebody rated a text. Below stand the ratings, each with its meaning, and then the sentences of the text, "
    "numbered. For each rating choose the sentence that shows best why it was given.\n\nRATINGS:\n{ratings}\n\n"
    "Answer with one JSON object and nothing else: for every rating the number of its sentence."
)


@runtime_checkable
class AsksSlots(Protocol):
    """A judge that answers questions of one's own, slot by slot."""

    def ask(self, messages: Sequence[ChatMessage], form: AnswerForm) -> Mapping[str, SlotReading]: ...


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence and the index of its message in the conversation; None: it stands in the persona card."""

    text: str
    message: int | None = None


def candidates(text: str, message: int | None = None) -> list[Sentence]:
    """The sentences of a text that evidence may be chosen from."""
    return [Sentence(s, message) for s in sentences(text)]


def find_quotes(
    judge: AsksSlots,
    levels: Mapping[str, int],
    metrics: Mapping[str, Metric],
    found: Sequence[Sentence],
    *,
    legal_mass_floor: float = 0.0,
) -> dict[str, Quote | None]:
    """A quote for every id whose level is not 0; None where the judge could not be asked or did not answer to it.

    `levels` and `metrics` are by id (C.1, C.prog). Empty where every level is 0 or there is no sentence.
    """
    shown = {i: level for i, level in levels.items() if level != 0}
    if not shown or not found:
        return {}
    messages = _messages({metrics[i].name: (metrics[i], level) for i, level in shown.items()}, found)
    try:
        readings = judge.ask(messages, quote_form([metrics[i].name for i in shown], len(found)))
    except CapacityError:
        return dict.fromkeys(shown)
    return {i: _quote(readings.get(_slot_name(metrics[i].name)), found, legal_mass_floor) for i in shown}


def quote_form(names: Sequence[str], count: int) -> AnswerForm:
    """{"NAME":number,...}: a slot a name, its options the numbers 1..count."""
    options = tuple(Option(str(n), str(n)) for n in range(1, count + 1))
    parts: list[str | Slot] = []
    for name in names:
        parts += [("{" if not parts else ",") + f'"{name}":', Slot(_slot_name(name), options)]
    return AnswerForm((*parts, "}"))


def _slot_name(metric: str) -> str:
    # Not the metric's own name: its temperature was fitted for levels.
    return f"{metric}_quote"


def _messages(ratings: Mapping[str, tuple[Metric, int]], found: Sequence[Sentence]) -> list[ChatMessage]:
    lines = [f"{name} = {level}: {metric.question} {metric.anchor_for(level) or ''}".rstrip()
             for name, (metric, level) in ratings.items()]  # fmt: skip
    pieces = [Piece("SENTENCES:\n", True)]
    for number, sentence in enumerate(found, start=1):
        pieces += [Piece(f"{number}: ", True), Piece(clean(sentence.text), False), Piece("\n", True)]
    pieces.append(Piece("\nGive the number of a sentence for every rating.", True))
    system = _SYSTEM.format(ratings="\n".join(lines))
    return [ChatMessage("system", (Piece(system, True),)), ChatMessage("user", tuple(pieces))]


def _quote(reading: SlotReading | None, found: Sequence[Sentence], floor: float) -> Quote | None:
    if reading is None or (reading.legal_mass is not None and reading.legal_mass < floor):
        return None
    sentence = found[int(reading.label) - 1]
    confidence = 1.0 if reading.forced else reading.distribution.get(reading.label)
    return Quote(sentence.text, sentence.message, confidence)
