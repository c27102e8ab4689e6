"""What a checkpoint's folder holds beside its weights that makes the model: settings, tokenizer, template, licence."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

# Other weights, and code that nobody may run.
_SUFFIXES = (".safetensors", ".bin", ".pt", ".pth", ".gguf", ".onnx", ".h5", ".msgpack", ".npz", ".py", ".pkl")
# A card and a record that speak of another model; an index that the weights beside it may not match.
_NAMES = ("README.md", "merged.json", "model.safetensors.index.json")


def beside(source: Path) -> list[Path]:
    """These files, by name."""
    plain = (p for p in sorted(source.iterdir()) if p.is_file() and not p.name.startswith("."))
    return [p for p in plain if p.name not in _NAMES and p.suffix.lower() not in _SUFFIXES]


def copy_beside(source: Path, target: Path) -> dict[str, str]:
    """Copy these files to `target`, byte by byte; sha256 by name."""
    copied = {}
    for path in beside(source):
        shutil.copyfile(path, target / path.name)
        copied[path.name] = hashlib.sha256((target / path.name).read_bytes()).hexdigest()
    return copied
