"""Every parameter of the Empathy Potential Model in one place, and the two profiles that never mix."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from ..errors import InputError

DEFAULT_PROFILE = "empa-2026-02"
PAPER_PROFILE = "paper-v1"
PROFILE_NAMES = (DEFAULT_PROFILE, PAPER_PROFILE)


@dataclass(frozen=True, slots=True)
class Parameters:
    """What the model's formulas leave open. Lengths are in points of the deficit space unless stated.

    Sources: [run] the released run logs of EMPA, whose stop turns and published indices these values reproduce;
    [code] the released code of EMPA-Benchmark-EPMSandbox; [v1] arXiv:2603.00552 v1.

    direction          "fixed": the ideal direction is -P_0/|P_0| all along [run]; "moving": -P/|P| of the position
                       before each step [v1]
    distance           "half-space": how far the axes lie below -zone [run]; "norm": |P| [v1]
    zone               an axis at or above -zone counts as met: 1.0 [run]
    net                S_net sums "levels" [run] or the components of the step "vectors" [v1]
    net_divisor        alpha, 100 points of S_net = alpha * z0: 1.5 [run], 1.2 [v1]
    energy_divisor     beta, 100 points of E_tot = beta * z0: 1.2 [run], 1.0 [v1]
    density_at_100     rho_max, where rho and S_proj reach 100: 2.5, no real ceiling [run]; sqrt(12) [v1]
    count_start        averages run over T+1 points, the start counting as 0 [run], or over T steps [v1]
    denominator_shift  added to denominators: 0 [run], 1e-6 [v1]
    tau_of_return      tau when a path of some length ends where it began: 0.0, which then counts as the best [run];
                       3.0, the worst, where v1 is silent
    tolerance          a; the target is reached within a * |P_0|: 0.10 [run]. v1 names no value: 0.05 [code config]
    companionship      success without reaching the origin: "position", projection >= -a|P_0| [run], or
                       "mean-cosine" > tau_align [v1]
    tau_align          the threshold of the mean cosine, -1..1; never published, so the user's to choose
    strict             thresholds are passed by > and < [v1] rather than >= and <= [run]
    min_turns          no success and no failure before this turn: 12 [run]
    max_turns          timeout at this turn: 45 [run]
    collapse_window    this many last steps all of negative energy gain are a collapse: 5 [run]
    stagnation_window, stagnation_deviation
                       sample deviation of the last 5 |P| below 0.5 [run]
    regression_window, regression_share, regression_sum
                       of the last 8 gains more than 70 % negative and their sum below -1.0 [run]
    oscillation        whether the oscillation stop exists: yes [run], no [v1]
    oscillation_window, oscillation_least_window
                       max(10, 12 // K) points [run]
    oscillation_change L1 change below which the window is stuck: 3.0 [run]
    oscillation_range  range of the distance below which the window is stuck: 2.0 [run]
    weights            of Outcome, Efficiency, Stability in EPM-Q: 0.4, 0.2, 0.4 [v1 section 9.3, code]
    """

    profile: str = DEFAULT_PROFILE
    direction: Literal["fixed", "moving"] = "fixed"
    distance: Literal["half-space", "norm"] = "half-space"
    zone: float = 1.0
    net: Literal["levels", "vectors"] = "levels"
    net_divisor: float = 1.5
    energy_divisor: float = 1.2
    density_at_100: float = 2.5
    count_start: bool = True
    denominator_shift: float = 0.0
    tau_of_return: float = 0.0
    tolerance: float = 0.10
    companionship: Literal["position", "mean-cosine"] = "position"
    tau_align: float | None = None
    strict: bool = False
    min_turns: int = 12
    max_turns: int = 45
    collapse_window: int = 5
    stagnation_window: int = 5
    stagnation_deviation: float = 0.5
    regression_window: int = 8
    regression_share: float = 0.7
    regression_sum: float = -1.0
    oscillation: bool = True
    oscillation_window: int = 12
    oscillation_least_window: int = 10
    oscillation_change: float = 3.0
    oscillation_range: float = 2.0
    weights: tuple[float, float, float] = (0.4, 0.2, 0.4)


_PAPER = Parameters(
    profile=PAPER_PROFILE,
    direction="moving",
    distance="norm",
    net="vectors",
    net_divisor=1.2,
    energy_divisor=1.0,
    density_at_100=math.sqrt(12),
    count_start=False,
    denominator_shift=1e-6,
    tau_of_return=3.0,
    tolerance=0.05,
    companionship="mean-cosine",
    strict=True,
    oscillation=False,
)


def profile(name: str = DEFAULT_PROFILE, *, tau_align: float | None = None) -> Parameters:
    """The parameters of a profile.

    `paper-v1` needs `tau_align` in -1..1 (its authors published none); `empa-2026-02` has no use for it. InputError
    where it is missing, useless or out of range, or the name is unknown.
    """
    if name == DEFAULT_PROFILE:
        if tau_align is not None:
            raise InputError(f"profile {name} has no tau_align", hint=f"It belongs to profile {PAPER_PROFILE}.")
        return Parameters()
    if name != PAPER_PROFILE:
        raise InputError(f"no profile is called {name!r}", hint=f"Profiles: {', '.join(PROFILE_NAMES)}.")
    if tau_align is None:
        raise InputError(
            f"profile {name} needs tau_align, whose value was never published",
            hint="Choose one in -1..1 and give it with --tau-align.",
        )
    if not -1 <= tau_align <= 1:
        raise InputError(f"tau_align {tau_align} is no cosine", hint="Give a value in -1..1.")
    return replace(_PAPER, tau_align=tau_align)
