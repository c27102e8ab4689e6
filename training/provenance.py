"""What a run was made with: the resolved recipe, the commit, versions of what computes, the machine."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from aipsy_judge.atomic import write_text
from aipsy_judge.machine import this_machine
from aipsy_judge.rubric import load_rubric
from aipsy_judge.runs_info import versions
from aipsy_judge.strict_json import dumps, loads

from .recipe import Recipe, resolved_text

RECIPE, PROVENANCE = "recipe.resolved.yaml", "provenance.json"
CLONE = Path(__file__).resolve().parent.parent
# Beside what every run of the instrument records.
PACKAGES = (
    "torch",
    "transformers",
    "tokenizers",
    "peft",
    "trl",
    "accelerate",
    "bitsandbytes",
    "liger-kernel",
    "triton",
    "safetensors",
    "gguf",
    "pydantic",
)


def record(out: Path, recipe: Recipe) -> None:
    """Write both files into the run's folder; what is there already and says the same is left alone."""
    out.mkdir(parents=True, exist_ok=True)
    text = resolved_text(recipe)
    if not _says(out / RECIPE, text):
        write_text(out / RECIPE, text)
    found = {**made_with(), **_rubric(recipe), "machine": machine()}
    if _without_time(out / PROVENANCE) != found:
        write_text(out / PROVENANCE, dumps({**found, "created": now()}, indent=1) + "\n")


@functools.cache
def made_with() -> Mapping[str, Any]:
    """commit (None outside a clone), whether the clone differed from it, versions of packages that are installed."""
    commit = _git("rev-parse", "HEAD")
    changed = _git("status", "--porcelain", "--untracked-files=no") if commit else None
    return {
        "commit": commit,
        "uncommitted_changes": bool(changed) if commit else None,
        "versions": {**versions(), **_installed()},
    }


def machine() -> dict[str, Any]:
    """The machine in plain data: system, processor, memory and GPUs in bytes."""
    found = this_machine()
    return {
        "system": found.system,
        "processor": found.processor,
        "processors": found.processors,
        "memory_bytes": found.memory_bytes,
        "gpus": [{"name": g.name, "memory_bytes": g.memory_bytes} for g in found.gpus],
    }


def now() -> str:
    """ISO 8601, UTC, seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _rubric(recipe: Recipe) -> dict[str, Any]:
    rubric = load_rubric(recipe.rubric)
    return {"rubric": {"name": rubric.name, "hash": rubric.hash}, "contract": recipe.contract}


def _installed() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _git(*words: str) -> str | None:
    """What git says of the clone, None where there is no git or no clone."""
    try:
        done = subprocess.run(
            ["git", "-C", str(CLONE), *words], capture_output=True, text=True, check=False, timeout=20
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _says(path: Path, text: str) -> bool:
    try:
        return path.read_text(encoding="utf-8") == text
    except (OSError, UnicodeDecodeError):
        return False


def _without_time(path: Path) -> Mapping[str, Any] | None:
    try:
        data = loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return {k: v for k, v in data.items() if k != "created"} if isinstance(data, dict) else None
