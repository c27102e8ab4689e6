"""The safetensors files of a folder that holds a model, and the JSON beside them: all there, and of one version."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .errors import WeightsError
from .safetensors_file import TensorFile, read_tensor_file

CONFIG = "config.json"
INDEX = "model.safetensors.index.json"


def tensor_files(folder: Path) -> tuple[TensorFile, ...]:
    """The files of weights in the order of their names; only headers are read. WeightsError says what is missing,
    damaged, or of another version than the index."""
    files = tuple(read_tensor_file(folder / name) for name in weight_files(folder))
    _check_index(folder, files)
    return files


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


def weight_files(folder: Path) -> list[str]:
    """Names of the files of weights, in order: those of the index, else model.safetensors. WeightsError."""
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
