"""Results as strict JSON data. What is undefined or unscored is null, with its reason beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .cases import Case, UnscoredCase
from .compare import Comparison, ModelSummary, Part
from .imputation import Imputed
from .pack import Pack
from .parameters import Parameters
from .remarks import remarks

# The ends every model's counts name, be they none; further kinds appear where they happened.
_ALWAYS_COUNTED = ("success_geometric", "success_positional", "collapse", "regression", "oscillation", "timeout")


def comparison_to_dict(comparison: Comparison, pack: Pack, parameters: Parameters) -> dict[str, Any]:
    """Per model EPM-Q, its three parts, the nine indices, cases and ends; beside them how it was made."""
    return {
        "models": {m.model: _model(m) for m in comparison.models},
        **_lane(pack, parameters),
        **_gaps(comparison.cases),
        "remarks": remarks(comparison.cases, parameters),
    }


def details_to_dict(comparison: Comparison, pack: Pack, parameters: Parameters) -> dict[str, Any]:
    """All of a comparison: `comparison_to_dict` with intervals, leads and breakdowns, and every case."""
    data = comparison_to_dict(comparison, pack, parameters)
    for model in comparison.models:
        data["models"][model.model] |= _model_details(model)
    return data | {
        "bootstrap": {"unit": "case", "resamples": comparison.resamples, "seed": comparison.seed, "level": 0.95},
        "cases": [case_to_dict(c) for c in comparison.cases],
    }


def dialogue_to_dict(result: Case | UnscoredCase, pack: Pack, parameters: Parameters) -> dict[str, Any]:
    """One dialogue's result, with its path."""
    return {
        **case_to_dict(result, with_path=True),
        **_lane(pack, parameters),
        **_gaps([result]),
        "remarks": remarks([result], parameters),
    }


def case_to_dict(result: Case | UnscoredCase, *, with_path: bool = False) -> dict[str, Any]:
    name = {"model": result.forms.model, "case": result.forms.case, "threshold": result.forms.threshold}
    if isinstance(result, UnscoredCase):
        reason = {"reason": result.unscored.reason, "detail": result.unscored.detail}
        return name | {"status": "unscored", **reason, "epm_q": None}
    data: dict[str, Any] = name | {
        "status": "scored",
        **result.scores,
        "undefined": result.undefined,
        "indices": result.indices,
        "raw": result.raw,
        "stop": result.stop,
        "why": result.why,
        "turns": result.turns,
        "later_turns": result.later_turns,
        "dominant": result.dominant,
        "imputed": result.imputed.to_dict(),
    }
    if with_path:
        fields = ("position", "radius", "distance", "cosine", "gain", "energy", "projection")
        data["path"] = {f: getattr(result.path, f).tolist() for f in fields}
    return data


def _model(model: ModelSummary) -> dict[str, Any]:
    return {
        "epm_q": model.scores["epm_q"],
        "outcome": model.scores["outcome"],
        "efficiency": model.scores["efficiency"],
        "stability": model.scores["stability"],
        "indices": model.indices,
        "cases": model.cases,
        "stops": dict.fromkeys(_ALWAYS_COUNTED, 0) | model.stops,
    }


def _model_details(model: ModelSummary) -> dict[str, Any]:
    lead = model.lead
    return {
        "intervals": {n: None if i is None else list(i) for n, i in model.intervals.items()},
        "unscored": model.unscored,
        "undefined": model.undefined,
        "imputed": model.imputed.to_dict(),
        "mean_turns": model.mean_turns,
        "by_axis": _parts(model.by_axis),
        "by_threshold": _parts(model.by_threshold),
        "lead": None
        if lead is None
        else {
            "over": lead.over,
            "difference": lead.difference,
            "interval": None if lead.interval is None else list(lead.interval),
            "cases": lead.cases,
        },
    }


def _parts(parts: dict[str, Part]) -> dict[str, Any]:
    return {name: {"epm_q": part.epm_q, "cases": part.cases} for name, part in parts.items()}


def _lane(pack: Pack, parameters: Parameters) -> dict[str, Any]:
    return {
        "profile": parameters.profile,
        "tolerance": parameters.tolerance,
        "tau_align": parameters.tau_align,
        "pack": {"name": pack.name, "version": pack.version, "hash": pack.hash},
    }


def _gaps(results: Sequence[Case | UnscoredCase]) -> dict[str, Any]:
    scored = [r for r in results if isinstance(r, Case)]
    return {
        "unscored": len(results) - len(scored),
        "undefined": sum(c.scores["epm_q"] is None for c in scored),
        "imputed": sum((c.imputed for c in scored), Imputed()).to_dict(),
    }
