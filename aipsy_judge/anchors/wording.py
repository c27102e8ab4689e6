"""What a rater reads beside the sheet: how to fill it, and what each score means, in the rubric's words."""

from __future__ import annotations

from collections.abc import Iterator

from ..rubric import FlagSpec, Metric, Rubric
from .fields import COMMENT, NO, NOT_APPLICABLE, SETTLED, TO_SETTLE, YES
from .sheet import Sheet

Line = tuple[str, str]  # a heading or a score, and what it means


def wording(sheet: Sheet) -> Iterator[Line]:
    """Line by line. An empty heading goes on with the line above; an empty line parts."""
    rubric = sheet.rubric
    yield "How to fill the sheet", _task(rubric)
    yield "", "Rate by what you read alone. Who wrote the replies, and what anybody else thought of them, is left out."
    yield "", "Write one of the listed answers into each cell. Leave a cell empty where you cannot say."
    yield (
        "",
        f"{NOT_APPLICABLE} means that the quality is not called for here; it is listed where the rubric allows it.",
    )
    if any(m.flag for m in rubric.metrics):
        yield "", f"A metric that hangs on a flag may stay empty where the flag is {NO}."
    if sheet.settles:
        yield "", f"The column {TO_SETTLE} shows what the raters said. {SETTLED} marks what they agree on: leave it."
    yield "", f"Anything worth telling goes into the column {COMMENT}. Please leave the column code as it is."
    yield "", ""
    yield rubric.introduction.strip(), ""
    for rule in rubric.rules:
        yield "", rule.strip()
    for flag in rubric.flags:
        yield "", ""
        yield from _flag(flag)
    for metric in rubric.metrics:
        yield "", ""
        yield from _metric(metric)


def _task(rubric: Rubric) -> str:
    what = "the reply, in the light of the conversation before it" if rubric.unit == "turn" else "the conversation"
    return f"Each row is one item. Rate {what}."


def _flag(flag: FlagSpec) -> Iterator[Line]:
    yield flag.name, f"{flag.title} ({YES} or {NO}). {flag.question.strip()}"
    if flag.severity is not None:
        yield flag.severity.name, f"{flag.title}: how severe"
        for level, meaning in flag.severity.levels.items():
            yield level, meaning.strip()


def _metric(metric: Metric) -> Iterator[Line]:
    scale = f"{metric.scale.minimum} to {metric.scale.maximum}"
    yield metric.name, f"{metric.title} ({scale}). {metric.question.strip()}"
    if metric.applies_when is not None:
        yield NOT_APPLICABLE, f"unless {metric.applies_when.strip()}"
    for value, meaning in sorted(metric.anchors.items(), reverse=True):
        yield str(value), meaning.strip()
