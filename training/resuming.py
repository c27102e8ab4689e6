"""What a run keeps beside its results to be gone on with: hidden folders, cleared once the results are in place."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from .processes import first_process

CHECKPOINTS = ".checkpoints"
BEST = ".best"  # adapters of the best rounds of validation
_CHECKPOINT = re.compile(r"checkpoint-(\d+)")


def last_whole_checkpoint(folder: Path) -> Path | None:
    """The last checkpoint that was written to its end. Half ones after it, which a killed program left, are removed,
    by the first process alone."""
    steps = {int(m.group(1)): p for p in folder.glob("checkpoint-*") if (m := _CHECKPOINT.fullmatch(p.name))}
    for step in sorted(steps, reverse=True):
        if (steps[step] / "trainer_state.json").is_file():  # written last
            return steps[step]
        if first_process():
            shutil.rmtree(steps[step])
    return None


def clear(folder: Path) -> None:
    """Drop them from a finished stage. Before it is in place they are what a kill leaves of the training; those that a
    kill leaves in it are no output, and the next call drops them."""
    for name in (CHECKPOINTS, BEST):
        shutil.rmtree(folder / name, ignore_errors=True)
