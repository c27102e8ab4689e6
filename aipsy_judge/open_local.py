"""Opens a judge whose weights run in this process: finds the files, settles how they are run, loads them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from .contract import Contract
from .contracts import load_contract
from .errors import ContractError, WeightsError
from .judge import JudgeOptions
from .local_judge import LocalJudge
from .rubric import Rubric
from .weights import Weights, find_weights, installed_weights
from .weights_fit import can_be_asked, check_weights


def open_local(
    name: str | Path | None, rubric: Rubric, contract: str | None, adapter: Path | None, options: JudgeOptions
) -> LocalJudge:
    """See opening.open_judge."""
    from .open_backend import open_backend

    weights, asked = settle(name, rubric, contract, adapter, unblessed=options.unblessed)
    backend = open_backend(weights, options)
    try:
        return LocalJudge(backend, weights, rubric, asked, memory_gb=options.memory_gb, window=options.window)
    except BaseException:
        backend.close()
        raise


def settle(
    name: str | Path | None, rubric: Rubric, contract: str | None, adapter: Path | None, *, unblessed: bool
) -> tuple[Weights, Contract]:
    """The weights that are meant and how they are asked; nothing is loaded. Raises as opening.open_judge."""
    weights = _meant(name, rubric, contract, adapter, unblessed=unblessed)
    if adapter is not None:
        weights = _with_adapter(weights, adapter)
    if contract is not None and weights.own_contract and contract != weights.contract:
        raise ContractError(
            f"{weights.name} was trained to be asked by the contract {weights.contract}, not {contract}",
            hint="Leave out --contract: what it says when asked otherwise is no score.",
        )
    asked = load_contract(contract or weights.contract)
    check_weights(weights, rubric, asked)
    return weights, asked


def _meant(
    name: str | Path | None, rubric: Rubric, contract: str | None, adapter: Path | None, *, unblessed: bool
) -> Weights:
    """Without a name: the best installed that can be asked so, not the best of all, which may know one rubric only."""
    if name is None:
        for weights in installed_weights():
            if can_be_asked(weights, rubric, contract, adapter=adapter is not None):
                return weights
    return find_weights(name, unblessed=unblessed)


def _with_adapter(weights: Weights, adapter: Path) -> Weights:
    """What was proven of a judge is not true of it with another adapter, so none is put on one with a manifest."""
    if weights.blessed is not None:
        raise WeightsError(
            f"{weights.name} is whole as its manifest names it; another adapter would make another judge of it",
            where=str(adapter),
            hint="Name the base by its file to put an adapter on it.",
        )
    return replace(weights, adapter=adapter)
