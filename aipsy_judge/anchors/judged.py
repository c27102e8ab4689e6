"""What the ratings of a draw were made by: the rubric of the runs, and the hash of each text that was judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import LaneError
from ..panel import PANEL, read_panel
from ..ratings import item_id
from ..rubric import Rubric, load_rubric
from ..runs import load_run
from ..runs_info import RUN


@dataclass(frozen=True, slots=True)
class Judged:
    """`hashes`: item id -> content hash, of items that runs hold; a ratings table alone has none."""

    rubric: Rubric
    hashes: Mapping[str, str]


def judged_by(paths: Sequence[str | Path], rubric: Rubric | None = None) -> Judged:
    """The rubric of the runs among `paths`; else `rubric`; else the default one.

    Raises LaneError where runs are by unlike rubrics, or not by `rubric`.
    """
    hashes: dict[str, str] = {}
    found = rubric
    for folder in _run_folders(paths):
        run = load_run(folder)
        if found is not None and found.hash != run.rubric.hash:
            unlike = f"judged by the rubric {run.rubric.name} {run.rubric.version}, not by {found.name} {found.version}"
            raise LaneError(unlike, where=str(folder))
        found = run.rubric
        hashes |= {item_id(v.conversation_id, v.turn): v.content_hash for v in run.verdicts}
    return Judged(found if found is not None else load_rubric(), hashes)


def _run_folders(paths: Sequence[str | Path]) -> list[Path]:
    folders: list[Path] = []
    for path in map(Path, paths):
        if (path / PANEL).is_file():
            folders += [path / m.folder for m in read_panel(path).members if (path / m.folder / RUN).is_file()]
        elif (path / RUN).is_file():
            folders.append(path)
    return folders
