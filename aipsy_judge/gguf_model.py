"""Can this file be a model? Looked at before the library sees it: what llama.cpp takes for granted ends the process
where it is not so, and what it only warns of makes another judge.

Source: llama.cpp as of llama-cpp-python 0.3.36, llama-model.cpp (load_hparams), llama-vocab.cpp (load).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from .chat_template import template_fault
from .errors import WeightsError
from .gguf_header import GgufHeader, read_gguf_header
from .gguf_vocabulary import check_vocabulary

MAX_LAYERS, MAX_EXPERTS = 512, 1024  # LLAMA_MAX_LAYERS, LLAMA_MAX_EXPERTS
_SCALINGS = ("none", "linear", "yarn", "longrope")
# ggml types that are no weights: integers and 64-bit floats, on which the library's arithmetic ends the process
_NO_WEIGHTS = frozenset({24, 25, 26, 27, 28})
_F32 = 0
_BLOCK = re.compile(r"blk\.(\d+)\.")


def check_model(path: Path) -> GgufHeader:
    """The header of a file that can be loaded as a model. Raises WeightsError with the reason if it is none."""
    try:
        stat = path.stat()
    except OSError as error:
        raise WeightsError(f"cannot be read: {error.strerror or error}", where=str(path)) from error
    return _checked(path, stat.st_size, stat.st_mtime_ns, stat.st_ino)


@lru_cache(maxsize=8)
def _checked(path: Path, size: int, changed: int, inode: int) -> GgufHeader:
    header = read_gguf_header(path)
    for check in (_kind, _numbers, _heads, _experts, _tensors):
        fault = check(header)
        if fault is not None:
            raise WeightsError(fault, where=str(path))
    fault = check_vocabulary(path, header) or template_fault(header.metadata.get("tokenizer.chat_template"))
    if fault is not None:
        raise WeightsError(fault, where=str(path))
    return header


def _kind(header: GgufHeader) -> str | None:
    meta = header.metadata
    kind, arch = meta.get("general.type", "model"), meta.get("general.architecture")
    parts = meta.get("split.count", 0)
    checks: list[tuple[Callable[[], bool], str]] = [
        (lambda: kind == "model", f"this file is of type {kind!r}, not a model"),
        (lambda: isinstance(arch, str) and arch != "", "the file names no architecture"),
        (lambda: bool(header.tensors), "the file holds a vocabulary only, no weights"),
        (lambda: header.lengths.get("tokenizer.ggml.tokens", 0) > 0, "the file holds no vocabulary"),
        (lambda: parts in (0, 1), f"one of {parts} parts of a file; llama-gguf-split --merge joins them"),
    ]
    return next((message for passes, message in checks if not passes()), None)


def _of(header: GgufHeader, key: str) -> Any:
    return header.metadata.get(f"{header.metadata['general.architecture']}.{key}")


def _numbers(header: GgufHeader) -> str | None:
    """Sizes that the library takes for granted."""
    bounds = {"block_count": MAX_LAYERS, "embedding_length": 2**20, "context_length": 2**31 - 1}
    for key, most in bounds.items():
        value = _of(header, key)
        if not _is_count(value) or not 1 <= value <= most:
            return f"{key} is {_shown(value)}; a whole number from 1 to {most} is wanted"
    layers = _of(header, "block_count")
    ahead = _of(header, "nextn_predict_layers") or 0
    if not _is_count(ahead) or ahead >= layers:
        return f"nextn_predict_layers is {_shown(ahead)} of {layers} layers"
    for key in ("attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon", "rope.freq_base"):
        value = _of(header, key)
        if value is not None and not (isinstance(value, float) and value > 0):
            return f"{key} is {_shown(value)}; a number above 0 is wanted"
    scaling = _of(header, "rope.scaling.type")
    if scaling is not None and scaling not in _SCALINGS:
        return f"rope.scaling.type is {_shown(scaling)}; known are {', '.join(_SCALINGS)}"
    return None


def _heads(header: GgufHeader) -> str | None:
    """As many heads as layers, some in each model, keys and values shared by whole groups of them."""
    layers = _of(header, "block_count")
    heads = _per_layer(header, "attention.head_count", layers)
    if heads is None or not any(heads):
        return f"attention.head_count is {_shown(_of(header, 'attention.head_count'))}: no heads"
    shared = heads
    if f"{header.metadata['general.architecture']}.attention.head_count_kv" in (*header.kinds, *header.arrays):
        found = _per_layer(header, "attention.head_count_kv", layers)
        if found is None or not any(found):
            return f"attention.head_count_kv is {_shown(_of(header, 'attention.head_count_kv'))}: no heads"
        shared = found
    for layer, (query, key) in enumerate(zip(heads, shared, strict=True)):
        if key and query % key:
            return f"layer {layer} has {query} heads on {key} key heads, which is no whole number each"
    if _of(header, "attention.key_length") is None and any(h and _of(header, "embedding_length") % h for h in heads):
        return f"{_of(header, 'embedding_length')} dimensions do not divide into {max(heads)} heads"
    return None


def _per_layer(header: GgufHeader, key: str, layers: int) -> list[int] | None:
    value = _of(header, key)
    found = value if isinstance(value, list) else [value] * layers
    good = len(found) == layers and all(_is_count(x) and x <= 2**16 for x in found)
    return found if good else None


def _experts(header: GgufHeader) -> str | None:
    count, used = _of(header, "expert_count") or 0, _of(header, "expert_used_count") or 0
    most = max(used, default=0) if isinstance(used, list) else used
    if not _is_count(count) or not _is_count(most) or count > MAX_EXPERTS:
        return f"expert_count is {_shown(count)}, expert_used_count {_shown(used)}"
    if most > count or (most > 0) != (count > 0):
        return f"{most} of {count} experts are to be used"
    groups = _of(header, "expert_group_count") or 0
    if not _is_count(groups) or (groups and (groups >= count or count % groups)):
        return f"{_shown(groups)} groups of {count} experts"
    return None


def _tensors(header: GgufHeader) -> str | None:
    """Types that can be calculated with; every layer there, none beyond; the embedding as large as the vocabulary."""
    layers, found = _of(header, "block_count"), set()
    for tensor in header.tensors:
        if tensor.kind in _NO_WEIGHTS:
            return f"the tensor {tensor.name!r} is of type {tensor.kind}, which no weights are"
        if len(tensor.shape) == 1 and tensor.kind != _F32:
            return f"the tensor {tensor.name!r} has one axis and is of type {tensor.kind}; such are kept at 32 bits"
        match = _BLOCK.match(tensor.name)
        if match:
            found.add(int(match[1]))
    missing = next((n for n in range(layers) if n not in found), None)
    if missing is not None:
        return f"layer {missing} of {layers} has no tensors"
    if len(found) > layers:
        return f"tensors of layer {max(found)}, of {layers} layers"
    return _embedding(header)


def _embedding(header: GgufHeader) -> str | None:
    shapes, tokens = header.shapes(), header.lengths["tokenizer.ggml.tokens"]
    wanted = (_of(header, "embedding_length"), tokens)
    if "token_embd.weight" not in shapes:
        return "the file holds no embedding (token_embd.weight)"
    for name in ("token_embd.weight", "output.weight"):
        if name in shapes and shapes[name] != wanted:
            return f"{name} has the shape {shapes[name]}; embedding and vocabulary want {wanted}"
    return None


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _shown(value: Any) -> str:
    text = "missing" if value is None else repr(value)
    return text if len(text) <= 80 else text[:80] + "..."
