"""What a checkpoint's folder holds beside its weights that makes the model: settings, tokenizer, template, licence."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

# Other weights, and code that nobody may run.
_SUFFIXES = (".safetensors", ".bin", ".pt", ".pth", ".gguf", ".onnx", ".h5", ".msgpack", ".npz", ".py", ".pkl")
# A card and a record that speak of another model; an index that the weights beside it may not match.
_NAMES = ("README.md", "merged.json", "model.safetensors.index.json")


def copy_beside(source: Path, target: Path) -> dict[str, str]:
    """Copy these files to `target`, byte by byte; sha256 by name."""
    copied = {}
    for path in sorted(source.iterdir()):
        if path.is_file() and not path.name.startswith(".") and path.name not in _NAMES:
            if path.suffix.lower() in _SUFFIXES:
                continue
            shutil.copyfile(path, target / path.name)
            copied[path.name] = hashlib.sha256((target / path.name).read_bytes()).hexdigest()
    return copied
