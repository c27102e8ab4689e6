"""panel.json: which judges read which input. It binds them: every judge of a panel reads the same items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..atomic import write_text
from ..errors import InputError, LaneError
from ..runs_info import InputFile
from ..strict_json import dumps, loads
from .member import Member, make_members

PANEL = "panel.json"
RATINGS = "ratings.csv"
FORMAT = "aipsy-judge-panel-1"


@dataclass(frozen=True, slots=True)
class Panel:
    """What a panel is, whatever has come of it so far. `rubric` is the hash; `created` ISO 8601, UTC."""

    rubric: str
    members: tuple[Member, ...]
    inputs: tuple[InputFile, ...]
    created: str


def plan_panel(
    folder: Path, names: Sequence[str], rubric: str, inputs: Sequence[InputFile], *, resume: bool
) -> tuple[Panel, tuple[Member, ...]]:
    """The panel of a folder, and those of its members to be asked now. Writes nothing.

    A folder that holds a panel is gone on with where `resume` is True: without names all of its judges are asked for
    what is missing, with names those, and a new one joins. Raises InputError for a folder that cannot be used or
    other input than before, LaneError for another rubric.
    """
    known = _known(folder, resume)
    if known is None:
        if not names:
            raise InputError("no judge is named", hint="Name each with --judge NAME, again and again.")
        members = make_members(names)
        return Panel(rubric, members, tuple(inputs), datetime.now(UTC).isoformat(timespec="seconds")), members
    if known.rubric != rubric:
        raise LaneError(
            f"this panel was begun with the rubric {known.rubric[:12]}, not {rubric[:12]}", where=str(folder)
        )
    if _contents(known.inputs) != _contents(inputs):
        raise InputError(
            "this panel was begun with other files",
            where=str(folder),
            hint="All judges of a panel read the same items: give the same files, or name another folder.",
        )
    asked = make_members(names, known.members) if names else known.members
    joined = [m for m in asked if m not in known.members]
    return replace(known, members=(*known.members, *joined)), asked


def write_panel(folder: Path, panel: Panel) -> None:
    """Put panel.json in place, in one step; the folder is made if need be, for its owner's eyes only."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot be made: {error.strerror or error}", where=str(folder)) from error
    write_text(folder / PANEL, dumps({"made_by": "aipsy-judge", "format": FORMAT, **asdict(panel)}, indent=1) + "\n")


def read_panel(folder: Path) -> Panel:
    """The panel.json of a folder. Raises InputError."""
    path = folder / PANEL
    try:
        return _from_dict(loads(path.read_bytes()))
    except FileNotFoundError as error:
        raise InputError(f"not a panel: it holds no {PANEL}", where=str(folder)) from error
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", where=str(path)) from error
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"not the description of a panel: {error!r}", where=str(path)) from error


def _known(folder: Path, resume: bool) -> Panel | None:
    """The panel that a folder holds; None where it is empty or not there."""
    if folder.exists() and not folder.is_dir():
        raise InputError("is a file, a folder was expected", where=str(folder))
    # A panel killed at its very start leaves nothing but the beginning of its description.
    if not folder.exists() or all(p.name.startswith(f".{PANEL}.") for p in folder.iterdir()):
        return None
    known = read_panel(folder)
    if not resume:
        raise InputError(
            "this folder holds a panel already",
            where=str(folder),
            hint="--resume goes on with it and asks only for what is missing; or name another folder.",
        )
    return known


def _contents(inputs: Sequence[InputFile]) -> list[str]:
    return sorted(i.sha256 for i in inputs)


def _from_dict(data: Mapping[str, Any]) -> Panel:
    if data["format"] != FORMAT:
        raise ValueError(f"format {data['format']!r} is not {FORMAT!r}")
    return Panel(
        rubric=data["rubric"],
        members=tuple(Member(**m) for m in data["members"]),
        inputs=tuple(InputFile(**i) for i in data["inputs"]),
        created=data["created"],
    )
