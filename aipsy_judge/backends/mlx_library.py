"""mlx-lm, the library that knows the models: found by name, since it is an extra. What is called of it here takes a
folder and asks no hub."""

from __future__ import annotations

import importlib
import importlib.metadata
from typing import Any, Literal

from ..errors import MissingExtraError, WeightsError
from ..model_folder import ModelFolder
from ..rope_settings import differs_by_layer, older_rope_keys


def mlx_versions() -> str | None:
    """What is installed, in words; None where it is not. Nothing is imported."""
    try:
        return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("mlx", "mlx-lm"))
    except importlib.metadata.PackageNotFoundError:
        return None


def need_mlx() -> None:
    """Raise MissingExtraError where MLX cannot be used."""
    _library("mlx.core")
    _library("mlx_lm.utils")


def device() -> Literal["gpu", "cpu"]:
    """What it computes on here. On a processor, fused kernels are turned off for this process.

    There it has a C++ compiler build them, into a folder of the machine's temporary one that all processes share: a
    library that another process has half written is loaded as it is, which ends the process.
    """
    mx = _library("mlx.core")
    if mx.default_device().type == mx.DeviceType.gpu:
        return "gpu"
    mx.disable_compile()
    return "cpu"


def load_model(folder: ModelFolder) -> tuple[Any, list[Any]]:
    """The model, weights still on the disk, and the caches that the library would use with it. WeightsError."""
    try:
        library = _library("mlx_lm.utils")
        library.maybe_set_recommended_wired_limit()  # or macOS pages out weights that fill most of the memory
        told = older_rope_keys(folder.whole)
        model, _ = library.load_model(folder.path, lazy=True, model_config=told)
        caches = list(_library("mlx_lm.models.cache").make_prompt_cache(model))
    except Exception as error:  # it has no errors of its own
        kind = folder.config.get("model_type")
        raise WeightsError(
            f"mlx-lm cannot load this model ({kind}): {_first_line(error)}",
            where=str(folder.path),
            hint="The folder may be damaged, its settings not the model's own, or its kind newer than mlx-lm.",
        ) from error
    _check_rope(model, folder)
    return model, caches


def _check_rope(model: Any, folder: ModelFolder) -> None:
    """Settings by kind of layer have to be read by the model itself; one that does not would turn by other angles."""
    readers = [getattr(part, "args", None) for part in (model, getattr(model, "language_model", None))]
    if differs_by_layer(folder.config) and not any(hasattr(args, "rope_parameters") for args in readers):
        raise WeightsError(
            "mlx-lm's model of this kind does not read rope_parameters by kind of layer",
            where=str(folder.path / "config.json"),
            hint="Put the settings there as the makers of the model published them, or take a GGUF of it.",
        )


def _library(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError("mlx-lm", "mlx", "judging with MLX") from error


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
