"""The checkpoint folder of a recipe's base: as it was given, or dequantised from a GGUF file once."""

from __future__ import annotations

from pathlib import Path

from aipsy_judge.base_record import folder_revision
from aipsy_judge.errors import InputError

from .recipe import Base, Recipe


def base_folder(recipe: Recipe) -> Path:
    """Raises InputError where there is no such folder or file, or the folder is of another revision than is named;
    WeightsError where the file cannot be dequantised."""
    if recipe.base.gguf is not None:
        from .dequantised import dequantised, gguf_path

        return dequantised(gguf_path(recipe.base.gguf))
    folder = checkpoint_folder(recipe.base)
    if not (folder / "config.json").is_file():
        raise InputError(
            "no checkpoint folder: it holds no config.json" if folder.is_dir() else "no such folder",
            where=f"base.checkpoint: {folder}",
            hint="Fetch the base's folder (config.json, *.safetensors, tokenizer) and name it; or give base.gguf.",
        )
    _check_revision(folder, recipe.base.revision)
    return folder


def checkpoint_folder(base: Base) -> Path:
    """base.checkpoint as a path, ~ being the home folder; nobody has looked yet whether it is there."""
    assert base.checkpoint is not None  # a recipe has this or base.gguf
    return Path(base.checkpoint).expanduser()


def _check_revision(folder: Path, named: str | None) -> None:
    """Where the folder says of itself which revision it is, no other may be recorded."""
    own = folder_revision(folder)
    if named is not None and own not in (None, named):
        raise InputError(
            f"the folder holds the revision {own}, the recipe names {named}",
            where="base.revision",
            hint="Name the folder's own revision, or leave it out: it is then recorded by itself.",
        )
