"""Levels that could not be read: they make a dialogue Unscored, or are filled in as the published runs did."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import InputError
from ..verdict import Unscored
from .forms import Forms
from .parameters import DEFAULT_PROFILE, Parameters
from .space import Space
from .vectors import turns_of

# What the released code puts in the place of what its judge did not deliver.
MISSING_START_LEVEL = 1
MISSING_TURN_LEVEL = 0
MISSING_SCALE = 1.0


@dataclass(frozen=True, slots=True)
class Imputed:
    """How many values were made up: levels of the starting form, levels of turn forms, z0 (0 or 1)."""

    start_levels: int = 0
    turn_levels: int = 0
    scale: int = 0

    def __add__(self, other: Imputed) -> Imputed:
        return Imputed(
            self.start_levels + other.start_levels, self.turn_levels + other.turn_levels, self.scale + other.scale
        )

    def __bool__(self) -> bool:
        return bool(self.start_levels or self.turn_levels or self.scale)

    def to_dict(self) -> dict[str, int]:
        return {"start_levels": self.start_levels, "turn_levels": self.turn_levels, "z0": self.scale}


@dataclass(frozen=True, slots=True)
class Complete:
    """Levels without a gap, and how many of them were made up."""

    start_levels: tuple[float, ...] | None
    turn_levels: tuple[tuple[float, ...], ...]
    imputed: Imputed


def check_strictness(parameters: Parameters, strict: bool) -> None:
    """InputError where values were to be made up in a profile that publishes no rule for it."""
    if not strict and parameters.profile != DEFAULT_PROFILE:
        raise InputError(
            f"profile {parameters.profile} has no rule for levels that could not be read",
            hint=f"Leave --no-strict out, or use --profile {DEFAULT_PROFILE}.",
        )


def complete(forms: Forms, space: Space, *, strict: bool) -> Complete | Unscored:
    """Forms without a gap. `strict`: the first gap makes the dialogue Unscored("missing"), its place in the detail.

    Otherwise zeros stand for missing turn levels and 1 for a missing starting level (released code of EMPA), counted.
    """
    gaps_at_start = [
        i for i, level in zip(space.indicator_ids, forms.start_levels or (), strict=False) if level is None
    ]
    gaps = [(t, c) for t, row in enumerate(forms.turn_levels) for c, level in enumerate(row) if level is None]
    if strict and gaps_at_start:
        return Unscored("missing", f"start: {', '.join(gaps_at_start)} could not be read")
    if strict and gaps:
        t, c = gaps[0]
        return Unscored("missing", f"{turns_of(t, forms.every)}: {space.channel_ids[c]} could not be read")
    start = forms.start_levels
    return Complete(
        start_levels=None if start is None else tuple(_filled(v, MISSING_START_LEVEL) for v in start),
        turn_levels=tuple(tuple(_filled(v, MISSING_TURN_LEVEL) for v in row) for row in forms.turn_levels),
        imputed=Imputed(len(gaps_at_start), len(gaps)),
    )


def _filled(level: float | None, substitute: float) -> float:
    return substitute if level is None else level
