"""A folder that holds a model as safetensors: what is in it, checked before anything is loaded. Nothing of it is run:
weights that are pickled and code that comes with a model are refused, the chat template is only parsed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .chat_template import template_fault
from .errors import WeightsError
from .safetensors_file import TensorFile
from .tensor_folder import CONFIG, INDEX, read_json, tensor_files

TOKENIZER = "tokenizer.json"
_TEMPLATE, _SETTINGS, _GENERATION = "chat_template.jinja", "tokenizer_config.json", "generation_config.json"
_QUANTISED = "hf_quant_config.json"  # mlx-lm reads from it how weights are packed where config.json does not say
_SMALL_BYTES = 64 * 2**20  # of a JSON file of settings; published ones have up to some hundred kB
_TOKENIZER_BYTES = 512 * 2**20  # Gemma 4's has 32 MB


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """whole: config.json; config: its part on the text model, where it describes several. end_tokens: ids that end a
    generation, as named beside the tokenizer. context_tokens: longest position that the model was trained for."""

    path: Path
    whole: Mapping[str, Any]
    config: Mapping[str, Any]
    tokenizer_config: Mapping[str, Any]
    chat_template: str | None
    end_tokens: frozenset[int]
    context_tokens: int
    files: tuple[TensorFile, ...]

    @property
    def stored(self) -> str:
        """How most of the weights are stored, e.g. "bfloat16" or "8 bit"."""
        quantised = self.whole.get("quantization")  # beside the part on the text model, where there is one
        if isinstance(quantised, Mapping) and "bits" in quantised:
            return f"{quantised['bits']} bit"
        sizes: dict[str, int] = {}
        for tensor in (t for f in self.files for t in f.tensors):
            sizes[tensor.dtype] = sizes.get(tensor.dtype, 0) + math.prod(tensor.shape)
        return max(sizes, key=sizes.__getitem__)


def is_model_folder(path: Path) -> bool:
    """Whether a folder looks like one; nothing of it is checked."""
    return (path / CONFIG).is_file()


def open_model_folder(path: Path) -> ModelFolder:
    """Read settings and headers. Raises WeightsError that says what is missing, damaged or refused."""
    if not path.is_dir():
        raise WeightsError("no such folder", where=str(path), hint="Name the folder that holds config.json.")
    whole = _settings(path / CONFIG)
    inner = whole.get("text_config")
    config = inner if isinstance(inner, dict) else whole
    _check_code(path, whole)
    files = tensor_files(path)
    _check_strays(path, files)
    tokenizer_config = _tokenizer(path)
    template = folder_template(path)
    fault = template_fault(template)
    if fault is not None:
        raise WeightsError(fault, where=str(path))
    generation = _settings(path / _GENERATION) if (path / _GENERATION).is_file() else {}
    ends = _ids(generation.get("eos_token_id")) | _ids(whole.get("eos_token_id")) | _ids(config.get("eos_token_id"))
    return ModelFolder(path, whole, config, tokenizer_config, template, ends, _context(path, config), files)


def refuse_adapter(adapter: Path | None) -> None:
    """Raise WeightsError for an adapter beside such a folder: MLX would leave it out without a word."""
    if adapter is not None:
        raise WeightsError(
            "an adapter beside a folder of safetensors is not applied here",
            where=str(adapter),
            hint="Merge it into the model (python -m quantize.merge), then convert (python -m quantize.to_mlx).",
        )


def model_files(path: Path) -> list[Path]:
    """Every file of a folder that has a part in what the model says, by name."""
    names = {CONFIG, TOKENIZER, INDEX, _TEMPLATE, _SETTINGS, _GENERATION, _QUANTISED}
    return sorted(p for p in path.iterdir() if p.name in names or p.suffix == ".safetensors")


def folder_template(path: Path) -> str | None:
    """The chat template of a model's folder: chat_template.jinja, else the one in tokenizer_config.json, else None."""
    own, settings = path / _TEMPLATE, path / _SETTINGS
    if own.is_file():
        try:
            return own.read_bytes().decode("utf-8")
        except UnicodeDecodeError as error:
            raise WeightsError("not UTF-8", where=str(own)) from error
    found = _settings(settings).get("chat_template") if settings.is_file() else None
    if found is None or isinstance(found, str):
        return found
    # several named ones: the default is what every program uses that is not told otherwise
    rows = found if isinstance(found, list) else []
    default = {t.get("name"): t.get("template") for t in rows if isinstance(t, dict)}.get("default")
    if not isinstance(default, str):
        raise WeightsError("has several chat templates and none is called default", where=str(settings))
    return default


def _settings(path: Path) -> dict[str, Any]:
    if path.is_file() and path.stat().st_size > _SMALL_BYTES:
        raise WeightsError(f"larger than {_SMALL_BYTES >> 20} MiB: these are no settings", where=str(path))
    return read_json(path)


def _check_code(path: Path, config: Mapping[str, Any]) -> None:
    if config.get("model_file") is not None:
        raise WeightsError(
            f"wants code of its own to be run (model_file {config['model_file']!r}), which is refused",
            where=str(path / CONFIG),
            hint="Take a version of the model that the library knows.",
        )
    if not isinstance(config.get("model_type"), str):
        raise WeightsError("does not say what the model is (model_type)", where=str(path / CONFIG))


def _check_strays(path: Path, files: tuple[TensorFile, ...]) -> None:
    """mlx-lm loads every file called model*.safetensors, and no other."""
    named = {f.path.name for f in files}
    stray = sorted(named ^ {p.name for p in path.glob("model*.safetensors")})
    if stray:
        what = "is not named model*.safetensors" if stray[0] in named else f"is not in {INDEX}"
        raise WeightsError(f"{stray[0]} {what}", where=str(path), hint="Keep one model in a folder.")


def _tokenizer(path: Path) -> dict[str, Any]:
    file = path / TOKENIZER
    if not file.is_file():
        raise WeightsError(f"has no {TOKENIZER}", where=str(path), hint="Fetch all files of the model.")
    if file.stat().st_size > _TOKENIZER_BYTES:
        raise WeightsError(f"larger than {_TOKENIZER_BYTES >> 20} MiB: this is no tokenizer", where=str(file))
    return _settings(path / _SETTINGS) if (path / _SETTINGS).is_file() else {}


def _ids(named: Any) -> frozenset[int]:
    return frozenset(i for i in (named if isinstance(named, list) else [named]) if type(i) is int)


def _context(path: Path, config: Mapping[str, Any]) -> int:
    found = config.get("max_position_embeddings")
    if type(found) is not int or found < 1:
        raise WeightsError(
            "does not say how long a text the model takes (max_position_embeddings)", where=str(path / CONFIG)
        )
    return found
