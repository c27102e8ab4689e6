"""A judge's manifest, `manifest.yaml` in its folder: what it is made of, how it is asked, what was proven of it.

The weights themselves lie beside the manifest, or in a Python package that a file names. `blessed` is what `verify`
came to: a judge that is not blessed is not opened unless somebody asks for it by that word.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, Strict, ValidationError, model_validator

from .atomic import write_text
from .errors import ManifestError
from .file_hash import combined_sha256
from .golden import GoldenTurn
from .strict_yaml import load_yaml
from .tensor_folder import CONFIG

MANIFEST = "manifest.yaml"
FORMAT = 1
MAX_BYTES = 8 * 2**20  # a manifest with many golden turns has a few hundred kB

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
"""A plain name: no folder, so that a manifest names nothing outside its own."""
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Text = Annotated[str, Field(min_length=1)]
Share = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
LEGAL_MASS_FLOOR = 0.05  # where nobody names another


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class JudgeFile(_Model):
    """One file of weights.

    role     the model, or a LoRA adapter beside it; of a model that is a folder, its config.json is the model and
             every other file that has a part in what it says is a part
    name     file name; beside the manifest, or in the folder of `package` where one is named
    bytes    its exact size
    package  Python distribution that brings the file (an adapter can stand on a base that a package carries)
    """

    role: Literal["model", "adapter", "part"]
    name: Name
    bytes: Annotated[int, Field(gt=0)]
    sha256: Sha256
    package: Name | None = None


class Base(_Model):
    """What the judge was trained from. revision: of the hub, None where it has none."""

    name: Text
    revision: Text | None = None
    licence: Text


class TrainedRubric(_Model):
    """The rubric that the judge was trained on: a shipped name or a file's, and its hash (rubric.Rubric.hash)."""

    name: Text
    hash: Sha256


class Made(_Model):
    """How the judge was made. `data`: sha256 of every input of the training by name; `versions`: of the libraries."""

    date: datetime.date
    recipe: Text | None = None
    recipe_sha256: Sha256 | None = None
    data: dict[str, Sha256] = {}
    commit: Text | None = None
    versions: dict[str, str] = {}


class Weighed(_Model):
    """The sha256 of the files of one side of a comparison."""

    model: Sha256
    adapter: Sha256 | None = None


class Check(_Model):
    """One figure of `verify` against its limit. value None: it could not be had, which fails."""

    figure: Text
    value: Finite | None
    least: Finite | None = None
    most: Finite | None = None
    passed: bool

    @property
    def words(self) -> str:
        """The figure and what it had to be, e.g. "clean_parse 0.84, at least 0.99"."""
        found = f"{self.value:.4g}" if self.value is not None else "could not be had"
        limits = [f"at least {self.least:g}"] if self.least is not None else []
        limits += [f"at most {self.most:g}"] if self.most is not None else []
        return f"{self.figure} {found}, {' and '.join(limits)}"


class AskedAs(_Model):
    """How `verify` asked: contract, hash of the rubric, newest messages shown (None: all), floor of legal mass; and of
    which metrics it took no value for told, because the judge holds them back."""

    contract: Text
    rubric: Sha256
    window: Annotated[int, Field(gt=0)] | None = None
    legal_mass_floor: Share = LEGAL_MASS_FLOOR  # where a record does not say it: what verify asked with then
    held_back: Annotated[tuple[Text, ...], Strict(False)] = ()


class Verified(_Model):
    """What `verify` found. full: the weights compared with; candidate: those proven; units, answers: on how many;
    asked: None where the record does not say it."""

    date: datetime.date
    passed: bool
    full: Weighed
    candidate: Weighed
    conversations: dict[str, Sha256]
    units: Annotated[int, Field(ge=0)]
    answers: Annotated[int, Field(ge=0)]
    limits_sha256: Sha256
    library: Text
    asked: AskedAs | None = None
    checks: Annotated[tuple[Check, ...], Strict(False)]

    @model_validator(mode="after")
    def _passed_is_all_checks(self) -> Verified:
        if self.passed != (bool(self.checks) and all(c.passed for c in self.checks)):
            raise ValueError("`passed` is not what the checks say")
        return self


class OperatingPoint(_Model):
    """From where on a reading wants a person's eyes: a confidence under `confidence`, or a probability of failure
    (below the metric's critical threshold; of a flag: that it is set) from `p_fail` on though the value passes."""

    confidence: Share | None = None
    p_fail: Share | None = None

    @model_validator(mode="after")
    def _says_something(self) -> OperatingPoint:
        if self.confidence is None and self.p_fail is None:
            raise ValueError("an operating point wants `confidence`, `p_fail` or both")
        return self


class Manifest(_Model):
    """Everything that is known of a judge.

    window            the newest messages that it is shown, as it was trained; None: all
    temperatures      per slot (answer.py), fitted on validation data; 1 where not given
    legal_mass_floor  under it a reading is Unscored("off_contract")
    operating_points  by metric or flag
    set_from          flags that are set from this probability on, chosen on validation data; the others where the most
                      probable answer says so (set_from.py)
    not_validated     metrics or flags that this judge was not shown to work on, each with the reason: they come out
                      as Unscored("not_validated")
    golden_turns      what it read on the machine that it was made on, for `doctor --prove`
    remarks           what a reader of any of its scores must know
    """

    format: Literal[1]
    name: Name
    about: Text
    blessed: bool
    files: Annotated[tuple[JudgeFile, ...], Strict(False)]
    base: Base
    licence: Text
    rubric: TrainedRubric
    contract: Text
    template_sha256: Sha256
    context_tokens: Annotated[int, Field(gt=0)]
    window: Annotated[int, Field(gt=0)] | None = None
    quantisation: Text
    made: Made
    verify: Verified | None = None
    temperatures: dict[str, Annotated[float, Field(gt=0.0, allow_inf_nan=False)]] = {}
    legal_mass_floor: Share
    operating_points: dict[str, OperatingPoint] = {}
    set_from: dict[str, Annotated[float, Field(gt=0.0, lt=1.0)]] = {}
    not_validated: dict[str, Text] = {}
    remarks: Annotated[tuple[Text, ...], Strict(False)] = ()
    golden_turns: Annotated[tuple[GoldenTurn, ...], Strict(False)] = ()

    @property
    def model(self) -> JudgeFile:
        return next(f for f in self.files if f.role == "model")

    @property
    def adapter(self) -> JudgeFile | None:
        return next((f for f in self.files if f.role == "adapter"), None)

    @property
    def is_folder(self) -> bool:
        """The model is the whole folder, not one file in it."""
        return self.model.name == CONFIG

    @property
    def model_sha256(self) -> str:
        """As file_hash.file_sha256 gives it for the model."""
        if not self.is_folder:
            return self.model.sha256
        return combined_sha256({f.name: f.sha256 for f in self.files})

    @model_validator(mode="after")
    def _one_model(self) -> Manifest:
        roles = [f.role for f in self.files]
        if roles.count("model") != 1 or roles.count("adapter") > 1:
            raise ValueError("files: exactly one model and at most one adapter")
        if self.is_folder and (self.adapter is not None or any(f.package is not None for f in self.files)):
            raise ValueError(f"files: a model that is a folder ({CONFIG}) has no adapter and lies beside the manifest")
        if not self.is_folder and "part" in roles:
            raise ValueError(f"files: only a model that is a folder has parts; its model is {CONFIG}")
        return self

    @model_validator(mode="after")
    def _blessed_by_proof(self) -> Manifest:
        """A blessing is of these very files, by a verify that passed."""
        if not self.blessed:
            return self
        if self.verify is None or not self.verify.passed:
            raise ValueError("blessed: wants a `verify` that passed")
        own = Weighed(model=self.model_sha256, adapter=self.adapter.sha256 if self.adapter is not None else None)
        if self.verify.candidate != own:
            raise ValueError("blessed: `verify` is of other files than these")
        return self


def read_manifest(path: Path) -> Manifest:
    """The manifest at `path`, or in the folder `path`. Raises ManifestError that says all that is wrong with it."""
    path = path / MANIFEST if path.is_dir() else path
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ManifestError(f"larger than {MAX_BYTES >> 20} MiB: this is no manifest", where=str(path))
        data = load_yaml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ManifestError(f"cannot be read: {error.strerror or error}", where=str(path)) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ManifestError(f"not valid YAML: {' '.join(str(error).split())}", where=str(path)) from error
    return parse_manifest(data, where=str(path))


def parse_manifest(data: Any, *, where: str) -> Manifest:
    """A manifest from its data. Raises ManifestError."""
    if not isinstance(data, Mapping):
        raise ManifestError("not a manifest: a mapping was expected", where=where)
    if data.get("format") != FORMAT:
        raise ManifestError(
            f"a manifest of format {data.get('format')!r}; this version reads format {FORMAT}",
            where=where,
            hint="A newer judge wants a newer aipsy-judge: pip install --upgrade aipsy-judge",
        )
    try:
        return Manifest.model_validate(data)
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, e['loc'])) or 'the whole'}: {e['msg']}" for e in error.errors()]
        raise ManifestError("; ".join(faults), where=where) from error


def manifest_text(manifest: Manifest) -> str:
    """The manifest as YAML; `parse_manifest` of it is the same manifest."""
    return yaml.safe_dump(_plain(manifest.model_dump()), sort_keys=False, allow_unicode=True, width=110)


# Fields of which nothing is a finding: a figure that could not be had, a golden unit that is a whole conversation.
_NOTHING_SAYS_SOMETHING = frozenset({"value", "turn"})


def _plain(value: Any) -> Any:
    """Lists for tuples; what is not given is left out."""
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items() if v is not None or k in _NOTHING_SAYS_SOMETHING}
    return [_plain(v) for v in value] if isinstance(value, list | tuple) else value


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Write it, whole or not at all. Raises InputError where that cannot be done."""
    write_text(path, manifest_text(manifest))
