"""llama.cpp's own converters, run as a child process: their memory is given back, and what they print is not ours."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from aipsy_judge.errors import BackendError, WeightsError

from .checkpoint import Checkpoint, read_json
from .llama_source import llama_cpp_source

_OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
# The converters import what lies beside them: a safe path or another gguf library would take that away.
_TOKENIZERS = ("tokenizer.json", "tokenizer.model")
_UNSET = ("PYTHONSAFEPATH", "NO_LOCAL_GGUF")


def run_converter(script: str, arguments: Sequence[str | Path]) -> None:
    """Run `script` of the pinned source. Raises BackendError with its last words where it fails."""
    path = llama_cpp_source() / script
    environment = {k: v for k, v in os.environ.items() if k not in _UNSET} | _OFFLINE
    done = subprocess.run(
        [sys.executable, str(path), *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        env=environment,
        check=False,
    )
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith("INFO:")]
        raise BackendError(
            f"{script} of llama.cpp failed (exit {done.returncode}): " + " / ".join(lines[-3:]),
            hint=f"Run it by hand to see all it says: {sys.executable} {path} " + " ".join(map(str, arguments)),
        )


def check_convertible(model: Checkpoint) -> str:
    """The architecture's class name. Raises WeightsError for what the converters would fail on without saying why, and
    for a folder that brings code: the converters would run it."""
    for name in ("config.json", "tokenizer_config.json"):
        path = model.folder / name
        if path.is_file() and "auto_map" in read_json(path):
            raise WeightsError(
                "names code of its own (auto_map), which would be run",
                where=str(path),
                hint="Take a version of the model that needs none; if the code is not needed, remove the key.",
            )
    if not any((model.folder / name).is_file() for name in _TOKENIZERS):
        raise WeightsError(
            f"holds no tokenizer ({' or '.join(_TOKENIZERS)})",
            where=str(model.folder),
            hint="Copy the base's own tokenizer files into the folder.",
        )
    text = model.config.get("text_config")
    nested = text.get("architectures") if isinstance(text, dict) else None
    names = nested or model.config.get("architectures")
    if not isinstance(names, list) or not names:
        raise WeightsError(
            "names no architecture, so the converter cannot know the model",
            where=str(model.folder / "config.json"),
            hint="Merge into the base as published, whose config.json names one; merging keeps that file.",
        )
    return str(names[0])
