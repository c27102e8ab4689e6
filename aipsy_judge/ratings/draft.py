"""Raw cells to columns of codes and numbers; what cannot be read as its column's kind is a fault."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import RatingsError
from .faults import Faults
from .files import Chunk
from .table import KINDS, STATUSES, Bools, Floats, Ints

WORDS = (
    "item_id",
    "rater",
    "metric",
    "rater_kind",
    "status",
    "conversation",
    "scenario",
    "generator",
    "generator_family",
    "run",
)
NUMBERS = ("score", "scale_min", "scale_max", "turn", "inclusion")
COLUMNS = WORDS + NUMBERS
REQUIRED = ("item_id", "rater", "metric", "score")
ALIASES = {"conv_id": "conversation", "conversation_id": "conversation", "scenario_id": "scenario"}

# How spreadsheets and statistics programs write "nothing here". None of them says whether N/A or missing is meant.
EMPTY = frozenset({"", "na", "n/a", "nan", "null", "none"})
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)


@dataclass
class Draft:
    """The rows of all files, unchecked against each other.

    names, codes  per word column: the distinct words, and a code a row (-1 empty)
    numbers       per number column: a float a row (NaN empty)
    source, row   the file and row number each row came from
    """

    faults: Faults = field(default_factory=Faults)
    names: dict[str, dict[str, int]] = field(default_factory=lambda: {c: {} for c in WORDS})
    codes: dict[str, array[int]] = field(default_factory=lambda: {c: array("i") for c in WORDS})
    numbers: dict[str, array[float]] = field(default_factory=lambda: {c: array("d") for c in NUMBERS})
    source: array[int] = field(default_factory=lambda: array("i"))
    row: array[int] = field(default_factory=lambda: array("q"))
    seen: set[str] = field(default_factory=set)
    unused: dict[str, None] = field(default_factory=dict)
    _read_words: dict[str, dict[str | None, int]] = field(default_factory=lambda: {c: {} for c in WORDS})
    _read_numbers: dict[str | None, float] = field(default_factory=dict)

    def add_file(self, name: str, chunks: Iterable[Chunk]) -> None:
        """Takes in one file. Raises RatingsError where a required column is missing from all of it."""
        source = len(self.faults.sources)
        self.faults.sources.append(name)
        columns: set[str] = set()
        for chunk in chunks:
            columns |= self._add(chunk, source)
        if columns and (absent := [c for c in REQUIRED if c not in columns]):
            raise RatingsError(
                f"no column {', '.join(absent)}; there are: {', '.join(sorted(columns)) or 'none'}",
                where=name,
                hint=f"A ratings table has the columns {', '.join(REQUIRED)}, scale_min, scale_max.",
            )
        self.seen |= columns

    def _add(self, chunk: Chunk, source: int) -> set[str]:
        columns = self._renamed(chunk.columns, self.faults.sources[source])
        for number, message in chunk.faults:
            self.faults.add(source, number, message)
        blank = [None] * len(chunk.rows)
        for column in WORDS:
            cells = columns.get(column, blank)
            self.codes[column].extend(self._words(column, cells, chunk.rows, source))
        for column in NUMBERS:
            self.numbers[column].extend(self._numbers(column, columns.get(column, blank), chunk.rows, source))
        self.source.extend([source] * len(chunk.rows))
        self.row.extend(chunk.rows)
        return set(columns)

    def _renamed(self, columns: dict[str, list[Any]], where: str) -> dict[str, list[Any]]:
        renamed: dict[str, list[Any]] = {}
        for name, cells in columns.items():
            known = ALIASES.get(name, name)
            if known in renamed:
                raise RatingsError(f"two columns mean {known!r}", where=where, hint="Leave one of them out.")
            if known not in COLUMNS:
                self.unused[name] = None
            renamed[known] = cells
        return renamed

    def _words(self, column: str, cells: list[Any], rows: list[int], source: int) -> list[int]:
        read = self._read_words[column]  # text -> code; a table has few distinct words, so most cells are looked up
        try:
            codes = list(map(read.get, cells))
        except TypeError:  # a list or mapping among the cells
            codes = [None] * len(cells)
        if None in codes:
            for n, code in enumerate(codes):
                if code is None:
                    codes[n] = self._word_code(column, cells[n], rows[n], source)
        return codes  # type: ignore[return-value]  # no None is left

    def _word_code(self, column: str, cell: Any, row: int, source: int) -> int:
        if isinstance(cell, list | dict):
            self.faults.add(source, row, f"{column} is {_shown(cell)}, not a word")
            return -1
        names, word = self.names[column], _word(cell)
        code = names.setdefault(word, len(names)) if word else -1
        if isinstance(cell, str) or cell is None:
            self._read_words[column][cell] = code
        return code

    def _numbers(self, column: str, cells: list[Any], rows: list[int], source: int) -> list[float]:
        try:
            numbers = list(map(self._read_numbers.get, cells))
        except TypeError:
            numbers = [None] * len(cells)
        if None in numbers:
            for n, number in enumerate(numbers):
                if number is None:
                    numbers[n] = self._number_value(column, cells[n], rows[n], source)
        return numbers  # type: ignore[return-value]  # no None is left

    def _number_value(self, column: str, cell: Any, row: int, source: int) -> float:
        number = _number(cell if isinstance(cell, str) else _number_text(cell))
        if number is None:
            self.faults.add(source, row, f"{column} is {_shown(cell)}, not a number")
            return float("nan")
        if isinstance(cell, str) or cell is None:
            self._read_numbers[cell] = number
        return number

    def words(self, column: str) -> tuple[tuple[str, ...], Ints]:
        """The distinct words of a column, and a code a row (-1 empty)."""
        return tuple(self.names[column]), np.frombuffer(self.codes[column], dtype=np.int32)

    def floats(self, column: str) -> Floats:
        return np.frombuffer(self.numbers[column], dtype=np.float64)

    @property
    def sources(self) -> Ints:
        return np.frombuffer(self.source, dtype=np.int32)

    @property
    def rows(self) -> NDArray[np.int64]:
        return np.frombuffer(self.row, dtype=np.int64)

    def fault(self, bad: Bools, message: Callable[[int], str]) -> None:
        """A fault for each row of the mask."""
        self.faults.add_all(bad, self.sources, self.rows, message)

    def coded(self, column: str, legal: tuple[str, ...]) -> NDArray[np.int8]:
        """The place of each row's word in `legal`, -1 where empty; any other word is a fault."""
        names, codes = self.words(column)
        places = [legal.index(n) if n in legal else -2 for n in names]
        coded = np.array([*places, -1], dtype=np.int8)[codes]
        self.fault(coded == -2, lambda n: f"{column} is {names[codes[n]]!r}, not one of {', '.join(legal)}")
        return coded

    def statuses(self) -> NDArray[np.int8]:
        return self.coded("status", STATUSES)

    def kinds(self) -> NDArray[np.int8]:
        return self.coded("rater_kind", KINDS)


def _word(cell: Any) -> str:
    """A cell as a word; a whole number read as 17.0 (a numeric id column with gaps) is 17."""
    if cell is None:
        return ""
    if isinstance(cell, float):
        return "" if cell != cell else str(int(cell)) if cell.is_integer() else str(cell)
    return str(cell).strip()


def _number_text(cell: Any) -> str:
    if cell is None:
        return ""
    return str(cell) if isinstance(cell, int | float) and not isinstance(cell, bool) else f"<{type(cell).__name__}>"


def _number(text: str) -> float | None:
    """The number a cell holds, NaN if it holds nothing, None if it holds something else."""
    text = text.strip()
    if text.lower() in EMPTY:
        return float("nan")
    return float(text) if _NUMBER.fullmatch(text) else None


def _shown(cell: Any) -> str:
    text = repr(cell)
    return text if len(text) <= 60 else text[:57] + "..."
