"""The checkpoint folder of a recipe's base: as it was given, or dequantised from a GGUF file once."""

from __future__ import annotations

from pathlib import Path

from aipsy_judge.errors import InputError

from .recipe import Recipe


def base_folder(recipe: Recipe) -> Path:
    """Raises InputError where there is no such folder or file, WeightsError where the file cannot be dequantised."""
    if recipe.base.gguf is not None:
        from .dequantised import dequantised, gguf_path

        return dequantised(gguf_path(recipe.base.gguf))
    folder = Path(str(recipe.base.checkpoint)).expanduser()
    if not (folder / "config.json").is_file():
        raise InputError(
            "no checkpoint folder: it holds no config.json" if folder.is_dir() else "no such folder",
            where=f"base.checkpoint: {folder}",
            hint="Fetch the base's folder (config.json, *.safetensors, tokenizer) and name it; or give base.gguf.",
        )
    return folder
