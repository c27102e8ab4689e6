"""targets.jsonl: what each item's slots are to say, an item a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from aipsy_judge.atomic import write_pieces
from aipsy_judge.errors import InputError
from aipsy_judge.strict_json import dumps, loads
from aipsy_judge.verdict import NotApplicable, Score, Scored, Unscored

FILE = "targets.jsonl"
STRICT = {"extra": "forbid", "strict": True}


@dataclass(frozen=True, slots=True)
class MetricTarget:
    """value   in points of the scale, where scored
    p_fail  calibrated probability that the experts would see a failure, 0..1; None where undefined
    p_na    share of the votes for N/A, 0..1; 0 or 1 where the rubric leaves no choice; None where nobody votes

    An unscored metric trains no slot.
    """

    __pydantic_config__ = STRICT
    status: Literal["scored", "na", "unscored"]
    value: float | None
    p_fail: float | None
    p_na: float | None

    def __post_init__(self) -> None:
        if (self.status == "scored") != (self.value is not None):
            raise ValueError(f"status {self.status} with the value {self.value}")

    @property
    def score(self) -> Score:
        """The same as a judge would say it."""
        if self.value is not None:
            return Scored(self.value)
        return NotApplicable() if self.status == "na" else Unscored("missing")


@dataclass(frozen=True, slots=True)
class FlagTarget:
    """value            None where nobody could be read: it then trains no slot
    probability      share that training gives to yes, 0..1; at least a half if and only if `value` is True
    severity         a level of the rubric; None where no one who agrees tells any
    severity_shares  level -> share, sum 1, the greatest that of `severity`
    """

    __pydantic_config__ = STRICT
    value: bool | None
    probability: float | None
    severity: str | None
    severity_shares: dict[str, float] | None


@dataclass(frozen=True, slots=True)
class TargetRow:
    """One item; `metrics` and `flags` hold all of the rubric, in its order. `rationale` are words of `rationale_rater`
    that say what the target says."""

    __pydantic_config__ = STRICT
    item_id: str
    conversation: str
    turn: int | None
    scenario: str | None
    generator: str | None
    metrics: dict[str, MetricTarget]
    flags: dict[str, FlagTarget]
    rationale: str | None
    rationale_rater: str | None

    @property
    def scores(self) -> Mapping[str, Score]:
        return {name: target.score for name, target in self.metrics.items()}


def write_target_rows(path: Path, rows: Iterable[TargetRow]) -> None:
    """Sorted by item."""
    write_pieces(path, (dumps(asdict(r)).encode() + b"\n" for r in sorted(rows, key=lambda r: r.item_id)))


def read_target_rows(path: Path) -> Iterator[TargetRow]:
    """A row at a time. InputError, with its line, where one is no target."""
    yield from read_lines(path, TargetRow, "python -m training.targets RECIPE makes it.")


def read_lines(path: Path, kind: Any, hint: str) -> Iterator[Any]:
    """Lines of strict JSON as instances of a dataclass."""
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                yield _parsed(adapter, line, f"{path}, line {number}", hint)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", where=str(path), hint=hint) from error


def _parsed(adapter: TypeAdapter[Any], line: bytes, where: str, hint: str) -> Any:
    try:
        loads(line)  # refuses NaN and keys that stand twice, which the next reader lets pass
        return adapter.validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "line"
        raise InputError(f"{place}: {first['msg']}", where=where, hint=hint) from error
    except ValueError as error:
        raise InputError(f"not strict JSON: {error}", where=where, hint=hint) from error
