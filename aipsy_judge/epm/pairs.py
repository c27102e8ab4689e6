"""Files of paired turns: an original and its perturbed twin, each with its start and its levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from .cases import start_of
from .forms import Forms
from .forms_file import parse_forms, read_objects
from .imputation import Complete, complete
from .perturbation import turn_metrics
from .space import Floats, Space
from .vectors import check_turn_levels

_KEYS = {"pair", "case", "model", "original", "perturbed"}


@dataclass(frozen=True, slots=True)
class Pair:
    """Two ratings of one turn (one row of levels each) that differ in one factor."""

    case: str
    original: Forms
    perturbed: Forms


def read_pairs(path: str | Path, space: Space) -> list[Pair]:
    """Pairs of a JSON-lines file, one a line: `case`, and `original` and `perturbed`, each with `levels` (one row of
    2D) and `iedr` or `P_0`; without a start the perturbed half has the original's. InputError names line and half.
    """
    return [_pair(data, space, where) for data, where in read_objects(path)]


def pair_metrics(
    pairs: Sequence[Pair], space: Space
) -> tuple[Mapping[str, Floats], Mapping[str, Floats], list[str], int]:
    """Metrics of the originals and of the perturbed, the cases, and how many pairs could not be read in full."""
    whole = [(p, a, b) for p in pairs if (a := _whole(p.original, space)) and (b := _whole(p.perturbed, space))]
    if not whole:
        raise InputError("no pair has levels that could be read on both sides")
    original = _metrics([p.original for p, _, _ in whole], [a for _, a, _ in whole], space)
    perturbed = _metrics([p.perturbed for p, _, _ in whole], [b for _, _, b in whole], space)
    return original, perturbed, [p.case for p, _, _ in whole], len(pairs) - len(whole)


def _metrics(forms: Sequence[Forms], levels: Sequence[Complete], space: Space) -> dict[str, Floats]:
    names = [f.where for f in forms]
    start = np.array([start_of(f, c, space) for f, c in zip(forms, levels, strict=True)])
    rows = check_turn_levels(space, [c.turn_levels for c in levels], np.ones(len(forms), dtype=int), names)
    return turn_metrics(space, start, rows[:, 0])


def _whole(forms: Forms, space: Space) -> Complete | None:
    found = complete(forms, space, strict=True)
    return found if isinstance(found, Complete) else None


def _pair(data: Any, space: Space, where: str) -> Pair:
    if not isinstance(data, dict) or not {"case", "original", "perturbed"} <= set(data) <= _KEYS:
        raise InputError(
            "not a pair",
            where=where,
            hint='A line is {"case": NAME, "original": {"iedr" or "P_0", "levels"}, "perturbed": {...}}.',
        )
    original, perturbed = data["original"], data["perturbed"]
    if isinstance(original, dict) and isinstance(perturbed, dict) and not {"iedr", "P_0"} & set(perturbed):
        perturbed = {k: original[k] for k in ("iedr", "P_0") if k in original} | perturbed
    halves = [
        _half(half, space, f"{where}, {name}") for half, name in ((original, "original"), (perturbed, "perturbed"))
    ]
    return Pair(str(data["case"]), *halves)


def _half(data: Any, space: Space, where: str) -> Forms:
    if isinstance(data, dict) and isinstance(row := data.get("levels"), list) and row and not isinstance(row[0], list):
        data = {**data, "levels": [row]}
    forms = parse_forms(data, space, where=where)
    if len(forms.turn_levels) != 1:
        raise InputError(f"{len(forms.turn_levels)} ratings, a half of a pair has one", where=where)
    return forms
