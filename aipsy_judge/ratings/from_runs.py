"""From runs of this project (`score --out`, `score --json`) to ratings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import InputError, LaneError
from ..rubric import FlagSpec, Rubric
from ..runs import RunView, load_run
from ..units import Unit, units
from ..verdict import Flag, NotApplicable, Score, Scored, Unscored, Verdict
from .reading import ratings_from_rows
from .table import Ratings

GENERATOR_KEYS = ("generator", "model")
SCENARIO_KEYS = ("scenario", "scenario_id", "sample")


def item_id(conversation_id: str, turn: int | None) -> str:
    """How an item is named everywhere: "chat-7:t03" for a turn, the conversation's id for a whole one."""
    return conversation_id if turn is None else f"{conversation_id}:t{turn:02d}"


def from_runs(paths: Sequence[str | Path], *, names: Sequence[str] | None = None, expected: bool = False) -> Ratings:
    """One table from run folders or result files, a rater a run.

    names     what to call the raters, one a run; default: the judge's name in the run's lane
    expected  take the mean of the judge's distribution over the scale, where the run has it, instead of the score

    Flags become metrics on 0..1, their severity one on 0..(levels - 1). What was not reached is unscored.
    Raises LaneError for runs by unlike rubrics, InputError where one id stands for two texts, RatingsError where a
    judge rated an item twice.
    """
    if names is not None and len(names) != len(paths):
        raise InputError(f"{len(names)} names for {len(paths)} runs")
    runs = [load_run(path) for path in paths]
    raters = names if names is not None else [run.lane.judge for run in runs]
    return ratings_of_runs(list(zip(map(str, paths), raters, runs, strict=True)), expected=expected)


def ratings_of_runs(runs: Sequence[tuple[str, str, RunView]], *, expected: bool = False) -> Ratings:
    """The same from runs in memory, each as (name of the run, name of the rater, run)."""
    _refuse_unlike([run for _, _, run in runs])
    texts: dict[str, str] = {}
    rows = [
        {**row, "rater": rater, "run": name} for name, rater, run in runs for row in _rows(run, expected, texts, name)
    ]
    return ratings_from_rows(rows, where=", ".join(name for name, _, _ in runs))


def _refuse_unlike(runs: Sequence[RunView]) -> None:
    hashes = {run.lane.rubric: run.rubric.name for run in runs}
    if len(hashes) > 1:
        raise LaneError(f"the runs were made with unlike rubrics: {', '.join(hashes.values())}")


def _rows(run: RunView, expected: bool, texts: dict[str, str], path: str) -> Iterator[dict[str, Any]]:
    about = {c.id: c.metadata for c in run.conversations}
    for unit in units(run):
        item = item_id(unit.conversation_id, unit.turn)
        if unit.verdict is not None:
            judged = unit.verdict.content_hash
            if texts.setdefault(item, judged) != judged:
                raise InputError(
                    f"{item} stands for another text in an earlier run",
                    where=path,
                    hint="Ratings of unlike texts cannot be compared: score the same files with every judge.",
                )
        known = about.get(unit.conversation_id, {})
        item_cells = {
            "item_id": item,
            "rater_kind": "judge",
            "conversation": unit.conversation_id,
            "turn": unit.turn,
            "generator": generator_of(known),
            "scenario": _first(known, SCENARIO_KEYS),
        }
        for cells in [*_metric_rows(run.rubric, unit, expected), *_flag_rows(run.rubric, unit.verdict)]:
            yield {**item_cells, **cells}


def generator_of(metadata: Mapping[str, Any]) -> str | None:
    """Who wrote the replies of a conversation, as its metadata says; None where it does not."""
    return _first(metadata, GENERATOR_KEYS)


def _first(metadata: Mapping[str, Any], keys: Sequence[str]) -> str | None:
    return next((str(metadata[k]) for k in keys if isinstance(metadata.get(k), str | int)), None)


def _metric_rows(rubric: Rubric, unit: Unit, expected: bool) -> Iterator[dict[str, Any]]:
    for metric in rubric.metrics:
        yield {
            "metric": metric.name,
            "scale_min": metric.scale.minimum,
            "scale_max": metric.scale.maximum,
            **_cell(unit.scores[metric.name], expected),
        }


def _cell(score: Score, expected: bool) -> dict[str, Any]:
    match score:
        case Scored(value, reading):
            mean = reading.expected if reading is not None and expected else None
            return {"score": value if mean is None else mean, "status": "scored"}
        case NotApplicable():
            return {"score": None, "status": "na"}
        case Unscored():
            return {"score": None, "status": "unscored"}


def _flag_rows(rubric: Rubric, verdict: Verdict | None) -> Iterator[dict[str, Any]]:
    for spec in rubric.flags:
        flag = verdict.flags.get(spec.name) if verdict is not None else None
        value = None if flag is None or flag.value is None else float(flag.value)
        yield {"metric": spec.name, "scale_min": 0, "scale_max": 1, **_number(value)}
        if spec.severity is not None:
            top = len(spec.severity.levels) - 1
            yield {"metric": spec.severity.name, "scale_min": 0, "scale_max": top, **_number(_level(spec, flag))}


def _level(spec: FlagSpec, flag: Flag | None) -> float | None:
    """How many levels above "not set" the severity lies; None where it could not be read."""
    levels = list(spec.severity.levels) if spec.severity is not None else []
    if flag is None or flag.value is None:
        return None
    named = flag.severity if flag.severity is not None else levels[0] if not flag.value else None
    return float(levels.index(named)) if named in levels else None


def _number(value: float | None) -> dict[str, Any]:
    return {"score": value, "status": "unscored" if value is None else "scored"}
