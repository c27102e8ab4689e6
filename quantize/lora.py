"""A LoRA adapter as PEFT writes it: its pairs of matrices, and by how much each pair counts.

What a setting means is PEFT's (tuners/lora/{config,layer,model}.py, 0.21): the change of a weight is
scale * B @ A, scale = alpha / rank, or alpha / sqrt(rank) with use_rslora, rank and alpha by pattern where one matches.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aipsy_judge.errors import WeightsError
from aipsy_judge.safetensors_file import Stored, TensorFile, read_tensor_file

from .checkpoint import read_json

# Settings that do not change what the stored matrices mean once training is over.
_HARMLESS = frozenset(
    {
        "task_type", "peft_type", "auto_mapping", "peft_version", "base_model_name_or_path", "revision",
        "inference_mode", "r", "target_modules", "exclude_modules", "lora_alpha", "lora_dropout", "use_rslora",
        "layers_to_transform", "layers_pattern", "rank_pattern", "alpha_pattern", "megatron_core", "loftq_config",
        "eva_config", "qalora_group_size", "target_parameters", "ensure_weight_tying", "init_lora_weights",
    }
)  # fmt: skip
# These start from changed base weights: B @ A is not the difference to the base that is here.
_CHANGED_BASE = ("pissa", "olora", "corda", "loftq", "lora_ga")
_MATRIX = re.compile(r"^base_model\.model\.(?P<module>.+)\.lora_(?P<which>[AB])\.weight$")


@dataclass(frozen=True, slots=True)
class Pair:
    """The two matrices of one wrapped module or parameter: `a` (rank, in), `b` (out, rank); for E experts in one
    tensor (E * rank, in) and (out, rank * E). `module` is its path in the base model, wrappers included."""

    module: str
    a: Stored
    b: Stored


@dataclass(frozen=True, slots=True)
class Adapter:
    """An adapter's folder; nothing of the matrices is read yet."""

    folder: Path
    config: Mapping[str, Any]
    file: TensorFile
    pairs: tuple[Pair, ...]

    @property
    def targets_parameters(self) -> tuple[str, ...]:
        """Names of parameters (stacked experts) that were adapted without being modules."""
        return tuple(self.config.get("target_parameters") or ())

    def sha256(self) -> str:
        with self.file.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def targets(self, module: str) -> bool:
        """Whether target_modules means the module: a regular expression over whole names, or names they end in."""
        told = self.config.get("target_modules")
        if isinstance(told, str):
            return re.fullmatch(told, module) is not None
        return any(module == name or module.endswith(f".{name}") for name in told or ())

    def rank(self, key: str) -> int:
        """The rank that the settings give to the module or parameter `key`."""
        return int(_by_pattern(self.config.get("rank_pattern"), key, self.config["r"]))

    def alpha(self, key: str) -> float:
        return float(_by_pattern(self.config.get("alpha_pattern"), key, self.config["lora_alpha"]))

    def scale(self, key: str) -> float:
        """What B @ A is multiplied by for the module or parameter `key`."""
        rank = self.rank(key)
        return self.alpha(key) / (math.sqrt(rank) if self.config.get("use_rslora") else rank)


def open_adapter(folder: Path) -> Adapter:
    """The adapter in `folder`. Raises WeightsError, naming the setting or tensor, for what cannot be merged exactly."""
    if (folder / "adapter_config.json").is_file() and not (folder / "adapter_model.safetensors").is_file():
        raise WeightsError(
            "holds no adapter_model.safetensors", where=str(folder), hint="Pickle files are not read: save it again."
        )
    config = read_json(folder / "adapter_config.json")
    _check_settings(config, folder)
    file = read_tensor_file(folder / "adapter_model.safetensors")
    return Adapter(folder, config, file, _pairs(file))


def _check_settings(config: Mapping[str, Any], folder: Path) -> None:
    where = str(folder / "adapter_config.json")
    if config.get("peft_type") != "LORA":
        raise WeightsError(f"peft_type is {config.get('peft_type')!r}; only LORA can be merged", where=where)
    for key in ("r", "lora_alpha"):
        if not _is_above_0(config.get(key)):
            raise WeightsError(f"{key} must be a number above 0", where=where)
    for key in ("rank_pattern", "alpha_pattern"):
        _check_patterns(key, config.get(key), where)
    for key in ("target_modules", "target_parameters"):
        _check_names(key, config.get(key), where)
    start = config.get("init_lora_weights")
    if isinstance(start, str) and start.lower().startswith(_CHANGED_BASE):
        raise WeightsError(
            f"init_lora_weights={start!r} trains against a changed base",
            where=where,
            hint="Convert it to plain LoRA with PEFT first (path_initial_model_for_weight_conversion).",
        )
    for key, value in config.items():
        if key not in _HARMLESS and value not in (None, False, "none", [], {}):
            raise WeightsError(
                f"the setting {key}={value!r} is not one that this merge knows to be exact",
                where=where,
                hint="Merge with PEFT itself, or train without it.",
            )


def _is_above_0(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf


def _check_names(key: str, told: Any, where: str) -> None:
    if isinstance(told, str) and key == "target_modules":
        _check_expression(key, told, where)
    elif not isinstance(told or [], list) or not all(isinstance(name, str) for name in told or []):
        raise WeightsError(f"{key} must be a list of names", where=where)


def _check_expression(key: str, text: str, where: str) -> None:
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise WeightsError(f"{key}: {text!r} is not a regular expression: {error}", where=where) from error


def _check_patterns(key: str, patterns: Any, where: str) -> None:
    if not isinstance(patterns or {}, Mapping):
        raise WeightsError(f"{key} must be an object of numbers above 0", where=where)
    for pattern, value in (patterns or {}).items():
        if not _is_above_0(value):
            raise WeightsError(f"{key} gives {pattern!r} {value!r}, not a number above 0", where=where)
        _check_expression(key, pattern, where)


def _pairs(file: TensorFile) -> tuple[Pair, ...]:
    halves: dict[str, dict[str, Stored]] = {}
    for tensor in file.tensors:
        match = _MATRIX.match(tensor.name)
        if match is None or len(tensor.shape) != 2 or tensor.dtype not in ("F32", "F16", "BF16"):
            raise WeightsError(
                f"holds {tensor.name!r} ({tensor.dtype} {list(tensor.shape)}), which is not a LoRA matrix",
                where=str(file.path),
                hint="Adapters with biases, embeddings or whole saved modules cannot be merged here.",
            )
        halves.setdefault(match["module"], {})[match["which"]] = tensor
    if not halves:
        raise WeightsError("holds no LoRA matrices", where=str(file.path))
    for module, half in halves.items():
        if set(half) != {"A", "B"} or half["A"].shape[0] != half["B"].shape[1]:
            raise WeightsError(f"the two matrices of {module!r} do not belong together", where=str(file.path))
    return tuple(Pair(module, half["A"], half["B"]) for module, half in sorted(halves.items()))


def _by_pattern(patterns: Mapping[str, Any] | None, key: str, default: Any) -> Any:
    """The value of the pattern that matches the end of `key`, as PEFT's get_pattern_key matches. PEFT takes the first,
    and saves patterns in another order than it was given: where two disagree, nobody knows which was meant."""
    found = {p: v for p, v in (patterns or {}).items() if re.match(rf"(.*\.)?({p})$", key)}
    if len(set(found.values())) > 1:
        raise WeightsError(f"rank_pattern or alpha_pattern gives {key!r} several values: {found}")
    return next(iter(found.values()), default)
