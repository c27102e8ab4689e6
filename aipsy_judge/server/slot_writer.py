"""Fills the free places of a schema's answer, in the judge's thread: slots by the engine's reading, texts by its
bounded grammar. The answer is whole and legal by construction; what the judge put too little probability on is not
answered at all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..answer import AnswerForm, Slot
from ..engine.choice import SlotReading
from ..engine.encode import encode
from ..engine.prose import Prose
from ..engine.run import Question
from ..errors import CapacityError, WeightsError
from ..local_judge import LocalJudge
from ..prompt import ChatMessage, Piece
from .refusal import Refusal
from .schema_slots import Part, Text
from .working import Tokens

# A client that wants more words than this waits minutes on a processor; the answer says where one was cut.
TEXT_TOKENS = 96


@dataclass(slots=True)
class Written:
    """The answer, and how each slot was read."""

    text: str = ""
    readings: dict[str, dict[str, Any]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    tokens: Tokens = field(default_factory=Tokens)


def write_answer(judge: LocalJudge, messages: Sequence[tuple[str, str]], parts: Sequence[Part]) -> Written:
    """Raises Refusal(422) for a prompt that does not fit or a place that the judge does not answer."""
    backend = judge.backend
    chat = [ChatMessage(role, (Piece(text, False),)) for role, text in messages]
    try:
        prompt = encode(backend, chat)
    except WeightsError as error:  # a template refuses roles in an order that it does not know
        raise Refusal(422, f"The judge's chat template does not take these messages: {error.message}.") from error
    before, written = backend.work.tokens, Written()
    try:
        _fill(judge, prompt, parts, written)
    except CapacityError as error:
        raise Refusal(422, f"The prompt does not fit: {error.message}.") from error
    _refuse_off_contract(written, judge.weights.legal_mass_floor)
    answer = len(backend.tokenize(written.text, special=False))
    written.tokens = Tokens(len(prompt), answer, backend.work.tokens - before)
    return written


def _fill(judge: LocalJudge, prompt: Sequence[int], parts: Sequence[Part], written: Written) -> None:
    """One question up to each text and behind the last: what was written becomes part of the next one's prompt, and
    is not evaluated again where the backend allows it."""
    for number, (fixed, text) in enumerate(_stretches(parts)):
        done = judge.tokenize_answer(written.text) if number else []
        form = AnswerForm(tuple(fixed), rationale=text is not None)
        if not form.slots and text is None:
            written.text += "".join(p for p in fixed if isinstance(p, str))
            continue
        _ask(judge, [*prompt, *done], form, text, written)


def _stretches(parts: Sequence[Part]) -> list[tuple[list[str | Slot], Text | None]]:
    """Cut behind each text."""
    stretches: list[tuple[list[str | Slot], Text | None]] = []
    current: list[str | Slot] = []
    for part in parts:
        if isinstance(part, Text):
            stretches.append((current, part))
            current = []
        else:
            current.append(part)
    return [*stretches, (current, None)] if current else stretches


def _ask(judge: LocalJudge, prompt: list[int], form: AnswerForm, text: Text | None, written: Written) -> None:
    reader = judge.reader(form)
    room = judge.context_tokens - reader.room - (TEXT_TOKENS if text else 0)
    if len(prompt) > room:
        raise CapacityError(f"{len(prompt)} tokens, the judge takes {room} beside its answer")
    prose: dict[int, Prose] = {}
    judge.engine.answer(
        [Question(prompt, reader)],
        prose_tokens=min(TEXT_TOKENS, text.most) if text else 0,
        least_prose=text.least if text else 0,
        wants_prose=lambda _: text is not None,
        on_group=lambda _, said: prose.update(said),
    )
    for name, reading in reader.readings.items():
        written.readings[name] = _reading(reading)
    written.text += reader.text
    if text is not None:
        _take_text(prose[0], text, written)


def _take_text(prose: Prose, text: Text, written: Written) -> None:
    said = prose.plain.strip() or prose.plain
    if len(said) < text.least:
        raise Refusal(422, f"The judge gave no text for {text.name}.")
    if prose.cut or len(said) > text.most:
        written.notes.append(f"cut:{text.name}")
    written.text += json.dumps(said[: text.most], ensure_ascii=False)[1:-1]


def _reading(reading: SlotReading) -> dict[str, Any]:
    return {
        "label": reading.label,
        "confidence": reading.distribution.get(reading.label),
        "legal_mass": reading.legal_mass,
        "near_tie": reading.near_tie,
    }


def _refuse_off_contract(written: Written, floor: float) -> None:
    lost: Mapping[str, float] = {
        name: r["legal_mass"]
        for name, r in written.readings.items()
        if r["legal_mass"] is not None and r["legal_mass"] < floor
    }
    if lost:
        shown = ", ".join(f"{name} ({mass:.3f})" for name, mass in list(lost.items())[:5])
        raise Refusal(
            422,
            f"The judge put too little probability on the legal answers of {shown}, under {floor}: no answer of it.",
        )
