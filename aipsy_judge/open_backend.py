"""Which library runs weights on this machine, and the weights opened with it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from .backends.protocol import TokenBackend
from .errors import InputError
from .judge import BackendChoice, JudgeOptions
from .model_folder import refuse_adapter
from .weights import Weights

_HINTS = {
    "mlx": "MLX reads a folder of safetensors; name that, or leave out --backend to have llama.cpp run this.",
    "llamacpp": "llama.cpp reads a GGUF file; name that, or leave out --backend to have MLX run this folder.",
}


def open_backend(weights: Weights, options: JudgeOptions) -> TokenBackend:
    """The weights, ready to evaluate. Files of unknown origin are tried in a process of their own first.

    Raises WeightsError, CapacityError; InputError for a backend that cannot read them; MissingExtraError.
    """
    kind = _kind(options.backend, weights.model)
    if kind == "mlx":
        return _mlx(weights)
    from .backends.amx import extra_buffers_work
    from .backends.llamacpp import LlamaCpp, LlamaCppOptions
    from .backends.trial import ensure_harmless

    ensure_harmless(weights.model, weights.adapter)
    told = LlamaCppOptions(
        threads=options.threads,
        cpu_moe=_layers_in_ram(options.cpu_moe, weights.model, options.memory_gb),
        extra_bufts=extra_buffers_work(weights.model),
    )
    return LlamaCpp(weights.model, told, weights.adapter, weights.name)


def _kind(wanted: BackendChoice, model: Path) -> Literal["llamacpp", "mlx"]:
    found: Literal["llamacpp", "mlx"] = "mlx" if model.is_dir() else "llamacpp"
    if wanted not in ("auto", found):
        raise InputError(f"cannot be run by the backend {wanted}", where=str(model), hint=_HINTS[wanted])
    return found


def _mlx(weights: Weights) -> TokenBackend:
    from .backends.mlx_library import need_mlx
    from .backends.mlxlm import MlxLm
    from .backends.trial import ensure_harmless

    refuse_adapter(weights.adapter)
    need_mlx()  # before a child fails for want of it
    ensure_harmless(weights.model)
    return MlxLm(weights.model, weights.name)


def _layers_in_ram(wanted: int | None, model: Path, cache_gb: float) -> int:
    """`--cpu-moe`: a number as given; None ("auto") as many layers' experts as the GPU has no room for."""
    if wanted is not None:
        return wanted
    from .expert_layers import expert_layers_in_ram

    return expert_layers_in_ram(model, cache_gb)
