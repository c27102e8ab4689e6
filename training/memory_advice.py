"""Which settings would make a run fit, or what there is room for: each by how much."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from aipsy_judge.errors import InputError

from .memory_parts import Prediction, need, predict
from .model_sizes import Sizes
from .recipe import Recipe

STEP = 256  # tokens; lengths are advised in such steps
MOST_TOKENS = 262_144
MOST_ROWS = 1024


@dataclass(frozen=True)
class Advice:
    """One setting changed: bytes more (or, negative, fewer) on the device, and how the run then stands."""

    setting: str
    value: object
    bytes: int
    then: Prediction


def to_save(recipe: Recipe, sizes: Sizes) -> list[Advice]:
    """Settings that take less memory, most saving first."""
    changes: list[tuple[str, object]] = []
    if recipe.memory.base_bits == 16 and sizes.kind == "gemma4" and not recipe.lora.experts:
        changes.append(("memory.base_bits", 4))
    if not recipe.train.checkpointing:
        changes.append(("train.checkpointing", True))
    if recipe.train.batch > 1:
        changes.append(("train.batch", 1))
    if recipe.train.precision == "fp32":
        changes.append(("train.precision", "bf16"))
    if recipe.train.loss == "plain":
        changes.append(("train.loss", "chunked"))
    if recipe.lora.experts:
        changes.append(("lora.experts", False))
    if recipe.train.optimiser == "adamw":
        changes.append(("train.optimiser", "paged_adamw_8bit"))
    if recipe.lora.rank > 1:
        changes.append(("lora.rank", recipe.lora.rank // 2))
    changes.append(("render.max_tokens", _shorter(recipe, sizes)))
    advices = [made for setting, value in changes if (made := _advice(recipe, sizes, setting, value)) is not None]
    return sorted((a for a in advices if a.bytes < 0), key=lambda a: a.bytes)


def with_room(recipe: Recipe, sizes: Sizes) -> list[Advice]:
    """Settings that take more memory and still fit: the most of each."""
    changes = [
        ("render.max_tokens", _most(recipe, sizes, "render.max_tokens", STEP, MOST_TOKENS)),
        ("train.batch", _most(recipe, sizes, "train.batch", 1, MOST_ROWS)),
        ("memory.base_bits", 16),
        ("train.checkpointing", False),
        ("lora.experts", bool(sizes.experts)),
    ]
    advices = [made for setting, value in changes if (made := _advice(recipe, sizes, setting, value)) is not None]
    return [a for a in advices if a.bytes > 0 and a.then.fits]


def changed(recipe: Recipe, setting: str, value: object) -> Recipe:
    """The recipe with one key of a section changed."""
    section, key = setting.split(".")
    inner = getattr(recipe, section).model_copy(update={key: value})
    return recipe.model_copy(update={section: inner})


def _advice(recipe: Recipe, sizes: Sizes, setting: str, value: object) -> Advice | None:
    other = changed(recipe, setting, value)
    try:
        return Advice(setting, value, need(other, sizes) - need(recipe, sizes), predict(other, sizes))
    except InputError:  # the two settings exclude each other
        return None


def _shorter(recipe: Recipe, sizes: Sizes) -> int:
    """The longest rows that fit, or half of what is asked where any do or none does."""
    half = max(16, recipe.render.max_tokens // 2)
    if predict(recipe, sizes).fits:
        return half
    return _most(recipe, sizes, "render.max_tokens", STEP, recipe.render.max_tokens) or half


def _most(recipe: Recipe, sizes: Sizes, setting: str, step: int, limit: int) -> int:
    """The greatest multiple of `step` up to `limit` that fits, 0 where none does."""

    def fits(count: int) -> bool:
        return predict(changed(recipe, setting, count * step), sizes).fits

    return _last(fits, limit // step) * step


def _last(holds: Callable[[int], bool], limit: int) -> int:
    """The last of 1..limit for which `holds`, which holds up to some number and not beyond; 0 where for none."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low


def as_data(advices: list[Advice]) -> Iterator[dict[str, Any]]:
    """The advices as plain data."""
    for advice in advices:
        yield {
            "setting": advice.setting,
            "value": advice.value,
            "bytes": advice.bytes,
            "fits": advice.then.fits,
            "layers_on_host": advice.then.staged,
        }
