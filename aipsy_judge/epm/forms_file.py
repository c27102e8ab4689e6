"""Files of forms: one JSON object, or JSON lines, plain or gzipped. What comes from outside is checked here."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..errors import InputError
from .forms import UNNAMED, Cited, Forms, Origin, Quote
from .space import Space
from .vectors import turns_of

# NaN is let through here so that the check of the levels can name the turn it stands in.
_Level = int | Annotated[float, Field(allow_inf_nan=True)] | None


class _QuoteData(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    text: Annotated[str, Field(min_length=1)]
    message: Annotated[int, Field(ge=0)] | None = None
    confidence: Annotated[float, Field(ge=0, le=1)] | None = None


class _EvidenceData(BaseModel):
    """Quotes by id, of the starting form and of every rating."""

    model_config = ConfigDict(extra="forbid", strict=True)

    start: dict[str, _QuoteData | None] = Field(default_factory=dict)
    ratings: list[dict[str, _QuoteData | None]] = Field(default_factory=list)


class _ProvenanceData(BaseModel):
    """What the judge that filled the forms said of itself; more may stand there."""

    model_config = ConfigDict(extra="allow", strict=True)

    start: dict[str, Any] = Field(default_factory=dict)
    turns: dict[str, Any] = Field(default_factory=dict)
    remarks: list[str] = Field(default_factory=list)
    unread: list[str] = Field(default_factory=list)
    suspected_injection: list[str] = Field(default_factory=list)


class _FormsData(BaseModel):
    """A line of a runs file, or a forms file."""

    model_config = ConfigDict(extra="forbid", strict=True)

    model: str | None = None
    case: str | None = None
    iedr: dict[str, _Level] | None = None
    P_0: list[float] | None = None
    levels: list[list[_Level] | None]
    every: Annotated[int, Field(ge=1)] = 1
    threshold: str | None = None
    alpha: float | None = None
    turns: int | None = None
    stop: str | None = None
    pack: str | None = None
    evidence: _EvidenceData | None = None
    provenance: _ProvenanceData | None = None


def read_forms(path: str | Path, space: Space) -> list[Forms]:
    """All forms of a file: one JSON object, or JSON lines, plain or gzipped. InputError names file and line."""
    return [parse_forms(data, space, where=where) for data, where in read_objects(path)]


def read_objects(path: str | Path) -> Iterator[tuple[Any, str]]:
    """The JSON objects of a file, each with its place: the file's one object, or one a line; plain or gzipped."""
    text = _read_text(Path(path))
    whole = _one_object(text)
    if whole is not None:
        yield whole, str(path)
        return
    for line, where in _lines(text, str(path)):
        yield _object(line, where), where


def parse_forms(data: Any, space: Space, *, where: str) -> Forms:
    """Forms out of decoded JSON. InputError with every fault of the shape; levels are checked when evaluated."""
    try:
        parsed = _FormsData.model_validate(data)
    except ValidationError as error:
        faults = [f"  {_place(e['loc'], space)}: {e['msg']}" for e in error.errors()]
        raise InputError("not valid forms:\n" + "\n".join(dict.fromkeys(faults)), where=where) from error
    if not parsed.levels:
        raise InputError("no turn was rated", where=where)
    if parsed.turns is not None and not 0 <= len(parsed.levels) * parsed.every - parsed.turns < parsed.every:
        raise InputError(
            f"{len(parsed.levels)} ratings of {parsed.every} turns each do not make {parsed.turns} turns", where=where
        )
    return Forms(
        where=where,
        model=parsed.model or UNNAMED,
        case=parsed.case or UNNAMED,
        start_levels=_start_levels(parsed.iedr, space, where),
        start=_start(parsed, space, where),
        turn_levels=tuple(_row(row, t, parsed.every, space, where) for t, row in enumerate(parsed.levels)),
        every=parsed.every,
        threshold=parsed.threshold,
        tolerance=parsed.alpha,
        logged_turns=parsed.turns,
        logged_stop=parsed.stop,
        evidence=_cited(parsed, space, where),
        origin=_origin(parsed.provenance),
    )


def _cited(parsed: _FormsData, space: Space, where: str) -> tuple[Cited, ...]:
    if parsed.evidence is None:
        return ()
    ratings = parsed.evidence.ratings
    strange = {*parsed.evidence.start} - {*space.indicator_ids} | {i for r in ratings for i in r} - {*space.channel_ids}
    if strange or len(ratings) > len(parsed.levels):
        raise InputError(
            f"evidence for levels that are not there: {', '.join(sorted(strange)) or 'ratings'}", where=where
        )
    forms: list[tuple[int | None, dict[str, _QuoteData | None]]] = [(None, parsed.evidence.start), *enumerate(ratings)]
    return tuple(
        Cited(rating, level_id, Quote(**q.model_dump()) if q is not None else None)
        for rating, quotes in forms
        for level_id, q in quotes.items()
    )


def _origin(data: _ProvenanceData | None) -> Origin | None:
    if data is None:
        return None
    forms = [data.start, data.turns]
    return Origin(
        judge=str(data.turns.get("judge")),
        lane=" + ".join(f"{f.get('judge')} / {str(f.get('rubric'))[:12]} / {f.get('contract')}" for f in forms),
        remarks=tuple(data.remarks),
        unread=tuple(data.unread),
        suspected_injection=tuple(data.suspected_injection),
    )


def _start_levels(levels: dict[str, _Level] | None, space: Space, where: str) -> tuple[float | None, ...] | None:
    if levels is None:
        return None
    strange = sorted(set(levels) - set(space.indicator_ids))
    if strange:
        raise InputError(
            f"unknown indicators: {', '.join(strange)}",
            where=f"{where}, start",
            hint=f"The pack's indicators are {', '.join(space.indicator_ids)}.",
        )
    return tuple(levels.get(i) for i in space.indicator_ids)


def _start(data: _FormsData, space: Space, where: str) -> tuple[float, ...] | None:
    if data.P_0 is None:
        if data.iedr is None:
            raise InputError("neither iedr nor P_0 says where the dialogue starts", where=where)
        return None
    if len(data.P_0) != len(space.axes):
        raise InputError(f"P_0 has {len(data.P_0)} numbers, the space {len(space.axes)} axes", where=where)
    return tuple(data.P_0)


def _row(row: list[_Level] | None, t: int, every: int, space: Space, where: str) -> tuple[float | None, ...]:
    """A form that is missing as a whole is one whose every level could not be read."""
    width = len(space.channel_ids)
    if row is None:
        return (None,) * width
    if len(row) != width:
        raise InputError(
            f"{len(row)} levels, {width} are needed: {', '.join(space.channel_ids)}",
            where=f"{where}, {turns_of(t, every)}",
        )
    return tuple(row)


def _place(loc: tuple[int | str, ...], space: Space) -> str:
    """A fault's place in words: the turn and the channel, not list positions."""
    match loc:
        case ("levels", int(t)) | ("levels", int(t), str()):
            return f"rating {t + 1}"
        case ("levels", int(t), _, int(c), *_) | ("levels", int(t), int(c), *_) if c < len(space.channel_ids):
            return f"rating {t + 1}, {space.channel_ids[c]}"
    return ".".join(str(part) for part in loc[:2]) or "forms"


def _read_text(path: Path) -> str:
    try:
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        return data.decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", where=str(path)) from error


def _lines(text: str, path: str) -> Iterator[tuple[str, str]]:
    found = False
    # Only \n ends a line: a JSON string may hold the other separators.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            found = True
            yield line, f"{path}:{number}"
    if not found:
        raise InputError("the file is empty", where=path)


def _one_object(text: str) -> dict[str, Any] | None:
    """The file's one object, or None where it is not one (then it is read line by line, which says what is wrong)."""
    try:
        data = json.loads(text, object_pairs_hook=_unique)
    except ValueError:
        return None
    return data if isinstance(data, dict) else None


def _object(text: str, where: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except ValueError as error:
        raise InputError(f"not valid JSON: {error}", where=where) from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        raise ValueError("a key is written twice")
    return data
