"""What took long to find, by a key of everything it depends on: a journal of JSON lines, a record a line."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from aipsy_judge.journal import Journal
from aipsy_judge.strict_json import dumps


class Kept:
    """The records of a journal that is open for more; without a path they are gone with this object.

    Raises InputError where the file is damaged or in use.
    """

    def __init__(self, path: Path | None) -> None:
        self.records: dict[str, dict[str, Any]] = {}
        self._journal = Journal(path, lambda record, _: self._take(record)) if path is not None else None

    def _take(self, record: dict[str, Any]) -> None:
        self.records[record["key"]] = record

    def put(self, key: str, record: Mapping[str, Any], lasting: bool = True) -> None:
        """Have it at hand; `lasting`: on the disk too when this returns."""
        whole = {"key": key, **record}
        self.records[key] = whole
        if lasting and self._journal is not None:
            self._journal.append(whole)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._journal is not None:
            self._journal.close()


def key_of(*parts: Any) -> str:
    """sha256 (hex) of plain data."""
    return hashlib.sha256(dumps(list(parts), sort_keys=True).encode()).hexdigest()
