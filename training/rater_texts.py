"""What raters wrote beside their scores: the verdicts of the runs and panels among the ratings, by item."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from aipsy_judge.conversation import Conversation
from aipsy_judge.correction import rationale_source
from aipsy_judge.correction.target import MetricTarget, Targets
from aipsy_judge.errors import InputError, LaneError
from aipsy_judge.panel import read_panel
from aipsy_judge.panel.panel_file import PANEL
from aipsy_judge.ratings import item_id
from aipsy_judge.rubric import Rubric
from aipsy_judge.runs import load_run
from aipsy_judge.runs_info import RUN
from aipsy_judge.verdict import Verdict

from .items import Item, seen

Texts = Mapping[str, Mapping[str, Verdict]]


def rater_verdicts(paths: Sequence[Path], rubric: Rubric) -> Texts:
    """item -> judge -> its verdict. Tables carry none. LaneError where a run was made with another rubric."""
    found: defaultdict[str, dict[str, Verdict]] = defaultdict(dict)
    for path in _runs(paths):
        run = load_run(path)
        if run.lane.rubric != rubric.hash:
            raise LaneError(f"made with another rubric than {rubric.name}", where=str(path))
        for verdict in run.verdicts:
            found[item_id(verdict.conversation_id, verdict.turn)][run.lane.judge] = verdict
    return found


def refuse_other_texts(items: Sequence[Item], conversations: Mapping[str, Conversation], verdicts: Texts) -> None:
    """A verdict is on the text that the recipe's files hold under its id, else InputError: such a score would train
    what nobody said of this text."""
    unlike = []
    for item in items:
        own = seen(item, conversations[item.conversation]).content_hash
        unlike += [f"{item.id} by {judge}" for judge, v in verdicts.get(item.id, {}).items() if v.content_hash != own]
    if unlike:
        raise InputError(
            f"{len(unlike)} verdicts are on other texts than the conversations hold: {', '.join(unlike[:5])}",
            hint="Name the conversations that were judged in data.conversations.",
        )


def rationale(
    targets: Targets, place: int, verdicts: Mapping[str, Verdict], text: Conversation, rubric: Rubric
) -> tuple[str, str] | None:
    """(words, rater) for the item at `place`, of a rater who says what the target says and quotes the text, or None."""
    judge = rationale_source(_one(targets, place), verdicts, text, rubric) if verdicts else None
    words = verdicts[judge].rationale if judge is not None else None
    return (words, judge) if words and judge is not None else None


def _runs(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if (path / PANEL).is_file():
            yield from (path / m.folder for m in read_panel(path).members if (path / m.folder / RUN).is_file())
        elif path.is_dir() or path.suffix.lower() == ".json":
            yield path


def _one(targets: Targets, place: int) -> Targets:
    """The targets of one item."""

    def cut(metric: MetricTarget) -> MetricTarget:
        here = slice(place, place + 1)
        return MetricTarget(
            metric.status[here],
            metric.raw[here],
            metric.value[here],
            None if metric.p_fail is None else metric.p_fail[here],
            None if metric.fails is None else metric.fails[here],
            metric.no_p_fail,
        )

    def alone(columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {name: values[place : place + 1] for name, values in columns.items()}

    return Targets(
        (targets.items[place],),
        {name: cut(metric) for name, metric in targets.metrics.items()},
        alone(targets.flags),
        alone(targets.severities),
    )
