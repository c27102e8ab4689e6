"""A base model's folder: its weights as they are stored, its settings, and whether an adapter may be merged into it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aipsy_judge.base_record import DEQUANTISED
from aipsy_judge.errors import WeightsError
from aipsy_judge.safetensors_file import Stored, TensorFile
from aipsy_judge.tensor_folder import INDEX as INDEX
from aipsy_judge.tensor_folder import read_json as read_json
from aipsy_judge.tensor_folder import tensor_files

_MERGED_TYPES = ("BF16", "F16", "F32")
# what an ordinary checkpoint holds beside its weights: masks, positions, counters
_BESIDE = ("I64", "I32", "BOOL", "F64")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """`files` in the order of their names; `config` as in config.json; `dequantised` as in dequantised.json, or None
    where the weights are as they were published."""

    folder: Path
    config: dict[str, Any]
    files: tuple[TensorFile, ...]
    dequantised: dict[str, Any] | None

    @property
    def tensors(self) -> dict[str, Stored]:
        return {t.name: t for file in self.files for t in file.tensors}

    @property
    def weight_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)

    @property
    def weight_types(self) -> tuple[str, ...]:
        """The types of the matrices, most bytes first: ("BF16",) in most checkpoints."""
        sizes: dict[str, int] = {}
        for tensor in self.tensors.values():
            if len(tensor.shape) > 1:
                sizes[tensor.dtype] = sizes.get(tensor.dtype, 0) + tensor.size_bytes
        return tuple(sorted(sizes, key=lambda t: -sizes[t]))


def open_checkpoint(folder: Path) -> Checkpoint:
    """The checkpoint in `folder`; only headers are read. Raises WeightsError that says what is missing or damaged."""
    if not folder.is_dir():
        raise WeightsError("no such folder", where=str(folder), hint="Name the folder that holds config.json.")
    config = read_json(folder / "config.json")
    files = tensor_files(folder)
    origin = folder / DEQUANTISED
    return Checkpoint(folder, config, files, read_json(origin) if origin.is_file() else None)


def check_full_weights(base: Checkpoint) -> None:
    """Raise WeightsError if the stored weights are quantised: a sum rounded to so few steps spoils the model, and what
    is quantised twice loses twice."""
    where = str(base.folder)
    hint = "Take the full weights of the same model; a GGUF base is dequantised first, which is then recorded."
    texts = (base.config, base.config.get("text_config") or {})
    for key in ("quantization_config", "quantization"):
        for config in texts:
            if isinstance(config, dict) and config.get(key):
                method = config[key].get("quant_method", "") if isinstance(config[key], dict) else ""
                raise WeightsError(
                    f"the weights are quantised ({key} {method}".rstrip() + " in config.json)", where=where, hint=hint
                )
    for tensor in base.tensors.values():
        if tensor.dtype not in (*_MERGED_TYPES, *_BESIDE):
            raise WeightsError(
                f"the weights are quantised: {tensor.name!r} is stored as {tensor.dtype}", where=where, hint=hint
            )
