"""run.json: what a run is, beside its verdicts."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import ValidationError

from .atomic import write_text
from .errors import InputError
from .judge import Judge, Lane, Rationale
from .rubric import Rubric
from .strict_json import dumps, loads

FORMAT = "aipsy-judge-run-1"
RUN = "run.json"
NAMED_VERSIONS = ("aipsy-judge", "llama-cpp-python", "mlx-lm", "numpy")
BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file that was judged: path as given, sha256 (hex) and size in bytes."""

    path: str
    sha256: str
    bytes: int


@dataclass(frozen=True, slots=True)
class RunInfo:
    """What a run is: see RunView for the fields that both have. `versions` maps packages to versions."""

    lane: Lane
    rubric: Rubric
    settings: Mapping[str, Any]
    remarks: tuple[str, ...]
    rationale: Rationale
    redacted: bool
    created: str
    versions: Mapping[str, str]
    inputs: tuple[InputFile, ...] = ()

    def with_inputs(self, inputs: Iterable[InputFile]) -> RunInfo:
        """The same run, with those of `inputs` added that it does not list yet."""
        new = tuple(i for i in inputs if i not in self.inputs)
        return replace(self, inputs=self.inputs + new)


def describe_run(
    judge: Judge, *, rationale: Rationale, redacted: bool = False, inputs: Iterable[InputFile] = ()
) -> RunInfo:
    """What a run by this judge is, begun now."""
    return RunInfo(
        lane=judge.lane,
        rubric=judge.rubric,
        settings=plain(judge.settings),
        remarks=tuple(judge.remarks),
        rationale=rationale,
        redacted=redacted,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=versions(),
        inputs=tuple(inputs),
    )


def plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as they come back from a file, so that they can be compared."""
    return dict(loads(dumps(dict(settings))))


def versions() -> dict[str, str]:
    """Versions of Python, this package and the libraries that can change a figure, where installed."""
    found = {"python": platform.python_version(), "machine": f"{platform.system()} {platform.machine()}"}
    for name in NAMED_VERSIONS:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def info_to_dict(info: RunInfo) -> dict[str, Any]:
    """A RunInfo as strict JSON data."""
    return {
        "format": FORMAT,
        "lane": info.lane.to_dict(),
        "rubric": info.rubric.model_dump(mode="json"),
        "settings": dict(info.settings),
        "remarks": list(info.remarks),
        "rationale": info.rationale,
        "redacted": info.redacted,
        "created": info.created,
        "versions": dict(info.versions),
        "inputs": [asdict(i) for i in info.inputs],
    }


def info_from_dict(data: Mapping[str, Any]) -> RunInfo:
    """The inverse of info_to_dict. KeyError, TypeError or ValueError where the data is no run."""
    if data["format"] != FORMAT:
        raise ValueError(f"format {data['format']!r} is not {FORMAT!r}")
    # Through JSON text: there, keys are strings that strict reading makes whole numbers of again (anchors).
    rubric = Rubric.model_validate_json(dumps(data["rubric"]))
    if rubric.hash != data["lane"]["rubric"]:
        raise ValueError("the rubric is not the one that its hash names")
    return RunInfo(
        lane=Lane(**data["lane"]),
        rubric=rubric,
        settings=data["settings"],
        remarks=tuple(data["remarks"]),
        rationale=data["rationale"],
        redacted=data["redacted"],
        created=data["created"],
        versions=data["versions"],
        inputs=tuple(InputFile(**i) for i in data["inputs"]),
    )


def read_info(folder: Path) -> RunInfo:
    """The run.json of a folder. Raises InputError."""
    path = folder / RUN
    try:
        return info_from_dict(loads(path.read_bytes()))
    except FileNotFoundError as error:
        raise InputError(f"not a run: it holds no {RUN}", where=str(folder)) from error
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", where=str(path)) from error
    except (KeyError, TypeError, ValueError, ValidationError) as error:
        raise InputError(f"not the description of a run: {error}", where=str(path)) from error


def write_info(folder: Path, info: RunInfo) -> None:
    """Put run.json in place, in one step."""
    write_text(folder / RUN, dumps(info_to_dict(info), indent=1) + "\n")


def hash_stream(stream: BinaryIO, name: str) -> InputFile:
    """sha256 and size of what a stream gives, read in blocks. Raises InputError."""
    digest = hashlib.sha256()
    size = 0
    try:
        while block := stream.read(BLOCK_BYTES):
            digest.update(block)
            size += len(block)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", where=name) from error
    return InputFile(name, digest.hexdigest(), size)
