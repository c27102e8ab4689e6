"""Heatmaps of the judges against the reference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..agreement.estimate import Estimate
from ..agreement.figures import PairFigures
from ..ratings.overall import OVERALL
from .heat import TRUST, WAY, HeatCell, Heatmap, Shade, distance, heat_cell, is_found, signed, span_of, trust, trust_auc
from .mapping import CompetenceMap
from .wording import pair_sentence, spoken


@dataclass(frozen=True, slots=True)
class _Measure:
    id: str
    statistic: str
    title: str
    lead: str
    colours: str
    shade: Callable[[Estimate, float], Shade]


_AGAINST = (
    _Measure(
        "bias",
        "bias",
        "Leniency",
        "How many points higher (+) or lower (-) than {reference} a judge scores on average.",
        WAY,
        signed,
    ),
    _Measure(
        "recall",
        "failure_recall",
        "Failures found",
        "Of the replies that {reference} puts below the threshold, the share that the judge puts below it too; where "
        "it says N/A or gives no score it finds nothing.",
        TRUST,
        trust,
    ),
    _Measure(
        "precision",
        "failure_precision",
        "Alarms that are right",
        "Of the replies that the judge puts below the threshold, the share that {reference} puts below it too. Where "
        "{reference} says N/A the alarm is false.",
        TRUST,
        trust,
    ),
    _Measure(
        "auc",
        "failure_auc",
        "Failures told apart at any cut",
        "How often the judge puts a reply that fails by {reference} lower than one that passes (AUC); 0.5 is a coin.",
        "Orange: hardly better than a coin, teal: well.",
        trust_auc,
    ),
    _Measure(
        "agreement",
        "icc",
        "Agreement",
        "ICC(A,1): agreement on the very score; leniency costs. 1 is full agreement, 0 none.",
        TRUST,
        trust,
    ),
    _Measure(
        "order",
        "spearman",
        "Same order",
        "Spearman's rank correlation: does the judge put the replies in the order of {reference}? Leniency is free.",
        TRUST,
        trust,
    ),
    _Measure(
        "miss",
        "mae",
        "Typical miss",
        "Mean distance from the score of {reference}, in points.",
        "Orange: far.",
        distance,
    ),
)


def against_reference(drawn: CompetenceMap) -> list[Heatmap]:
    if drawn.reference is None:
        return []
    known = {(p.rater, p.metric): p for p in drawn.against}
    columns = (OVERALL, *drawn.metrics)
    return [
        Heatmap(
            measure.id,
            measure.title,
            measure.lead.format(reference=drawn.reference),
            measure.colours,
            tuple(spoken(m) for m in columns),
            tuple((r, tuple(_pair_cell(drawn, measure, known[r, m]) for m in columns)) for r in drawn.raters),
        )
        for measure in _AGAINST
    ]


def _pair_cell(drawn: CompetenceMap, measure: _Measure, pair: PairFigures) -> HeatCell:
    if not pair.has(measure.statistic):
        return HeatCell("–", "", 0, f"{spoken(pair.metric)}: no figure of this kind.", "")
    estimate = pair[measure.statistic]
    sentence = pair_sentence(estimate, pair.rater, pair.metric, pair.reference, drawn.critical.get(pair.metric))
    return heat_cell(
        estimate,
        sentence,
        measure.shade(estimate, span_of(drawn, pair.metric)),
        percent=measure.statistic in ("failure_recall", "failure_precision"),
        sign=measure.statistic == "bias",
        found=measure.statistic == "bias" and is_found(drawn, "bias", pair.rater, pair.metric),
    )


def flags(drawn: CompetenceMap) -> Heatmap | None:
    pairs = {(p.rater, p.metric): p for p in drawn.against if p.metric in drawn.flags}
    if not pairs:
        return None
    names = (("kappa", "agreement"), ("flag_recall", "found"), ("flag_precision", "right"))
    return Heatmap(
        "flags",
        "Flags",
        f"Yes or no: agreement with {drawn.reference} beyond chance (kappa), the share of its cases that the judge "
        "flags (found), and the share of the judge's flags that are so (right). No answer is no flag. A crisis flag "
        "should rather err towards yes.",
        TRUST,
        tuple(f"{spoken(f)}: {word}" for f in drawn.flags for _, word in names),
        tuple(
            (
                r,
                tuple(
                    heat_cell(
                        pairs[r, f][name],
                        pair_sentence(pairs[r, f][name], r, f, pairs[r, f].reference, None),
                        trust(pairs[r, f][name], 1),
                        percent=name != "kappa",
                    )
                    for f in drawn.flags
                    for name, _ in names
                ),
            )
            for r in drawn.raters
        ),
    )
