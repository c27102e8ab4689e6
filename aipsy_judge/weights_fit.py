"""Whether weights can be asked with this rubric, by this contract, as far as what they say of themselves shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .contract import Contract
from .errors import ContractError, ManifestError
from .reservations import check_names
from .rubric import Rubric
from .set_from import check_set_from
from .weights import Weights


def can_be_asked(weights: Weights, rubric: Rubric, contract: str | None, *, adapter: bool) -> bool:
    """Whether weights that nobody named are the ones for this rubric, this contract (None: their own) and, if one is
    given, an adapter: a judge is whole as its manifest names it."""
    if adapter and weights.blessed is not None:
        return False
    if contract is not None and weights.own_contract and contract != weights.contract:
        return False
    return weights.rubric_hash in (None, rubric.hash)


def check_weights(weights: Weights, rubric: Rubric, contract: Contract) -> None:
    """Raise ContractError for a rubric that the weights were not trained on, ManifestError for a name in their
    manifest that rubric and contract do not know: what it was meant for would be read as if nothing had been said."""
    if weights.rubric_hash is not None and weights.rubric_hash != rubric.hash:
        raise ContractError(
            f"{weights.name} was trained on the rubric {weights.rubric_hash[:12]}; asked for {rubric.hash[:12]}",
            hint="Score with the rubric it was trained on, or with a judge that takes any rubric.",
        )
    check_names(rubric, weights.operating_points, weights.not_validated, weights.name)
    forms = contract.forms(rubric)
    check_set_from(rubric, forms, weights.set_from, weights.name)
    slots = [slot.name for form in forms.values() for slot in form.slots]
    _check_slots(slots, weights.temperatures, weights.name)


def _check_slots(slots: Sequence[str], temperatures: Mapping[str, float], judge: str) -> None:
    strange = sorted(temperatures.keys() - set(slots))
    if strange:
        raise ManifestError(
            f"its manifest has a temperature for {', '.join(strange)}, a slot that its answer does not have",
            where=judge,
            hint=f"Slots: {', '.join(dict.fromkeys(slots))}.",
        )
