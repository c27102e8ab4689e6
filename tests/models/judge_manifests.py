"""Manifests for tests: that of a judge that was proven, as data to be changed, and a folder with its files."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import yaml

ZEROS, ONES = "0" * 64, "1" * 64


def sha256_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def manifest_data(**changes: Any) -> dict[str, Any]:
    """A valid manifest of a blessed judge of one file."""
    data: dict[str, Any] = {
        "format": 1,
        "name": "tried",
        "about": "a judge for tests",
        "blessed": True,
        "files": [{"role": "model", "name": "tried.gguf", "bytes": 10, "sha256": ZEROS}],
        "base": {"name": "nobody/base", "revision": "abc", "licence": "Apache-2.0"},
        "licence": "Apache-2.0",
        "rubric": {"name": "aipsy-judge-v1", "hash": ONES},
        "contract": "full",
        "template_sha256": ONES,
        "context_tokens": 8192,
        "quantisation": "Q8_0",
        "made": {"date": "2026-11-30", "recipe": "tests", "data": {"ratings.csv": ONES}, "versions": {"torch": "2.13"}},
        "verify": verified(ZEROS),
        "legal_mass_floor": 0.05,
    }
    return {**data, **changes}


def verified(model: str, adapter: str | None = None, *, passed: bool = True) -> dict[str, Any]:
    candidate = {"model": model} | ({"adapter": adapter} if adapter is not None else {})
    return {
        "date": "2026-11-30",
        "passed": passed,
        "full": {"model": ONES},
        "candidate": candidate,
        "conversations": {"talks.jsonl": ONES},
        "units": 10,
        "answers": 80,
        "limits_sha256": ONES,
        "library": "llama-cpp-python 0.3.36",
        "checks": [{"figure": "clean_parse", "value": 1.0 if passed else 0.84, "least": 0.99, "passed": passed}],
    }


def write_judge(folder: Path, data: dict[str, Any]) -> Path:
    """The manifest in a folder of its own, dates as YAML has them."""
    folder.mkdir(parents=True, exist_ok=True)
    text = yaml.safe_dump(data, sort_keys=False).replace("'2026-11-30'", "2026-11-30")
    (folder / "manifest.yaml").write_text(text, encoding="utf-8")
    return folder
