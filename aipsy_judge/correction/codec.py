"""Between the arrays of a fit (unit scale) and its record (points of the scale)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .design import Design
from .fill import Fill
from .metric_fit import Basis
from .numbers import Floats
from .record import Centres, Line

Scale = tuple[float, float]


def to_line(
    design: Design,
    coefficients: Floats,
    scale: Scale,
    judges: Sequence[str],
    others: Mapping[str, Scale],
) -> Line:
    """(K,) coefficients in points of the scale."""
    low, span = scale[0], scale[1] - scale[0]
    part = {name: coefficients[place] for name, place in design.blocks.items()}
    steps = part["steps"].reshape(len(judges), -1) * span
    return Line(
        at_centre=float(low + span * part["offset"][0]),
        judges=dict(zip(judges, part["judges"].tolist(), strict=True)),
        steps=dict(zip(judges, steps.tolist(), strict=True)) if np.any(steps) else {},
        others={m: float(c) * span / (s[1] - s[0]) for (m, s), c in zip(others.items(), part["others"], strict=True)},
    )


def from_line(design: Design, line: Line, scale: Scale, judges: Sequence[str], others: Mapping[str, Scale]) -> Floats:
    """The inverse of `to_line`. KeyError where the line lacks a judge or metric."""
    low, span = scale[0], scale[1] - scale[0]
    found = np.zeros(design.width)
    place = design.blocks
    found[0] = (line.at_centre - low) / span
    found[place["judges"]] = [line.judges[j] for j in judges]
    if line.steps:
        found[place["steps"]] = np.concatenate([line.steps[j] for j in judges]) / span
    found[place["others"]] = [line.others[m] * (s[1] - s[0]) / span for m, s in others.items()]
    return found


def to_centres(basis: Basis, scale: Scale, judges: Sequence[str], others: Mapping[str, Scale]) -> Centres:
    """Means in points; the fill on the unit scale, columns in the order judges, others."""
    design, low, span = basis.design, scale[0], scale[1] - scale[0]
    return Centres(
        judges={j: float(low + span * m) for j, m in zip(judges, design.judges, strict=True)},
        others={m: float(s[0] + (s[1] - s[0]) * c) for (m, s), c in zip(others.items(), design.others, strict=True)},
        other_scales=dict(others),
        other_loadings=dict(zip(others, design.loadings.tolist(), strict=True)),
        thresholds=(low + span * design.thresholds).tolist(),
        shares=dict(zip(judges, design.shares.tolist(), strict=True)),
        fill_means=basis.fill.means.tolist(),
        fill_covariance=basis.fill.covariance.tolist(),
    )


def from_centres(centres: Centres, scale: Scale, judges: Sequence[str]) -> Basis:
    """The inverse of `to_centres`."""
    low, span = scale[0], scale[1] - scale[0]
    scales = centres.other_scales
    others = [(centres.others[m] - s[0]) / (s[1] - s[0]) for m, s in scales.items()]
    design = Design(
        judges=np.array([(centres.judges[j] - low) / span for j in judges]),
        others=np.array(others, dtype=np.float64),
        thresholds=(np.array(centres.thresholds) - low) / span,
        shares=np.array([centres.shares[j] for j in judges]),
        loadings=np.array([centres.other_loadings[m] for m in scales], dtype=np.float64),
    )
    return Basis(Fill(np.array(centres.fill_means), np.array(centres.fill_covariance)), design)
