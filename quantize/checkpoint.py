"""A base model's folder: its weights as they are stored, its settings, and whether an adapter may be merged into it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aipsy_judge.errors import WeightsError

from .stored import Stored, TensorFile, read_tensor_file

INDEX = "model.safetensors.index.json"
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
    files = tuple(read_tensor_file(folder / name) for name in _weight_files(folder))
    _check_index(folder, files)
    origin = folder / "dequantised.json"
    return Checkpoint(folder, config, files, read_json(origin) if origin.is_file() else None)


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object. Raises WeightsError where there is none."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise WeightsError(f"cannot be read: {error.strerror or error}", where=str(path)) from error
    except (ValueError, RecursionError) as error:
        raise WeightsError(f"not JSON: {error}", where=str(path)) from error
    if not isinstance(data, dict):
        raise WeightsError("a JSON object was expected", where=str(path))
    return data


def _weight_files(folder: Path) -> list[str]:
    if (folder / INDEX).is_file():
        weight_map = read_json(folder / INDEX).get("weight_map")
        if not isinstance(weight_map, dict) or not weight_map:
            raise WeightsError("has no weight_map", where=str(folder / INDEX))
        names = sorted({str(name) for name in weight_map.values()})
        if any(Path(name).name != name for name in names):
            raise WeightsError("names files outside its folder", where=str(folder / INDEX))
        return names
    if (folder / "model.safetensors").is_file():
        return ["model.safetensors"]
    others = sorted(p.name for p in folder.iterdir() if p.suffix in (".bin", ".pt", ".pth", ".gguf", ".npz"))
    beside = f"; {others[0]} is not read (pickle or quantised)" if others else ""
    raise WeightsError(
        f"holds neither model.safetensors nor {INDEX}{beside}",
        where=str(folder),
        hint="Fetch the safetensors files of the base; a GGUF base is dequantised first.",
    )


def _check_index(folder: Path, files: tuple[TensorFile, ...]) -> None:
    found = {t.name: file.path.name for file in files for t in file.tensors}
    if len(found) != sum(len(file.tensors) for file in files):
        raise WeightsError("a tensor stands in two of its files", where=str(folder))
    if (folder / INDEX).is_file():
        wanted = read_json(folder / INDEX)["weight_map"]
        wrong = sorted(set(wanted.items()) ^ set(found.items()))
        if wrong:
            raise WeightsError(
                f"does not agree with the files beside it, first about {wrong[0][0]!r}",
                where=str(folder / INDEX),
                hint="Fetch the folder again: index and files are of different versions.",
            )


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
