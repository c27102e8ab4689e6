"""From Inspect logs of aipsy-bench (`.eval`) to ratings: what each judge of its panel said of each turn."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import RatingsError, TranscriptError
from ..transcripts.archive import Archive
from .from_runs import item_id
from .reading import ratings_from_rows
from .table import Ratings

# The benchmark's scale and severities (aipsy-bench data v1); null stands for N/A there, an error for no score.
SCALE = (0, 5)
SEVERITIES = ("none", "indirect", "direct")


def from_inspect_eval(paths: str | Path | Sequence[str | Path]) -> Ratings:
    """One table from aipsy-bench logs. Rater: the judge's model snapshot; generator: the model under test.

    Items are called as `score` calls the turns of the same log ("s06_epoch_1:t03"); with several logs the file's
    stem stands before ("older/s06_epoch_1:t03"). A judge that failed at a turn is unscored there. Raises RatingsError
    where a log holds no scores of the panel, TranscriptError where the file is damaged.
    """
    logs = [Path(p) for p in ([paths] if isinstance(paths, str | Path) else paths)]
    stems = [log.stem for log in logs]
    if len(set(stems)) < len(stems):
        raise RatingsError("two logs of one name", where=", ".join(map(str, logs)), hint="Rename one of them.")
    rows: list[dict[str, Any]] = []
    for log in logs:
        found = list(_log_rows(log, f"{log.stem}/" if len(logs) > 1 else ""))
        if not found:
            raise RatingsError(
                "no judge's scores in this log",
                where=str(log),
                hint="It must be written by aipsy-bench's panel scorer, with at least one sample that was scored.",
            )
        rows += found
    return ratings_from_rows(rows, where=", ".join(map(str, logs)))


def _log_rows(path: Path, prefix: str) -> Iterator[dict[str, Any]]:
    try:
        with path.open("rb") as file:
            archive = Archive(file, str(path))
            header = _entry(archive, "header.json", path)
            about = header.get("eval") or {}
            for name in archive.names:
                if name.startswith("samples/") and name.endswith(".json"):
                    sample = _entry(archive, name, path)
                    where = f"{path}, {name}"
                    try:
                        rows = list(_sample_rows(sample, about, prefix))
                    except (KeyError, TypeError, ValueError, AttributeError) as error:
                        raise RatingsError(f"its scores have an unknown shape ({error!r})", where=where) from error
                    yield from rows
    except OSError as error:
        raise RatingsError(f"cannot be read: {error.strerror or error}", where=str(path)) from error


def _entry(archive: Archive, name: str, path: Path) -> dict[str, Any]:
    if name not in archive.names:
        raise RatingsError(f"not an Inspect log: it has no {name}", where=str(path))
    blocks = []
    with archive.open(name) as file:
        while block := file.read(1 << 20):
            blocks.append(block)
    try:
        data = json.loads(b"".join(blocks))  # Inspect writes NaN; a score that is one is refused with its row
    except ValueError as error:
        raise TranscriptError(f"not valid JSON: {error}", where=f"{path}, {name}") from error
    if not isinstance(data, dict):
        raise RatingsError("not an object", where=f"{path}, {name}")
    return data


def _sample_rows(sample: Mapping[str, Any], about: Mapping[str, Any], prefix: str) -> Iterator[dict[str, Any]]:
    conversation = f"{prefix}{sample['id']}_epoch_{sample['epoch']}"
    for score in (sample.get("scores") or {}).values():
        told = score.get("metadata") or {}
        turns = told.get("per_turn") or []
        if not any("per_judge" in turn for turn in turns):
            continue
        cells = {
            "rater_kind": "judge",
            "conversation": conversation,
            "scenario": told.get("scenario_id"),
            "generator": about.get("model"),
            "run": about.get("eval_id"),
        }
        for row in [*_turn_rows(turns, conversation), *_failure_rows(told, conversation)]:
            yield {**cells, **row}


def _turn_rows(turns: Sequence[Mapping[str, Any]], conversation: str) -> Iterator[dict[str, Any]]:
    for turn in turns:
        for judge in turn["per_judge"]:
            named = {
                "item_id": item_id(conversation, turn["turn"]),
                "turn": turn["turn"],
                "rater": judge.get("model_snapshot") or judge["judge"],
            }
            for metric, score in judge["scores"].items():
                yield {**named, **_scored(metric, score, SCALE)}
            flag, severity = judge.get("crisis_detected"), judge.get("crisis_severity")
            yield {**named, **_known("crisis_detected", None if flag is None else int(flag), (0, 1))}
            level = SEVERITIES.index(severity) if severity is not None else None
            yield {**named, **_known("crisis_severity", level, (0, len(SEVERITIES) - 1))}


def _failure_rows(told: Mapping[str, Any], conversation: str) -> Iterator[dict[str, Any]]:
    """A judge that gave no verdict at a turn: unscored on everything that judges score."""
    turns, failures = told["per_turn"], told.get("judge_failures") or []
    judges = [j for turn in turns for j in turn["per_judge"]]
    metrics = dict.fromkeys(m for j in judges for m in j["scores"])
    scales = {**dict.fromkeys(metrics, SCALE), "crisis_detected": (0, 1), "crisis_severity": (0, len(SEVERITIES) - 1)}
    for failure in failures:
        for metric, scale in scales.items():
            yield {
                "item_id": item_id(conversation, failure["turn"]),
                "turn": failure["turn"],
                "rater": _snapshot(judges, failure["judge"], told),
                **_known(metric, None, scale),
            }


def _snapshot(judges: Sequence[Mapping[str, Any]], judge: str, told: Mapping[str, Any]) -> str:
    """The model behind a judge's name: as its other verdicts say, else as the run was set up."""
    seen = Counter(str(j["model_snapshot"]) for j in judges if j["judge"] == judge and j.get("model_snapshot"))
    if seen:
        return seen.most_common(1)[0][0]
    return str((told.get("judge_versions") or {}).get(judge, judge))


def _scored(metric: str, score: Any, scale: tuple[int, int]) -> dict[str, Any]:
    status = "na" if score is None else "scored"
    return {"metric": metric, "score": score, "status": status, "scale_min": scale[0], "scale_max": scale[1]}


def _known(metric: str, score: int | None, scale: tuple[int, int]) -> dict[str, Any]:
    status = "unscored" if score is None else "scored"
    return {"metric": metric, "score": score, "status": status, "scale_min": scale[0], "scale_max": scale[1]}
