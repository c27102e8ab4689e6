"""Heatmaps of the panel by itself: what needs no reference, or sets judges against each other."""

from __future__ import annotations

from collections.abc import Sequence

from ..agreement.estimate import Estimate
from ..agreement.figures import PanelFigures
from ..agreement.wording import NAMES
from ..ratings.overall import OVERALL
from .heat import TRUST, WAY, HeatCell, Heatmap, heat_cell, is_found, much, ramp, signed, span_of, trust
from .mapping import CompetenceMap
from .wording import (
    blindness_sentence,
    entropy_sentence,
    family_sentence,
    missing_sentence,
    pair_sentence,
    panel_sentence,
    preference_sentence,
    spoken,
    top_sentence,
)


def blindness(drawn: CompetenceMap) -> Heatmap:
    known = {(b.judge, b.metric): b for b in drawn.blindness}
    metrics = [m for m in drawn.metrics if (drawn.judges[0], m) in known] if drawn.judges else []

    def row(judge: str) -> tuple[HeatCell, ...]:
        whole = known[judge, None]
        found = is_found(drawn, "blindness", judge, None)
        pairs: list[tuple[Estimate, str | None, bool]] = [(whole.loose, None, found), (whole.strict, None, False)]
        pairs += [(known[judge, m].loose, m, False) for m in metrics]
        return tuple(
            heat_cell(e, blindness_sentence(e, judge, m), trust(e, 1), percent=True, found=f) for e, m, f in pairs
        )

    return Heatmap(
        "blindness",
        "Failures of others' that a judge sees",
        "Of the replies that at least one other judge marks a failure, the share that this judge marks too; 'seen by "
        "all others': of those that every other judge marks. A low share is blindness.",
        TRUST,
        ("any failure", "seen by all others", *(spoken(m) for m in metrics)),
        tuple((j, row(j)) for j in drawn.judges),
    )


def preference(drawn: CompetenceMap) -> Heatmap:
    span = max((span_of(drawn, m) for m in drawn.metrics), default=1.0)

    def row(index: int) -> tuple[HeatCell, ...]:
        one = drawn.self_preference[index]
        own = ", ".join(one.own.generators) if one.own is not None else "itself"
        found = is_found(drawn, "self_preference", one.judge, own)
        cleared = one.tested is one.cleared
        readings = (
            (one.premium, found and not cleared),
            (one.cleared, found and cleared),
            (one.own_generator, False),
            (one.own_judge, False),
        )
        return tuple(
            heat_cell(e, preference_sentence(e, one.judge, own), signed(e, span), sign=True, found=f)
            for e, f in readings
        )

    return Heatmap(
        "self-preference",
        "Self-preference",
        f"Does a judge score its own replies higher? In points of the overall score ({drawn.overall}). The premium "
        "sets the true quality of its replies and its general leniency aside, the second also the preferences of the "
        "other judges for theirs; the last two mix quality or leniency in.",
        "Orange: it prefers its own, violet: it is harder on its own; white where the interval holds 0.",
        ("premium", "premium, others' set aside", "own - others' replies", "this - other judges, own replies"),
        tuple((one.judge, row(i)) for i, one in enumerate(drawn.self_preference)),
    )


def families(drawn: CompetenceMap) -> list[Heatmap]:
    names = tuple(dict.fromkeys(f.family for f in drawn.families))
    known = {(f.judge, f.metric, f.family): f for f in drawn.families}
    widest = max((span_of(drawn, m) for m in drawn.metrics), default=1.0)

    def cell(judge: str, metric: str, family: str) -> HeatCell:
        one = known[judge, metric, family]
        sentence = family_sentence(one.bias, one.extra, judge, family, metric, drawn.family_reference)
        span = widest if metric == OVERALL else span_of(drawn, metric)
        found = metric == OVERALL and is_found(drawn, "family", judge, family)
        return heat_cell(one.bias, sentence, signed(one.bias, span), sign=True, found=found)

    def table(metric: str) -> Heatmap:
        about = f"{OVERALL} ({drawn.overall})" if metric == OVERALL else spoken(metric)
        return Heatmap(
            "families-overall" if metric == OVERALL else f"families-{metric}",
            f"Leniency by who wrote the reply: {spoken(metric)}",
            f"How many points above (+) or below (-) {drawn.family_reference} a judge scores, {about}, by the family "
            "of the model that wrote the reply.",
            WAY,
            names,
            tuple((j, tuple(cell(j, metric, f) for f in names)) for j in drawn.judges),
        )

    return [table(m) for m in (OVERALL, *drawn.metrics)] if names else []


def scale_use(drawn: CompetenceMap) -> list[Heatmap]:
    known = {(u.rater, u.metric): u for u in drawn.spread}

    def top(judge: str, metric: str) -> HeatCell:
        use = known[judge, metric]
        sentence = top_sentence(use.top, use.excess, judge, metric, drawn.reference)
        found = is_found(drawn, "ceiling", judge, metric)
        return heat_cell(use.top, sentence, much(use.top, 1), percent=True, found=found)

    def bits(judge: str, metric: str) -> HeatCell:
        use = known[judge, metric]
        sentence = entropy_sentence(use.entropy, use.most, judge, metric)
        relative = (use.entropy.value or 0.0) / use.most
        return heat_cell(use.entropy, sentence, ramp(1 - 2 * relative, "w") if relative < 0.5 else "")

    columns = tuple(spoken(m) for m in drawn.metrics)
    return [
        Heatmap(
            "ceiling",
            "Highest score",
            "The share of replies that get the highest score there is. Where nearly all do, a score says little.",
            "Orange: often.",
            columns,
            tuple((j, tuple(top(j, m) for m in drawn.metrics)) for j in drawn.judges),
        ),
        Heatmap(
            "entropy",
            "Use of the scale",
            "Shannon entropy of the scores in bits: 0, always the same score; a judge that uses every step equally "
            "often reaches the most the scale can carry.",
            "Orange: few steps are used.",
            columns,
            tuple((j, tuple(bits(j, m) for m in drawn.metrics)) for j in drawn.judges),
        ),
    ]


def missing(drawn: CompetenceMap) -> Heatmap:
    kinds = tuple(dict.fromkeys(m.by for m in drawn.missing))
    known = {(m.judge, m.by): m for m in drawn.missing}

    def row(judge: str) -> tuple[HeatCell, ...]:
        first = known[judge, kinds[0]].all
        cells = [heat_cell(first, missing_sentence(first, judge, "in all"), much(first, 1), percent=True)]
        for by in kinds:
            one, found = known[judge, by], is_found(drawn, "silence", judge, by)
            for e, where, mark in ((one.inside, f"with a {by}", found), (one.outside, f"without a {by}", False)):
                cells.append(heat_cell(e, missing_sentence(e, judge, where), much(e, 1), percent=True, found=mark))
        return tuple(cells)

    return Heatmap(
        "missing",
        "Missing scores",
        "The share of replies on which a judge has no score where others have one, and whether that happens where it "
        "matters: crises and failures are taken from the other raters. What a judge never saw cannot count against it.",
        "Orange: often.",
        ("all", *(f"{where} {by}" for by in kinds for where in ("with a", "without a"))),
        tuple((j, row(j)) for j in drawn.judges) if kinds else (),
    )


def between(drawn: CompetenceMap) -> Heatmap:
    pairs = dict.fromkeys((p.rater, p.reference) for p in drawn.between)
    known = {(p.rater, p.reference, p.metric): p for p in drawn.between}

    def cell(first: str, second: str, metric: str) -> HeatCell:
        e = known[first, second, metric]["icc"]
        return heat_cell(e, pair_sentence(e, first, metric, second, None), trust(e, 1))

    return Heatmap(
        "between",
        "Judges against each other",
        "ICC(A,1) of every two judges. Judges may agree with each other far more than with people: agreement among "
        "them proves nothing.",
        TRUST,
        tuple(spoken(m) for m in drawn.metrics),
        tuple((f"{a} / {b}", tuple(cell(a, b, m) for m in drawn.metrics)) for a, b in pairs),
    )


def together(drawn: CompetenceMap) -> Heatmap:
    return _panel_heat(
        "together",
        "All judges together",
        "Krippendorff's alpha and ICC of the whole panel; ICC(A,k) is that of the panel's mean. 'N/A or not': do they "
        "agree on where a quality applies at all? Agreement of judges proves nothing.",
        "the judges",
        drawn.panels,
    )


def experts(drawn: CompetenceMap) -> Heatmap:
    return _panel_heat(
        "experts",
        "The experts among themselves",
        "The same figures for the people who are held to be right: no judge can agree with them better than they agree "
        "with each other.",
        "the experts",
        drawn.experts,
    )


def _panel_heat(id: str, title: str, lead: str, who: str, panels: Sequence[PanelFigures]) -> Heatmap:
    names = ("alpha", "alpha_nominal", "alpha_interval", "icc", "icc_ak")

    def row(panel: PanelFigures) -> tuple[HeatCell, ...]:
        figures: Sequence[Estimate] = [*(panel[n] for n in names), panel.applicability]
        return tuple(heat_cell(e, panel_sentence(e, panel.metric, who), trust(e, 1)) for e in figures)

    return Heatmap(
        id,
        title,
        lead,
        TRUST,
        (*(NAMES[n] for n in names), "N/A or not"),
        tuple((spoken(p.metric), row(p)) for p in panels),
    )
