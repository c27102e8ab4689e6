"""Which stored tensor each pair of an adapter changes, and the change itself, a slice at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations

import torch

from aipsy_judge.errors import WeightsError
from aipsy_judge.safetensors_file import Stored

from .checkpoint import Checkpoint
from .lora import Adapter, Pair
from .stored import read_bytes

TORCH_TYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
# The same weights under the name of the text model alone and of the model with a vision tower around it.
_ALIASES = (("model.", "model.language_model."), ("model.language_model.", "model."), ("", "language_model."))
# Stacked experts are stored (expert, out, in) by these; where a tensor is square only the model type can tell.
_OUT_IN = ("gemma4",)
_WRAPPER = ".base_layer"


@dataclass(frozen=True, slots=True)
class Change:
    """`tensor` of shape (out, in) or (experts, out, in) changes by scale * B @ A, per expert."""

    tensor: Stored
    pair: Pair
    scale: float
    rank: int

    @property
    def experts(self) -> int:
        return self.tensor.shape[0] if len(self.tensor.shape) == 3 else 1


@dataclass(frozen=True, slots=True)
class Matrices:
    """The factors of a change at 32 bits: `a` (experts, rank, in), `b` (experts, out, rank); scale is not in them."""

    a: torch.Tensor
    b: torch.Tensor
    scale: float

    def rows(self, expert: int, begin: int, end: int) -> torch.Tensor:
        """Rows [begin, end) of one expert's change, (end - begin, in), float32."""
        return (self.b[expert, begin:end] @ self.a[expert]) * self.scale


def plan(base: Checkpoint, adapter: Adapter) -> dict[str, Change]:
    """The change of every tensor that changes, by the tensor's name in the base. Every pair is used, once.

    Raises WeightsError for a pair that fits nothing, fits two things, or has another shape or rank than it must; and
    where pairs are missing.
    """
    tensors = base.tensors
    changes: dict[str, Change] = {}
    stacks: dict[str, list[Pair]] = {}
    for pair in adapter.pairs:
        tensor = _weight_of(pair, tensors)
        if tensor is None:
            stacks.setdefault(_unwrapped(pair.module), []).append(pair)
        else:
            _add(changes, _plain(pair, tensor, adapter))
    for module, pairs in stacks.items():
        for change in _stacked(module, pairs, base, adapter):
            _add(changes, change)
    _check_whole(changes, base, adapter)
    return changes


def _check_whole(changes: dict[str, Change], base: Checkpoint, adapter: Adapter) -> None:
    """What the settings target in one layer, they target in every layer that stores it, unless layers are chosen."""
    text = base.config.get("text_config")
    shared = (text if isinstance(text, dict) else base.config).get("num_kv_shared_layers")  # stored, yet not modules
    if shared or any(adapter.config.get(key) for key in ("layers_to_transform", "exclude_modules")):
        return
    kinds = {re.sub(r"\d+", "", name) for name in changes}
    missing = [
        name
        for name in base.tensors
        if name not in changes
        and re.sub(r"\d+", "", name) in kinds
        and any(adapter.targets(module) for module in _names(name.removesuffix(".weight")))
    ]
    if missing:
        raise WeightsError(
            f"its settings target {len(missing)} weights more than it holds pairs for: {', '.join(missing[:3])}, ...",
            where=str(adapter.folder),
            hint="The adapter is not whole: save or fetch it again.",
        )


def _unwrapped(module: str) -> str:
    while module.endswith(_WRAPPER):
        module = module.removesuffix(_WRAPPER)
    return module


def _add(changes: dict[str, Change], change: Change) -> None:
    name = change.tensor.name
    if name in changes:
        raise WeightsError(
            f"two pairs of the adapter change {name!r}: {changes[name].pair.module}, {change.pair.module}"
        )
    changes[name] = change


def _names(module: str) -> Iterator[str]:
    yield module
    for start, other in _ALIASES:
        if module.startswith(start):
            yield other + module.removeprefix(start)


def _weight_of(pair: Pair, tensors: dict[str, Stored]) -> Stored | None:
    """The weight of the module that the pair wraps; None where no module of that name has one."""
    found = [tensors[f"{name}.weight"] for name in _names(pair.module) if f"{name}.weight" in tensors]
    if len(found) > 1:
        raise WeightsError(f"{pair.module!r} may mean {found[0].name!r} or {found[1].name!r} in this base")
    return found[0] if found else None


def _plain(pair: Pair, tensor: Stored, adapter: Adapter) -> Change:
    # PEFT matches its patterns with the parameter's name where a parameter was targeted, else with the module's
    key = f"{pair.module}.weight" if _is_target(tensor.name, adapter) else pair.module
    rank, wanted = adapter.rank(key), (pair.b.shape[0], pair.a.shape[1])
    if pair.a.shape[0] != rank:
        raise WeightsError(f"{pair.module!r} has rank {pair.a.shape[0]}; adapter_config.json gives it {rank}")
    if tensor.shape != wanted or tensor.dtype not in TORCH_TYPES:
        raise WeightsError(
            f"{tensor.name!r} is {tensor.dtype} {list(tensor.shape)}; the adapter was made for {list(wanted)}",
            hint="This is not the base that the adapter was trained on.",
        )
    return Change(tensor, pair, adapter.scale(key), rank)


def _stacked(module: str, pairs: list[Pair], base: Checkpoint, adapter: Adapter) -> list[Change]:
    """The changes of stacked expert tensors of one module. PEFT nests a wrapper per parameter and does not store
    which is which: the shapes must tell, and must tell it in one way only."""
    tensors = base.tensors
    wanted = [t for t in _parameters(module, tensors) if _is_target(t.name, adapter)]
    if not wanted or len(wanted) != len(pairs):
        raise WeightsError(
            f"the adapter changes {len(pairs)} weights of {module!r}; the base stores {[t.name for t in wanted]} there",
            hint="The base is another, or stores its experts one by one where the adapter's were stacked.",
        )
    ways = [way for order in permutations(wanted) if (way := _fit(pairs, order, module, base, adapter)) is not None]
    if len(ways) != 1:
        problem = "do not fit" if not ways else "could be matched in several ways with"
        shapes = [list(t.shape) for t in wanted]
        raise WeightsError(f"the adapter's matrices for {module!r} {problem} the stored shapes {shapes}")
    return ways[0]


def _parameters(module: str, tensors: dict[str, Stored]) -> list[Stored]:
    starts = tuple(f"{name}." for name in _names(module))
    return [t for name, t in tensors.items() if name.startswith(starts) and len(t.shape) == 3]


def _is_target(name: str, adapter: Adapter) -> bool:
    return any(name == target or name.endswith(f".{target}") for target in adapter.targets_parameters)


def _fit(
    pairs: list[Pair], order: tuple[Stored, ...], module: str, base: Checkpoint, adapter: Adapter
) -> list[Change] | None:
    changes = []
    for pair, tensor in zip(pairs, order, strict=True):
        key = f"{module}.{tensor.name.rpartition('.')[2]}"
        rank, (experts, rows, columns) = adapter.rank(key), tensor.shape
        if (pair.a.shape, pair.b.shape) != ((experts * rank, columns), (rows, rank * experts)):
            return None
        if rows == columns and not str(base.config.get("model_type", "")).startswith(_OUT_IN):
            raise WeightsError(
                f"{tensor.name!r} is square: whether it is stored (out, in) is known for {', '.join(_OUT_IN)} only"
            )
        changes.append(Change(tensor, pair, adapter.scale(key), rank))
    return changes


def load(change: Change, adapter: Adapter) -> Matrices:
    """The factors of one change, read from the adapter's file: the only part of it that is in memory."""
    a, b = _read(change.pair.a, adapter), _read(change.pair.b, adapter)
    experts, rank = change.experts, change.rank
    # PEFT's layout (ParamWrapper.get_delta_factors): A is expert-major, in B the expert changes fastest
    return Matrices(a.reshape(experts, rank, -1), b.reshape(len(b), rank, experts).permute(2, 0, 1), change.scale)


def _read(tensor: Stored, adapter: Adapter) -> torch.Tensor:
    with adapter.file.path.open("rb") as file:
        data = read_bytes(file, tensor.start, tensor.size_bytes)
    values = torch.frombuffer(data, dtype=TORCH_TYPES[tensor.dtype]).reshape(tensor.shape).float()
    if not bool(torch.isfinite(values).all()):
        raise WeightsError(f"{tensor.name!r} holds values that are not finite", where=str(adapter.file.path))
    return values
