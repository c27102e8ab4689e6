"""All faults of a table at once: the first fifty with their rows, and the count of the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from ..errors import RatingsError

SHOWN = 50


class Faults:
    """Gathers faults as (file number, row number, message) and raises them together."""

    def __init__(self) -> None:
        self.sources: list[str] = []
        self.count = 0
        self._kept: list[tuple[int, int, str]] = []

    def add(self, source: int, row: int, message: str) -> None:
        self.count += 1
        self._kept.append((source, row, message))
        if len(self._kept) > 100 * SHOWN:
            self._kept = sorted(self._kept)[:SHOWN]

    def add_all(
        self,
        bad: NDArray[np.bool_] | Iterable[int],
        source: NDArray[np.int32],
        row: NDArray[np.int64],
        message: Callable[[int], str],
    ) -> None:
        """One fault for each row of the mask `bad` (or each place named). `message` is asked only for those shown."""
        places = np.flatnonzero(bad) if isinstance(bad, np.ndarray) else np.fromiter(bad, dtype=np.int64)
        self.count += len(places)
        order = np.lexsort((row[places], source[places]))[:SHOWN]
        self._kept += [(int(source[n]), int(row[n]), message(int(n))) for n in places[order]]

    def raise_any(self) -> None:
        """Raises RatingsError if there is any fault."""
        if not self.count:
            return
        shown = sorted(self._kept)[:SHOWN]
        several = len(self.sources) > 1
        lines = [f"  {self.sources[s] + ', ' if several else ''}row {row}: {text}" for s, row, text in shown]
        if self.count > len(shown):
            lines.append(f"  ... and {self.count - len(shown)} more")
        raise RatingsError(
            f"{self.count} fault{'s' if self.count > 1 else ''} in the ratings:\n" + "\n".join(lines),
            where=None if several else self.sources[0],
            hint="Nothing was read: mend these rows. N/A and missing are statuses, not numbers.",
        )
