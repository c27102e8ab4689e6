"""Peak memory of a training run by part, from a recipe and a model's sizes alone. Arithmetic: no torch, no device.

Everything is bytes. What is arithmetic and what is a supposition (CUDA's own share) is told part by part.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from aipsy_judge.errors import InputError

from .activation_bytes import SUMS, Work, carried, kept_by_layer, loss_bytes, passing
from .model_sizes import Sizes
from .recipe import Recipe

# NF4 in blocks of 64 with scales of 8 bits in blocks of 256: see nf4_packing. 4 bytes a matrix come on top.
NF4 = 1 / 2 + 1 / 64 + 4 / (64 * 256)
# CUDA's context, cuBLAS' workspace and the allocator's unused pieces. Supposed, from reports; no card has been asked.
CUDA_SHARE = int(0.9 * 2**30)
# What Python, torch and CUDA's libraries take of the machine's memory beside staged experts. Supposed.
HOST_SHARE = 4_000_000_000
STAGED = 2  # layers held on the device for staging

QUANTISED = ("experts", "attention", "dense MLP")


@dataclass(frozen=True)
class Part:
    """Bytes of one part, and how they come about in a few words."""

    name: str
    bytes: int
    how: str


@dataclass(frozen=True)
class Prediction:
    """Bytes by part. `staged` layers' experts wait in the machine's memory.

    resident   on the device throughout
    training   on top of it at the peak of a training step
    judging    on top of it instead while the validation part is judged
    """

    resident: tuple[Part, ...]
    training: tuple[Part, ...]
    judging: tuple[Part, ...]
    host: tuple[Part, ...]
    staged: int
    device_budget: int
    host_budget: int

    @property
    def peak(self) -> int:
        """Bytes on the device at the peak."""
        return total(self.resident) + max(total(self.training), total(self.judging))

    @property
    def on_host(self) -> int:
        """Bytes in the machine's memory."""
        return total(self.host)

    @property
    def missing(self) -> int:
        """Bytes by which a budget is exceeded, the greater of the two; negative is room."""
        return max(self.peak - self.device_budget, self.on_host - self.host_budget)

    @property
    def fits(self) -> bool:
        """Whether both budgets hold."""
        return self.missing <= 0


def total(parts: Iterable[Part]) -> int:
    """Bytes of all parts."""
    return sum(part.bytes for part in parts)


def predict(recipe: Recipe, sizes: Sizes, *, cuda_share: int = CUDA_SHARE) -> Prediction:
    """The prediction with as few layers' experts in the machine's memory as fit, or all where nothing fits.

    InputError where the recipe adapts routed experts that it also wants in 4 bits.
    """
    if recipe.lora.experts and recipe.memory.base_bits == 4 and sizes.experts:
        raise InputError(
            "routed experts in 4 bits cannot be adapted",
            where="lora.experts",
            hint="Set lora.experts: false or memory.base_bits: 16.",
        )
    stageable = len(sizes.layers) if recipe.memory.base_bits == 4 and sizes.experts else 0
    # One or two layers on the host save nothing: their staging buffers take as much.
    counts = [0, *range(STAGED + 1, stageable + 1)]
    made = (_prediction(recipe, sizes, staged, cuda_share) for staged in counts)
    found = None
    for found in made:
        if found.peak <= found.device_budget:
            break
    assert found is not None
    return found


def need(recipe: Recipe, sizes: Sizes, *, cuda_share: int = CUDA_SHARE) -> int:
    """Bytes that the device would have to have for everything to lie on it."""
    return _prediction(recipe, sizes, 0, cuda_share).peak


def _prediction(recipe: Recipe, sizes: Sizes, staged: int, cuda_share: int) -> Prediction:
    resident = [*_weights(recipe, sizes, staged), *_adapter(recipe, sizes)]
    if cuda_share:
        resident.append(Part("CUDA itself", cuda_share, "context, cuBLAS, unused pieces: supposed"))
    waiting = staged * layer_experts(recipe, sizes)
    host = [Part("programs and libraries", HOST_SHARE, "supposed")]
    if staged:
        host.append(Part("experts", waiting, f"of {staged} layers, pinned"))
    return Prediction(
        resident=tuple(part for part in resident if part.bytes),
        training=tuple(_activations(recipe, sizes)),
        judging=tuple(_judging(recipe, sizes)),
        host=tuple(host),
        staged=staged,
        device_budget=int(recipe.memory.device_gb * 1e9),
        host_budget=int(recipe.memory.host_gb * 1e9),
    )


def width(recipe: Recipe) -> int:
    """Bytes of an unquantised weight and of an activation."""
    return {"bf16": 2, "fp32": 4}[recipe.train.precision]


def layer_experts(recipe: Recipe, sizes: Sizes) -> int:
    """Bytes of one layer's routed experts."""
    parameters = sizes.experts * 3 * sizes.hidden * sizes.expert_inner
    if recipe.memory.base_bits == 4:
        return int(parameters * NF4) + 2 * 4 * sizes.experts
    return parameters * width(recipe)


def _weights(recipe: Recipe, sizes: Sizes, staged: int) -> Iterator[Part]:
    resident = len(sizes.layers) - staged
    for name, parameters in sizes.parameters.items():
        if name == "experts":
            where = f"of {resident} layers of {len(sizes.layers)}" if staged else "of all layers"
            how = f"{_kind(recipe, name)}, {where}"
            yield Part(f"weights: {name}", resident * layer_experts(recipe, sizes), how)
        elif name != "vision":  # only the text model is loaded
            how = f"{_kind(recipe, name)}, {parameters:,} parameters"
            yield Part(f"weights: {name}", _bytes(recipe, name, parameters), how)
    if staged:
        both = min(STAGED, staged)
        yield Part("staged experts", both * layer_experts(recipe, sizes), f"{both} layers on their way")


def _kind(recipe: Recipe, name: str) -> str:
    return "NF4" if recipe.memory.base_bits == 4 and name in QUANTISED else recipe.train.precision


def _bytes(recipe: Recipe, name: str, parameters: int) -> int:
    return int(parameters * (NF4 if _kind(recipe, name) == "NF4" else width(recipe)))


def trainable(recipe: Recipe, sizes: Sizes) -> int:
    """Parameters of the adapter."""
    rank = recipe.lora.rank
    dense = sum(rank * (inputs + outputs) for _, inputs, outputs in _adapted(recipe, sizes))
    if not recipe.lora.experts:
        return dense
    gate_up, down = 2 * sizes.expert_inner + sizes.hidden, sizes.hidden + sizes.expert_inner
    return dense + len(sizes.layers) * sizes.experts * recipe.lora.expert_rank * (gate_up + down)


def _adapted(recipe: Recipe, sizes: Sizes) -> Iterator[tuple[str, int, int]]:
    """(name, inputs, outputs) of the linear layers that the recipe adapts."""
    wanted = None if recipe.lora.modules == "default" else re.compile(recipe.lora.modules)
    for index, layer in enumerate(sizes.layers):
        groups = (("self_attn", sizes.attention(layer)), ("mlp", sizes.mlp))
        for group, projections in groups:
            for projection, (inputs, outputs) in projections.items():
                name = f"layers.{index}.{group}.{projection}"
                full = (f"model.{name}", f"model.language_model.{name}")
                if wanted is None or any(wanted.fullmatch(n) for n in full):
                    yield name, inputs, outputs


def _adapter(recipe: Recipe, sizes: Sizes) -> Iterator[Part]:
    count = trainable(recipe, sizes)
    each = {"adamw": 8, "paged_adamw_8bit": 2}[recipe.train.optimiser]
    how = f"{count:,} parameters in float32"
    yield Part("adapter", SUMS * count, how)
    yield Part("adapter: gradients", SUMS * count, "float32")
    # 8-bit states come with a float32 scale for each of their two blocks of 256.
    states = int(count * (each + (2 * 4 / 256 if each == 2 else 0)))
    yield Part("adapter: optimiser", states, f"{recipe.train.optimiser}, {each} bytes a parameter")


def work_of(recipe: Recipe) -> Work:
    """The longest batch that the recipe allows."""
    return Work(
        tokens=max(recipe.render.max_tokens, recipe.train.joined_tokens or 0),
        rows=recipe.train.batch,
        width=width(recipe),
        rank=recipe.lora.rank,
        four_bit=recipe.memory.base_bits == 4,
        expert_adapters=recipe.lora.experts,
    )


def _activations(recipe: Recipe, sizes: Sizes) -> Iterator[Part]:
    work = work_of(recipe)
    layers = [sum(kept_by_layer(sizes, layer, work).values()) for layer in sizes.layers]
    rows = f"{work.rows} x {work.tokens:,} tokens"
    if recipe.train.checkpointing:
        entries = len(layers) * work.total * work.width * sizes.hidden
        yield Part("checkpoints", entries, f"what enters each layer, {rows}")
        at_work, how = max(layers) + passing(sizes, work), "the largest layer computed again, and its gradients"
    else:
        yield Part("activations", sum(layers), f"of all layers, {rows}")
        at_work, how = passing(sizes, work), "gradients on their way"
    yield Part("masks and last states", carried(sizes, work), "alive from the first layer to the last")
    loss = loss_bytes(sizes, work, recipe.train.loss)
    if loss > at_work:
        at_work, how = loss, "logits and their gradient; more than any layer needs"
    yield Part("at work", at_work, how)


def _judging(recipe: Recipe, sizes: Sizes) -> Iterator[Part]:
    """A prompt with its branches in the engine's cache, and one layer at work on all of it."""
    if recipe.validation.every is None:
        return
    work = replace(work_of(recipe), tokens=recipe.render.max_tokens, rows=1)
    cells = sum(2 * layer.key for layer in sizes.layers) * work.width * work.tokens
    yield Part("cache", cells, f"keys and values of {work.tokens:,} cells")
    kernel = max(kept_by_layer(sizes, layer, work)["attention kernel"] for layer in sizes.layers)
    yield Part("a layer at work", kernel + passing(sizes, work), "forward alone")
