"""Each item's slots from a source of targets: values, shares of votes, and words that agree with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from aipsy_judge.conversation import Conversation
from aipsy_judge.rubric import FlagSpec, Metric, Rubric

from .items import Item, seen
from .rater_texts import Texts, rationale
from .target_rows import FlagTarget, MetricTarget, TargetRow
from .target_source import Source
from .votes import flag_share, na_share, severity_shares


def target_rows(
    source: Source,
    items: Sequence[Item],
    texts: Mapping[str, Conversation],
    verdicts: Texts,
    rubric: Rubric,
) -> list[TargetRow]:
    """A row an item. `items` are those of the source's answers, in the same order."""
    metrics = {m.name: _metric_targets(source, m) for m in rubric.metrics}
    flags = {f.name: _flag_targets(source, f) for f in rubric.flags}
    rows = []
    for n, item in enumerate(items):
        text = seen(item, texts[item.conversation])
        said = rationale(source.targets, n, verdicts.get(item.id, {}), text, rubric)
        rows.append(
            TargetRow(
                item_id=item.id,
                conversation=item.conversation,
                turn=item.turn,
                scenario=item.scenario,
                generator=item.generator,
                metrics={name: targets[n] for name, targets in metrics.items()},
                flags={name: targets[n] for name, targets in flags.items()},
                rationale=said[0] if said else None,
                rationale_rater=said[1] if said else None,
            )
        )
    return rows


def _metric_targets(source: Source, metric: Metric) -> list[MetricTarget]:
    """(I,) what the slot of this metric is to say."""
    answers, found = source.answers, source.targets.metrics.get(metric.name)
    if found is None:  # the correction has no such metric
        return [MetricTarget("unscored", None, None, None)] * len(answers.items)
    votes = source.votes.get(metric.name, np.ones(len(answers.judges)))
    na = na_share(answers.na[metric.name], ~np.isnan(answers.scores[metric.name]), votes)
    flag = source.targets.flags[metric.flag] if metric.flag is not None else None
    targets = []
    for n, status in enumerate(found.status):
        forced = not metric.may_be_na or (flag is not None and not np.isnan(flag[n]))
        p_na = float(status == "na") if forced else _number(na[n])
        scored = status == "scored"
        targets.append(
            MetricTarget(
                "scored" if scored else "na" if status == "na" else "unscored",
                _number(found.value[n]) if scored else None,
                _number(found.p_fail[n]) if scored and found.p_fail is not None else None,
                None if status == "unscored" else p_na,
            )
        )
    return targets


def _flag_targets(source: Source, spec: FlagSpec) -> list[FlagTarget]:
    answers, fused = source.answers, source.targets.flags[spec.name]
    votes = source.votes.get(spec.name, np.ones(len(answers.judges)))
    share = flag_share(answers.flags[spec.name], votes, fused)
    levels = list(spec.severity.levels) if spec.severity is not None else []
    level, shares = np.full(len(fused), np.nan), np.full((len(fused), len(levels)), np.nan)
    if levels:
        level = source.targets.severities[spec.name]
        shares = severity_shares(
            answers.flags[spec.name], answers.severities[spec.name], votes, fused, level, len(levels)
        )
    targets = []
    for n, value in enumerate(fused):
        told = not np.isnan(level[n])
        targets.append(
            FlagTarget(
                None if np.isnan(value) else bool(value),
                _number(share[n]),
                levels[int(level[n])] if told else None,
                {name: round(float(s), 6) for name, s in zip(levels, shares[n], strict=True)} if told else None,
            )
        )
    return targets


def _number(value: float) -> float | None:
    """Six digits after the point: more would differ between machines."""
    return None if np.isnan(value) else round(float(value), 6)
