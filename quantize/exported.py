"""Whether a judge's weights are what its training run exported: else it would carry another training's temperatures,
recipe and commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from aipsy_judge.errors import InputError
from aipsy_judge.manifest import JudgeFile

from .stage_record import STAGE, StageRecord, read_stage

TRAINING, EXPORT, MERGED = "sft", "export", "merged"
_MERGED_MODEL = "model"  # the folder among the outputs of the stage that merges


def check_exported(run: Path, rows: Sequence[JudgeFile]) -> None:
    """Raise InputError unless the trained part of `rows`, the adapter where there is one, else the model, is an output
    of the run's export that rests on the adapter which its training made.

    By the hashes that the stages recorded: a run that was trained anew has another adapter than what was exported
    before rests on.
    """
    adapter = [row for row in rows if row.role == "adapter"]
    trained = adapter or [row for row in rows if row.role != "adapter"]
    wanted = read_stage(run / TRAINING).folder_sha256("adapter")
    found = [stage for stage in _exports(run) if _holds(stage, trained)]
    what = trained[0].name if len(trained) == 1 else "the model's folder"
    if not found:
        raise InputError(
            f"{what} is not what the export of this run made",
            where=str(run),
            hint="Name the run that it was trained in, or make it there (python -m training.export RECIPE). Without "
            "`run` a judge tells nothing of its training and has the temperatures that its description names.",
        )
    if wanted not in [_adapter(run, stage) for stage in found]:
        raise InputError(
            f"{what} was exported from another training than the one that lies in {TRAINING}/",
            where=str(run),
            hint="Make it anew (python -m training.export RECIPE), verify and assemble that, or name the run of then.",
        )


def _exports(run: Path) -> Iterator[StageRecord]:
    for record in sorted((run / EXPORT).glob(f"*/{STAGE}")):
        yield read_stage(record.parent)


def _holds(stage: StageRecord, rows: Sequence[JudgeFile]) -> bool:
    """A file under any name; a folder's files under their own, together in one folder."""
    if len(rows) == 1:
        return rows[0].sha256 in stage.outputs.values()
    folders = {name.partition("/")[0] for name in stage.outputs if "/" in name}
    return any(all(stage.outputs.get(f"{f}/{row.name}") == row.sha256 for row in rows) for f in folders)


def _adapter(run: Path, stage: StageRecord) -> str | None:
    """The hash of the adapter that a stage of the export rests on, by way of the merged model where it rests on that;
    None where it rests on none, or on a merged model that is no longer there."""
    if "merged" not in stage.inputs:
        return stage.inputs.get("adapter")
    merged = read_stage(run / EXPORT / MERGED)
    return merged.inputs.get("adapter") if merged.folder_sha256(_MERGED_MODEL) == stage.inputs["merged"] else None
