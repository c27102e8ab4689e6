"""One side of a comparison: weights, perhaps with an adapter, opened by the instrument's own backend."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from aipsy_judge.backends.amx import extra_buffers_work
from aipsy_judge.backends.llamacpp import LlamaCpp, LlamaCppOptions
from aipsy_judge.file_hash import file_sha256
from aipsy_judge.gguf_adapter import check_adapter
from aipsy_judge.gguf_model import check_model
from aipsy_judge.manifest import Weighed


@dataclass(frozen=True, slots=True)
class Side:
    """A GGUF file, and the LoRA adapter (GGUF) that it wears, if any."""

    model: Path
    adapter: Path | None = None

    @property
    def words(self) -> str:
        return self.model.name + (f" + {self.adapter.name}" if self.adapter is not None else "")

    def check(self) -> None:
        """Raise WeightsError if either is damaged or none, or they do not fit: told before the other side is watched,
        which takes minutes to hours."""
        header = check_model(self.model)
        if self.adapter is not None:
            check_adapter(self.adapter, header)

    def weighed(self) -> Weighed:
        """The sha256 of both."""
        adapter = file_sha256(self.adapter) if self.adapter is not None else None
        return Weighed(model=file_sha256(self.model), adapter=adapter)


@contextmanager
def opened(side: Side, threads: int) -> Iterator[LlamaCpp]:
    """The side's model in memory, one at a time: two of 27 and 50 GB would not fit most machines."""
    options = LlamaCppOptions(threads=threads, extra_bufts=extra_buffers_work(side.model))
    backend = LlamaCpp(side.model, options, side.adapter)
    try:
        yield backend
    finally:
        backend.close()
