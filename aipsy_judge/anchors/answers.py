"""One filled row: what each cell means, and whether the cells agree with each other and with the rubric."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .fields import NO, NOT_APPLICABLE, SETTLED, YES, Field

_YES = frozenset({YES, "y", "true", "1"})
_NO = frozenset({NO, "n", "false", "0"})
_NA = frozenset({"n/a", "na", "n.a."})


@dataclass(frozen=True, slots=True)
class Answer:
    """`score` on the field's scale (a flag: 0 or 1, a severity: its level), or None for N/A."""

    score: float | None


# What a cell holds: an answer, nothing (None: missing, or not asked), or something that is no answer.
Cell = Answer | None


def read_answers(
    cells: Mapping[str, str], fields: Sequence[Field], fault: Callable[[str], None], *, settles: bool = False
) -> dict[str, Answer]:
    """The answers of a row, by field; empty cells have none. `fault` is told of everything that is wrong.

    A metric that hangs on a flag is N/A where the flag is no, also where its cell is empty. `settles`: the sheet is
    for adjudication, where a dash marks what was agreed on and says nothing new.
    """
    found: dict[str, Answer] = {}
    unread = set()
    for field in fields:
        text = cells.get(field.name, "")
        if not text or (settles and text == SETTLED):
            continue
        answer = _answer(text, field)
        if answer is None:
            unread.add(field.name)
            fault(f"{field.name} is {_shown(text)}, not one of {_legal(field)}")
        else:
            found[field.name] = answer
    for field in fields:
        if field.flag is not None and field.name not in unread and field.flag not in unread:
            settled = settles and cells.get(field.flag, "") == SETTLED
            _agree(field, found, fault, flag_known=not settled)
    return found


def _answer(text: str, field: Field) -> Answer | None:
    word = text.casefold()
    if field.kind == "flag":
        return Answer(1.0) if word in _YES else Answer(0.0) if word in _NO else None
    if field.kind == "severity":
        return Answer(float(field.answers.index(word))) if word in field.answers else None
    if word in _NA:
        return Answer(None) if field.may_be_na else None
    # Exactly the digits of the scale: 4,5 and 3/5 are not read as something near them.
    return Answer(float(text)) if text in field.answers else None


def _agree(field: Field, found: dict[str, Answer], fault: Callable[[str], None], *, flag_known: bool) -> None:
    """Hold a field against the flag that it hangs on, and fill in what the flag decides."""
    assert field.flag is not None
    if not flag_known:
        return
    flag, answer = found.get(field.flag), found.get(field.name)
    unset = Answer(0.0) if field.kind == "severity" else Answer(None)
    if flag is None:
        if answer not in (None, unset):
            fault(f"{field.name} is answered, but {field.flag}, on which it hangs, is empty")
    elif not flag.score:
        if answer not in (None, unset):
            fault(f"{field.flag} is {NO}, so that {field.name} must be {_unset_word(field)} or empty")
        found[field.name] = unset
    elif answer == unset:
        fault(f"{field.flag} is {YES}, so that {field.name} cannot be {_unset_word(field)}; empty means not rated")


def _unset_word(field: Field) -> str:
    return field.answers[0] if field.kind == "severity" else NOT_APPLICABLE


def _legal(field: Field) -> str:
    if field.kind != "metric" or len(field.answers) <= 8:
        return ", ".join(field.answers)
    return f"{field.scale[0]} to {field.scale[1]}" + (f", {NOT_APPLICABLE}" if field.may_be_na else "")


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")
