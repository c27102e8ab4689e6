"""A GGUF file as a checkpoint folder that can be trained on: its weights dequantised, its tokenizer rebuilt.

The folder is made once a file (by sha256) and kept in `.cache/` of the clone. An adapter trained on it fits the file
it came from: what the adapter learnt to make up for is then also what is lost in the file.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import shutil
import tempfile
from collections import Counter
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

from aipsy_judge.base_record import DEQUANTISED
from aipsy_judge.errors import InputError, WeightsError
from aipsy_judge.gguf_model import check_model
from aipsy_judge.weights import file_sha256

CACHE = Path(__file__).resolve().parent.parent / ".cache"
CODE = 1  # raised when the same file would give another folder
# Architectures whose dequantised logits were held against llama.cpp's.
_PROVEN = ("llama",)
_FLOAT_TYPES = {0: "F32", 1: "F16", 30: "BF16"}


def gguf_path(named: str) -> Path:
    """The file that `PACKAGE:FILE` or a path means. InputError where there is none."""
    package, colon, name = named.partition(":")
    if colon and package.isidentifier():
        spec = _spec(package)
        if spec is None:
            raise InputError(f"the package {package!r} is not installed", where=named, hint=f"pip install {package}")
        places = [Path(folder) / name for folder in spec.submodule_search_locations or ()]
    else:
        places = [Path(named).expanduser()]
    for place in places:
        if place.is_file():
            return place
    raise InputError("no such file", where=named, hint="base.gguf is PACKAGE:FILE or a path.")


def _spec(package: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(package)
    except ValueError:  # a module that is loaded and was found in no file, such as __main__
        return None


def dequantised(path: Path) -> Path:
    """The checkpoint folder of a GGUF file (float32), made if it is not there. WeightsError where it cannot be."""
    header = check_model(path)
    architecture = header.metadata["general.architecture"]
    if architecture not in _PROVEN:
        raise WeightsError(
            f"files of the architecture {architecture!r} are not dequantised here",
            where=str(path),
            hint="Name the checkpoint folder that the file was made from as base.checkpoint.",
        )
    sha256 = file_sha256(path)
    target = CACHE / f"dequantised-{sha256[:16]}-{CODE}"
    if not target.is_dir():
        CACHE.mkdir(exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=CACHE))
        try:
            _write(path, part)
            types = Counter(tensor.kind for tensor in header.tensors)
            record = {"source": path.name, "source_sha256": sha256, "types": _named(types), "code": CODE}
            (part / DEQUANTISED).write_text(json.dumps(record, indent=2, sort_keys=True) + "\n", encoding="utf-8")
            with contextlib.suppress(OSError):  # another process was faster: its folder is as good
                part.rename(target)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return target


def _write(path: Path, folder: Path) -> None:
    import torch
    import transformers

    from .gguf_tokenizer import tokenizer_from_gguf
    from .quiet import without_progress

    library: Any = transformers
    tokenizer = tokenizer_from_gguf(path)
    with without_progress():
        model, seen = library.AutoModelForCausalLM.from_pretrained(
            path.parent, gguf_file=path.name, dtype=torch.float32, output_loading_info=True
        )
        if any(seen.values()):
            raise WeightsError(f"not every tensor found its place: {seen}", where=str(path))
        plain = type(model)(_plain_config(model.config))
        plain.load_state_dict(model.state_dict())
        plain.generation_config = library.GenerationConfig(
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=[tokenizer.eos_token_id],
            pad_token_id=tokenizer.pad_token_id,
        )
        plain.save_pretrained(folder)
        tokenizer.save_pretrained(folder)


def _plain_config(config: Any) -> Any:
    """Without what would make a reader look for the GGUF again, or take the weights for quantised ones."""
    kept = {k: v for k, v in config.to_dict().items() if k not in ("quantization_config", "_model_name_or_path")}
    return type(config).from_dict(kept)


def _named(types: Counter[int]) -> dict[str, int]:
    from gguf import GGMLQuantizationType

    return {GGMLQuantizationType(kind).name: count for kind, count in sorted(types.items())}
