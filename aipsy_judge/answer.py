"""The shape of a judge's answer: fixed text with slots, made from the rubric.

An `AnswerForm` is a list of parts: text that is always the same, and slots where one of a few legal options stands.
The engine feeds the text and reads the model's distribution at the slots; `render` writes a whole answer, which is
also what training renders and what a reply is parsed from.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

from .rubric import FlagSpec, Metric, Rubric

NA = "N/A"  # label of "does not apply", however a contract spells it
YES, NO = "true", "false"


@dataclass(frozen=True, slots=True)
class Option:
    """One legal answer: `label` is what it means, `text` how it is written in the answer."""

    label: str
    text: str


@dataclass(frozen=True, slots=True)
class Slot:
    """A free place. `legal_given` narrows the options by an earlier slot's choice: (slot, {its label: labels})."""

    name: str
    options: tuple[Option, ...]
    legal_given: tuple[str, Mapping[str, tuple[str, ...]]] | None = None

    def legal(self, chosen: Mapping[str, str]) -> tuple[Option, ...]:
        """The options that remain, given what was chosen before."""
        if self.legal_given is None or self.legal_given[0] not in chosen:
            return self.options
        slot, table = self.legal_given
        labels = table[chosen[slot]]
        return tuple(o for o in self.options if o.label in labels)


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """Fixed text and slots in turn; a slot is never last, since an option is read with what follows it.

    `rationale` says that free text follows the last part (which ends in an opened quote) up to a closing quote,
    and `closing` is what stands after it.
    """

    parts: tuple[str | Slot, ...]
    rationale: bool = False
    closing: str = ""

    @property
    def slots(self) -> tuple[Slot, ...]:
        return tuple(p for p in self.parts if isinstance(p, Slot))

    def render(self, chosen: Mapping[str, str], rationale: str = "") -> str:
        """The whole answer as text. KeyError if a slot has no choice; ValueError if a choice is not legal."""
        out: list[str] = []
        for part in self.parts:
            if isinstance(part, str):
                out.append(part)
                continue
            legal = {o.label: o.text for o in part.legal(chosen)}
            if chosen[part.name] not in legal:
                raise ValueError(f"{part.name}: {chosen[part.name]!r} is not legal here ({', '.join(legal)})")
            out.append(legal[chosen[part.name]])
        if self.rationale:
            out.append(json.dumps(rationale, ensure_ascii=False)[1:-1])
        return "".join(out) + self.closing


def metric_options(metric: Metric, na_text: str | None) -> tuple[Option, ...]:
    """The scale's values in rising order, then N/A if the metric may not apply and `na_text` is given."""
    values = tuple(Option(str(v), str(v)) for v in metric.scale.values)
    return (*values, Option(NA, na_text)) if metric.may_be_na and na_text is not None else values


def flag_slots(flag: FlagSpec) -> list[Slot]:
    """true/false, then the severity, which agrees with it."""
    slots = [Slot(flag.name, (Option(NO, '"no"'), Option(YES, '"yes"')))]
    if flag.severity is not None:
        levels = tuple(flag.severity.levels)
        options = tuple(Option(level, json.dumps(level)) for level in levels)
        slots.append(Slot(flag.severity.name, options, (flag.name, {NO: levels[:1], YES: levels[1:]})))
    return slots


def metric_slot(metric: Metric, na_text: str) -> Slot:
    """A metric that hangs on a flag is scored if and only if the flag is set."""
    options = metric_options(metric, na_text)
    if metric.flag is None:
        return Slot(metric.name, options)
    numbers = tuple(o.label for o in options if o.label != NA)
    return Slot(metric.name, options, (metric.flag, {NO: (NA,), YES: numbers}))


def full_form(rubric: Rubric) -> AnswerForm:
    """One flat JSON object: flags, metrics (null = does not apply), rationale last.

    Laid out as models write JSON by themselves, a blank after colon and comma. Without the blanks one look would
    answer a slot, but an untrained model then puts little of its probability on legal answers (docs/log.md).
    """
    slots = [s for f in rubric.flags for s in flag_slots(f)] + [metric_slot(m, "null") for m in rubric.metrics]
    parts: list[str | Slot] = []
    for slot in slots:
        parts += [("{" if not parts else ", ") + json.dumps(slot.name) + ": ", slot]
    return AnswerForm((*parts, ', "rationale": "'), rationale=True, closing='"}')


def compact_forms(rubric: Rubric) -> dict[str, AnswerForm]:
    """One short line a flag and a metric, `name:value`, each an answer of its own (free of order and halo).

    A flag with severity is asked as its severity, whose first level means "not set". A metric that hangs on a flag
    has no N/A of its own: the flag decides.
    """
    forms: dict[str, AnswerForm] = {}
    for flag in rubric.flags:
        labels = tuple(flag.severity.levels) if flag.severity else (NO, YES)
        forms[flag.name] = _line(flag.name, tuple(Option(x, x) for x in labels))
    for metric in rubric.metrics:
        forms[metric.name] = _line(metric.name, metric_options(metric, None if metric.flag else "NA"))
    return forms


def _line(name: str, options: tuple[Option, ...]) -> AnswerForm:
    return AnswerForm((f"{name}:", Slot(name, options), "\n"))


def subsets(slot_name: str, values: tuple[str, ...]) -> Slot:
    """A slot for a short list: every subset of `values`, in their order, as a JSON list."""
    chosen = [c for size in range(len(values) + 1) for c in combinations(values, size)]
    return Slot(slot_name, tuple(Option(",".join(c), json.dumps(list(c))) for c in chosen))
