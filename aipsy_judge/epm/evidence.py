"""Evidence: for every level other than 0 the sentence that shows it best, chosen among those there are.

The judge does not write a quote, it picks a sentence's number, at a slot as at any score; the sentence is then copied
from the text. So a quote cannot be anything else than what stands there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ..errors import BackendError, CapacityError
from ..prompt import ChatMessage, Piece
from ..rubric import Metric, Rubric, Scale
from ..untrusted import clean
from ..verdict import Score, Scored
from .forms import Quote
from .sentences import sentences

# A scale has at most 101 values, and hardly any judge tells apart more.
MOST_SENTENCES = 100

_SYSTEM = (
    "Somebody rated a text. Below stand the ratings, each with its meaning, and then the sentences of the text, "
    "numbered. For each rating choose the sentence that shows best why it was given.\n\nRATINGS:\n{ratings}\n\n"
    "Answer with one JSON object and nothing else, with these keys in this order: {keys}. Each is the number of a "
    "sentence."
)


@runtime_checkable
class AsksOtherwise(Protocol):
    """A judge that can also be asked another rubric's metrics in other words."""

    def ask(self, messages: Sequence[ChatMessage], rubric: Rubric) -> Mapping[str, Score]: ...


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence and the index of its message in the conversation; None: it stands in the persona card."""

    text: str
    message: int | None = None


def candidates(texts: Mapping[int | None, str]) -> list[Sentence]:
    """What evidence may be chosen from: the sentences of texts by their message, MOST_SENTENCES at most."""
    found = [Sentence(s, message) for message, text in texts.items() for s in sentences(text)]
    if len(found) <= MOST_SENTENCES:
        return found
    most = max(1, MOST_SENTENCES // len(texts))
    return [Sentence(s, m) for m, text in texts.items() for s in sentences(text, most)][:MOST_SENTENCES]


def find_quotes(
    judge: AsksOtherwise, levels: Mapping[str, int], metrics: Mapping[str, Metric], found: Sequence[Sentence]
) -> dict[str, Quote | None]:
    """A quote for every id whose level is not 0; None where the judge could not be asked or gave no clear answer.

    `levels` and `metrics` are by id (C.1, C.prog). With a single sentence there is nothing to choose.
    """
    shown = {i: level for i, level in levels.items() if level != 0}
    if not shown or not found:
        return dict.fromkeys(shown)
    if len(found) == 1:
        return dict.fromkeys(shown, Quote(found[0].text, found[0].message, 1.0))
    rated = {_key(metrics[i]): (metrics[i], level) for i, level in shown.items()}
    try:
        chosen = judge.ask(_messages(rated, found), quote_rubric(list(rated), len(found)))
    except (CapacityError, BackendError):
        return dict.fromkeys(shown)
    return {i: _quote(chosen[_key(metrics[i])], found) for i in shown}


def quote_rubric(keys: Sequence[str], count: int) -> Rubric:
    """The choice as a rubric: a metric a key, whose scale is the sentences' numbers 1..count (2 to 101)."""
    scale = Scale(minimum=1, maximum=count)
    metrics = [
        Metric(name=k, title=k, question="Which sentence?", scale=scale, applies="always", anchors={1: "the first"})
        for k in keys
    ]
    return Rubric(name="evidence", version="1.0", unit="turn", introduction="Choose sentences.", metrics=metrics)


def _key(metric: Metric) -> str:
    # Not the metric's own name: its temperature was fitted for levels.
    return f"{metric.name}_quote"


def _messages(ratings: Mapping[str, tuple[Metric, int]], found: Sequence[Sentence]) -> list[ChatMessage]:
    lines = [f"{m.name} = {level}: {m.question} {m.anchor_for(level) or ''}".rstrip() for m, level in ratings.values()]
    pieces = [Piece("SENTENCES:\n", True)]
    for number, sentence in enumerate(found, start=1):
        pieces += [Piece(f"{number}: ", True), Piece(clean(sentence.text), False), Piece("\n", True)]
    pieces.append(Piece("\nGive the number of a sentence for every rating.", True))
    system = _SYSTEM.format(ratings="\n".join(lines), keys=", ".join(ratings))
    return [ChatMessage("system", (Piece(system, True),)), ChatMessage("user", tuple(pieces))]


def _quote(score: Score, found: Sequence[Sentence]) -> Quote | None:
    if not isinstance(score, Scored):
        return None
    sentence = found[int(score.value) - 1]
    return Quote(sentence.text, sentence.message, score.reading.confidence if score.reading else None)
