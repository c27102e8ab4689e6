"""One side of a comparison: weights, perhaps with an adapter, opened by the instrument's own backend."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from aipsy_judge.backends.amx import extra_buffers_work
from aipsy_judge.backends.llamacpp import LlamaCpp, LlamaCppOptions
from aipsy_judge.backends.protocol import TokenBackend
from aipsy_judge.file_hash import file_sha256
from aipsy_judge.gguf_adapter import check_adapter
from aipsy_judge.gguf_model import check_model
from aipsy_judge.manifest import Weighed
from aipsy_judge.model_folder import open_model_folder, refuse_adapter


@dataclass(frozen=True, slots=True)
class Side:
    """A GGUF file, and the LoRA adapter (GGUF) that it wears, if any; or a folder of safetensors, which MLX runs."""

    model: Path
    adapter: Path | None = None

    @property
    def words(self) -> str:
        return self.model.name + (f" + {self.adapter.name}" if self.adapter is not None else "")

    def check(self) -> None:
        """Raise WeightsError if either is damaged or none, or they do not fit; MissingExtraError where MLX is wanted
        and not installed. Told before the other side is watched, which takes minutes to hours."""
        if self.model.is_dir():
            self._check_folder()
            return
        header = check_model(self.model)
        if self.adapter is not None:
            check_adapter(self.adapter, header)

    def _check_folder(self) -> None:
        from aipsy_judge.backends.mlx_library import need_mlx

        open_model_folder(self.model)
        refuse_adapter(self.adapter)
        need_mlx()

    def weighed(self) -> Weighed:
        """The sha256 of both."""
        adapter = file_sha256(self.adapter) if self.adapter is not None else None
        return Weighed(model=file_sha256(self.model), adapter=adapter)


@contextmanager
def opened(side: Side, threads: int) -> Iterator[TokenBackend]:
    """The side's model in memory, one at a time: two of 27 and 50 GB would not fit most machines."""
    backend = _open(side, threads)
    try:
        yield backend
    finally:
        backend.close()


def _open(side: Side, threads: int) -> TokenBackend:
    if side.model.is_dir():
        from aipsy_judge.backends.mlxlm import MlxLm

        return MlxLm(side.model)
    options = LlamaCppOptions(threads=threads, extra_bufts=extra_buffers_work(side.model))
    return LlamaCpp(side.model, options, side.adapter)
