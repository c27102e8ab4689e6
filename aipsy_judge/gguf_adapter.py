"""Can this file be worn as an adapter by that base, and does it do anything?

Source: llama.cpp as of llama-cpp-python 0.3.36, llama-adapter.cpp, which ends the process over values of another type
than it expects, passes over norms, and takes an alpha of 0 to mean "no scaling".
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .errors import WeightsError
from .gguf_header import FLOAT32, STRING, GgufHeader, TensorInfo, read_gguf_header

_FLOATS = {0: "<f4", 1: "<f2", 30: "<u2"}  # F32, F16, BF16 (as its bits)
_Q8_0, _Q8_0_BYTES = 8, 34
_Shape = tuple[int, ...]


def check_adapter(path: Path, base: GgufHeader) -> GgufHeader:
    """The header of a LoRA adapter that fits the base and changes something. Raises WeightsError with the reason."""
    header = read_gguf_header(path)
    fault = _kind(header, base) or _tensors(header, base) or _values(path, header)
    if fault is not None:
        raise WeightsError(fault, where=str(path))
    return header


def _kind(header: GgufHeader, base: GgufHeader) -> str | None:
    meta, kinds = header.metadata, header.kinds
    kind = (meta.get("general.type"), meta.get("adapter.type"))
    if kind != ("adapter", "lora"):
        return f"not a LoRA adapter (general.type {kind[0]!r}, adapter.type {kind[1]!r})"
    mine, theirs = meta.get("general.architecture"), base.metadata.get("general.architecture")
    if mine != theirs or kinds.get("general.architecture") != STRING:
        return f"an adapter for the architecture {mine!r}; the base is {theirs!r}"
    alpha = meta.get("adapter.lora.alpha")
    if kinds.get("adapter.lora.alpha") != FLOAT32 or alpha is None or not alpha > 0:
        return f"adapter.lora.alpha is {alpha!r}; a number above 0 is wanted"
    return None if header.tensors else "the adapter holds no tensors"


def _tensors(header: GgufHeader, base: GgufHeader) -> str | None:
    """Both halves of each change, of one rank, fitting what they change."""
    known, halves = base.shapes(), header.shapes()
    for tensor in header.tensors:
        target, _, half = tensor.name.rpartition(".")
        if half not in ("lora_a", "lora_b"):
            return f"the adapter holds the tensor {tensor.name!r}, which the library would pass over or refuse"
        if target not in known:
            return f"the adapter changes {target!r}, which the base does not have"
        if f"{target}.lora_a" not in halves or f"{target}.lora_b" not in halves:
            return f"one half of the change of {target!r} is missing"
        if tensor.kind not in _FLOATS and tensor.kind != _Q8_0:
            return f"the tensor {tensor.name!r} is of type {tensor.kind}; F32, F16, BF16 or Q8_0 are read"
        fault = _shapes(target, halves[f"{target}.lora_a"], halves[f"{target}.lora_b"], known[target])
        if fault is not None:
            return fault
    return None


def _shapes(target: str, a: _Shape, b: _Shape, base: _Shape) -> str | None:
    if min(len(a), len(b), len(base)) < 2:
        return f"the change of {target!r} is no matrix: {a} and {b} on {base}"
    rank = a[1]
    fits = a[0] == base[0] and b[1] == base[1] and b[0] == rank
    if target == "token_embd.weight":  # looked up, not multiplied: its halves stand the other way round
        rank = a[0]
        fits = a[1] == base[1] and b[1] == base[0] and b[0] == rank
    if not fits or a[2:] != base[2:] or b[2:] != base[2:]:
        return f"the change of {target!r} does not fit: {a} and {b} on {base}"
    if rank > min(base[:2]):
        return f"the change of {target!r} has rank {rank}, more than its base of {base}"
    return None


def _values(path: Path, header: GgufHeader) -> str | None:
    """Numbers only, and not nothing: an adapter of zeros is a judge that nobody trained."""
    acts: dict[str, int] = {}
    for tensor in header.tensors:
        values = _read(path, tensor)
        if not np.isfinite(values).all():
            return f"the tensor {tensor.name!r} holds what is no number"
        acts[tensor.name.rpartition(".")[0]] = acts.get(tensor.name.rpartition(".")[0], 0) + bool(values.any())
    return None if 2 in acts.values() else "the adapter changes nothing: one half of every change is zero"


def _read(path: Path, tensor: TensorInfo) -> NDArray[np.float32]:
    """The values; of Q8_0 the scales, which are zero where the values are."""
    with path.open("rb") as file:
        file.seek(tensor.start)
        data = file.read(tensor.size_bytes)
    if tensor.kind == _Q8_0:
        blocks = np.frombuffer(data, dtype=np.uint8).reshape(-1, _Q8_0_BYTES)
        scales = blocks[:, :2].copy().view("<f2").astype(np.float32).ravel()
        # a scale without values to scale is nothing
        return np.where(blocks[:, 2:].any(axis=1) | ~np.isfinite(scales), scales, np.float32(0))
    raw = np.frombuffer(data, dtype=_FLOATS[tensor.kind])
    if tensor.kind == 30:
        return (raw.astype(np.uint32) << 16).view(np.float32)
    return raw.astype(np.float32)
