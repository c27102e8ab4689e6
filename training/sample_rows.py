"""sample.jsonl: each item's part, stratum and how often it is shown, an item a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from aipsy_judge.atomic import write_pieces
from aipsy_judge.strict_json import dumps

from .split import Part
from .strata import Stratum
from .target_rows import STRICT, read_lines

FILE = "sample.jsonl"


@dataclass(frozen=True, slots=True)
class SampleRow:
    """`group`: what may not be torn apart; `repeats`: times an epoch shows the item, 1 outside the train part."""

    __pydantic_config__ = STRICT
    item_id: str
    group: str
    part: Part
    stratum: Stratum
    repeats: int


def write_sample_rows(path: Path, rows: Iterable[SampleRow]) -> None:
    """Sorted by item."""
    write_pieces(path, (dumps(asdict(r)).encode() + b"\n" for r in sorted(rows, key=lambda r: r.item_id)))


def read_sample_rows(path: Path) -> Iterator[SampleRow]:
    """A row at a time. InputError, with its line, where one is no such row."""
    yield from read_lines(path, SampleRow, "python -m training.sample RECIPE makes it.")
