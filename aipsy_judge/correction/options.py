"""What a fit was asked to do."""

from __future__ import annotations

from dataclasses import dataclass

from .profile import Profile


@dataclass(frozen=True, slots=True)
class FitOptions:
    """
    profile      "ladder": the blend; "published": the published rule alone
    others       let the judges' scores on other metrics help
    families     a bias per generator family
    severity     adjust for how severe each of several experts is
    tail_price   how many times a squared error on a failure counts (1: as any other)
    miss_cost    how many false alarms a missed failure is worth: p_fail counts as failed from 1 / (1 + miss_cost)
    """

    profile: Profile = "ladder"
    others: bool = True
    families: bool = False
    severity: bool = False
    tail_price: float = 1.0
    # The rubric leans to over-flagging; four alarms to look at are worth one failure seen.
    miss_cost: float = 4.0
    seed: int = 14

    @property
    def flag_from(self) -> float:
        return 1.0 / (1.0 + self.miss_cost)
