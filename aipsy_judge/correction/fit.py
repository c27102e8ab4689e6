"""Fit a correction to a ratings table: metric by metric, with its figures out of fold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .. import __version__
from ..agreement import Bootstrap
from ..errors import RatingsError
from ..ratings import Ratings, Yardstick, reference_raters
from .fit_flag import fit_flag
from .fit_record import fit_record
from .metric_data import MetricData, Tail, metric_data
from .options import FitOptions
from .record import Correction, MetricRecord, RubricRef


def fit_correction(
    ratings: Ratings,
    yardstick: Yardstick,
    *,
    experts: Sequence[str] = (),
    judges: Sequence[str] = (),
    metrics: Sequence[str] = (),
    options: FitOptions | None = None,
    often: Bootstrap | None = None,
) -> Correction:
    """`experts`, `judges`, `metrics`: default all of the table (whoever is an expert or adjudicated; a judge; scored).

    Every metric that a judge scored gets a record; one with too few anchors is the equal mean and says so. Raises
    RatingsError where there is no judge, nobody to be right, an unknown name, or no anchor on any metric.
    """
    options, often = options or FitOptions(), often or Bootstrap()
    held = reference_raters(ratings, experts)
    panel = tuple(judges) or tuple(j for j in ratings.judges if j not in held)
    _refuse(ratings, held, panel)
    found: dict[str, MetricRecord] = {}
    leniency: dict[str, dict[str, float]] = {}
    for metric in metrics or yardstick.scored:
        if ratings.matrix(metric, panel).scored.any():
            data = _data(ratings, yardstick, metric, panel, held, options)
            critical = yardstick.critical.get(metric)
            found[metric] = fit_record(data, None if critical is None else Tail(critical), options, often)
            leniency |= _leniency(ratings, metric, held, data)
    _refuse_without_anchors(found, held, panel)
    flags = {f: fit_flag(ratings, f, panel, held) for f in yardstick.flags if ratings.matrix(f, panel).scored.any()}
    named = yardstick.rubric is not None and yardstick.rubric_hash is not None
    return Correction(
        made_by="aipsy-judge",
        format="aipsy-correction-1",
        version=__version__,
        profile=options.profile,
        rubric=RubricRef(str(yardstick.rubric), str(yardstick.rubric_hash)) if named else None,
        judges=list(panel),
        experts=list(held),
        leniency=leniency,
        seed=options.seed,
        metrics=found,
        flags=flags,
        notes=[*yardstick.notes, *ratings.warnings],
    )


def _refuse(ratings: Ratings, held: Sequence[str], panel: Sequence[str]) -> None:
    if not held:
        raise RatingsError("nobody is an expert in this table", hint="Name one with --expert RATER.")
    unknown = [j for j in panel if j not in ratings.raters]
    if unknown:
        raise RatingsError(f"no rater {', '.join(unknown)}; there are: {', '.join(ratings.raters)}")
    both = [j for j in panel if j in held]
    if both:
        raise RatingsError(f"{', '.join(both)} cannot be corrected and be right at once")
    if not panel:
        raise RatingsError("no judge in this table", hint="Name one with --rater RATER.")


def _refuse_without_anchors(found: Mapping[str, MetricRecord], held: Sequence[str], panel: Sequence[str]) -> None:
    if not found:
        raise RatingsError("no judge scored any of the metrics")
    if not any(record.anchors for record in found.values()):
        raise RatingsError(
            f"no anchor on any metric: {', '.join(held)} scored no item that {', '.join(panel)} scored",
            hint="Give ratings by an expert and a judge of the same items; N/A and unscored rows are no anchors.",
        )


def _leniency(ratings: Ratings, metric: str, held: Sequence[str], data: MetricData) -> dict[str, dict[str, float]]:
    """Of each expert on this metric, where it was estimated; adjudicated ratings have none."""
    if data.leniency is None:
        return {}
    free = [e for e in held if ratings.kinds[e] != "adjudicated"]
    return {metric: dict(zip(free, data.leniency.tolist(), strict=True))}


def _data(
    ratings: Ratings,
    yardstick: Yardstick,
    metric: str,
    panel: Sequence[str],
    held: Sequence[str],
    options: FitOptions,
) -> MetricData:
    low, high = ratings.scales[metric]
    return metric_data(
        ratings,
        metric,
        judges=panel,
        experts=held,
        tail=Tail(yardstick.critical.get(metric, (low + high) / 2)),
        beside=yardstick.scored if options.others else (),
        severity=options.severity,
    )
