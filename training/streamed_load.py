"""Gemma 4's text model with a 4-bit base, read tensor by tensor: never more than one tensor in 16 bits at a time.

Loading it whole first would take 48 GiB. Attention and dense MLP become bitsandbytes' NF4 layers, routed experts
NF4Experts, each read and quantised expert by expert; embedding, router and norms keep their type. Every tensor of the
checkpoint is used or known to belong to another tower, none of the model's is missing, or loading is an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import bitsandbytes
import torch
from safetensors import safe_open
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, Gemma4Config, Gemma4TextConfig

from aipsy_judge.errors import WeightsError

from .host_layers import host_order, put_on_host
from .nf4_experts import NF4Experts
from .nf4_packing import BLOCK, Layout, Stack, pack_expert
from .towers import OTHER_TOWERS

bnb: Any = bitsandbytes.nn

LINEAR = re.compile(r"model\.layers\.\d+\.(self_attn\.[qkvo]_proj|mlp\.(gate|up|down)_proj)")
EXPERTS = re.compile(r"(model\.layers\.(\d+)\.experts)\.(gate_up|down)_proj")


@dataclass
class _Loading:
    """A load under way: what must still come, and where it goes."""

    model: nn.Module
    device: torch.device
    dtype: torch.dtype
    missing: set[str]
    unknown: list[str] = field(default_factory=list)


class StoredTensor(Protocol):
    """A tensor that is read when asked for, whole (`[:]`) or one entry of its first axis: safetensors' slices."""

    def get_shape(self) -> list[int]: ...

    def __getitem__(self, index: Any, /) -> Tensor: ...


def load_four_bit(
    folder: Path, device: torch.device, *, on_host: int = 0, dtype: torch.dtype = torch.bfloat16
) -> nn.Module:
    """`Gemma4ForCausalLM` of the checkpoint in `folder`, frozen, 4-bit, on `device`; its `is_loaded_in_4bit` is set.

    The experts of `on_host` layers stay in the machine's memory (see host_layers). WeightsError on anything missing,
    unknown, of another shape, or of another architecture.
    """
    return fill_four_bit(_text_config(folder), _stored(folder), device, on_host=on_host, dtype=dtype, where=str(folder))


def fill_four_bit(
    config: Gemma4TextConfig,
    tensors: Iterable[tuple[str, StoredTensor]],
    device: torch.device,
    *,
    on_host: int,
    dtype: torch.dtype,
    where: str,
) -> nn.Module:
    """The same from named tensors, in any order, wherever they come from."""
    model = _empty(config, dtype)
    required = {name for name in model.state_dict() if name != "lm_head.weight"}
    _four_bit_modules(model, device, frozenset(host_order(config.num_hidden_layers)[:on_host]))
    load = _Loading(model, device, dtype, required)
    for name, stored in tensors:
        _take(name, stored, load, where)
    _check(where, load)
    model.lm_head.weight = model.model.embed_tokens.weight  # type: ignore[union-attr]
    put_on_host(model, on_host, device)
    model.requires_grad_(False)
    model.is_loaded_in_4bit = True  # type: ignore[assignment]  # what peft and trl ask for
    return model


def _text_config(folder: Path) -> Gemma4TextConfig:
    found = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    kind = found.get("model_type")
    if kind not in ("gemma4", "gemma4_text"):
        raise WeightsError(
            f"a 4-bit base is made for gemma4 only, this is {kind!r}",
            where=str(folder / "config.json"),
            hint="Use memory.base_bits: 16 for other models.",
        )
    config: Any = Gemma4Config(**found).text_config if kind == "gemma4" else Gemma4TextConfig(**found)
    if not config.tie_word_embeddings:
        raise WeightsError("an output head apart from the embedding is not supported in 4 bits", where=str(folder))
    return config  # type: ignore[no-any-return]


def _empty(config: Gemma4TextConfig, dtype: torch.dtype) -> nn.Module:
    """The model without memory, but for what no checkpoint holds: rotary frequencies and the embedding's scale."""
    with torch.device("meta"):
        make: Any = AutoModelForCausalLM.from_config
        model: nn.Module = make(config, dtype=dtype, attn_implementation="sdpa")
    inner: Any = model.model
    inner.rotary_emb = type(inner.rotary_emb)(config)
    inner.embed_tokens.embed_scale = torch.tensor(inner.embed_tokens.scalar_embed_scale)
    return model


def _four_bit_modules(model: nn.Module, device: torch.device, waiting: frozenset[int]) -> None:
    """Put the 4-bit modules in place, experts with their memory taken."""
    for name, module in list(model.named_modules()):
        if LINEAR.fullmatch(name):
            model.set_submodule(name, _four_bit_linear(name, module))
        elif name.endswith(".experts"):
            layer = int(name.split(".")[2])
            model.set_submodule(name, _four_bit_experts(module, torch.device("cpu") if layer in waiting else device))


def _four_bit_linear(name: str, module: nn.Module) -> nn.Module:
    assert isinstance(module, nn.Linear)
    if module.in_features % BLOCK:
        # bitsandbytes 0.50.2's CPU kernel reads wrong scales where a block runs over a row's end.
        raise WeightsError(
            f"{name} has rows of {module.in_features}, no multiple of {BLOCK}: cannot be held in 4 bits",
            hint="Use memory.base_bits: 16 for this model.",
        )
    made = bnb.Linear4bit(
        module.in_features,
        module.out_features,
        bias=False,
        compute_dtype=module.weight.dtype,
        compress_statistics=True,
        quant_type="nf4",
        device="meta",
    )
    # On some CPUs a forward pass without gradients repacks the weight into a form that later ones give none through.
    made.support_avx512bf16_for_cpu = False
    return made  # type: ignore[no-any-return]


def _four_bit_experts(module: Any, device: torch.device) -> NF4Experts:
    layout = Layout(Stack(*module.gate_up_proj.shape), Stack(*module.down_proj.shape))
    return NF4Experts(layout, module.act_fn, torch.zeros(layout.bytes, dtype=torch.uint8, device=device))


def _shards(folder: Path) -> list[Path]:
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        names = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
        shards = [folder / name for name in names]
    else:
        shards = sorted(folder.glob("*.safetensors"))
    for shard in shards:
        if not shard.is_file():
            raise WeightsError("a file that the index names is missing", where=str(shard))
    if not shards:
        raise WeightsError("no *.safetensors in here", where=str(folder))
    return shards


def _stored(folder: Path) -> Iterator[tuple[str, StoredTensor]]:
    for shard in _shards(folder):
        with safe_open(shard, framework="pt", device="cpu") as file:
            for name in file.keys():  # noqa: SIM118  # not a mapping
                yield name, file.get_slice(name)


def _take(stored_name: str, stored: StoredTensor, load: _Loading, where: str) -> None:
    name = _local_name(stored_name)
    if name is None:
        return
    if name not in load.missing:
        load.unknown.append(stored_name)
        return
    try:
        _place(name, stored, load)
    except WeightsError as error:
        raise WeightsError(f"{stored_name}: {error.message}", where=where, hint=error.hint) from error
    load.missing.discard(name)


def _local_name(stored: str) -> str | None:
    """A stored tensor's name in the text model; None for what it does not have (other towers, the tied head)."""
    if stored.startswith(OTHER_TOWERS) or stored == "lm_head.weight":
        return None
    return re.sub(r"^model\.language_model\.", "model.", stored)


def _place(name: str, stored: StoredTensor, load: _Loading) -> None:
    experts = EXPERTS.fullmatch(name)
    if experts is not None:
        _place_experts(load, experts.group(1), experts.group(3), stored)
        return
    owner_name, _, own = name.rpartition(".")
    owner = load.model.get_submodule(owner_name)
    # A copy: what is read is a view, which would keep all of its file in memory.
    value = stored[:].to(load.dtype, copy=True)
    expected = getattr(owner, own).shape
    if value.shape != expected:
        raise WeightsError(f"is {tuple(value.shape)}, not {tuple(expected)}")
    if LINEAR.fullmatch(owner_name):
        _place_linear(owner, value, load.device)
    elif own in owner._buffers:
        owner._buffers[own] = value.to(load.device)
    else:
        setattr(owner, own, nn.Parameter(value.to(load.device), requires_grad=False))


def _place_linear(owner: Any, value: Tensor, device: torch.device) -> None:
    weight = bnb.Params4bit(
        value, requires_grad=False, compress_statistics=True, quant_type="nf4", blocksize=BLOCK, module=owner
    )
    owner.weight = weight.to(device)


def _place_experts(load: _Loading, owner: str, projection: str, stored: StoredTensor) -> None:
    experts = load.model.get_submodule(owner)
    assert isinstance(experts, NF4Experts)
    expected: Stack = getattr(experts.layout, projection)
    if list(stored.get_shape()) != [expected.experts, expected.rows, expected.columns]:
        raise WeightsError(f"is {stored.get_shape()}, not {[expected.experts, expected.rows, expected.columns]}")
    for expert in range(expected.experts):
        # Not named: the next is read when this one is gone.
        pack_expert(experts.layout, experts.packed, projection, expert, stored[expert].to(load.device, load.dtype))


def _check(where: str, load: _Loading) -> None:
    for what, names in (("missing", sorted(load.missing)), ("unknown", load.unknown)):
        if names:
            raise WeightsError(
                f"{len(names)} tensors are {what}, the first: {', '.join(names[:3])}",
                where=where,
                hint="The folder must hold one whole Gemma 4 checkpoint of this config.json.",
            )
    inner: Any = load.model.model
    inner.rotary_emb.to(load.device)
    inner.embed_tokens.embed_scale = inner.embed_tokens.embed_scale.to(load.device)
    empty = [name for name, tensor in _all_tensors(load.model) if tensor.is_meta and name != "lm_head.weight"]
    if empty:
        raise WeightsError(f"{', '.join(empty[:3])} would have no values", where=where)


def _all_tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    yield from model.named_parameters()
    yield from model.named_buffers()
