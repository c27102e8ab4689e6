"""Opens a judge whose weights run in this process: finds the files, settles how they are run, loads them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from .contracts import load_contract
from .errors import ContractError
from .judge import JudgeOptions
from .local_judge import LocalJudge
from .rubric import Rubric
from .weights import find_weights


def open_local(
    name: str | Path | None, rubric: Rubric, contract: str | None, adapter: Path | None, options: JudgeOptions
) -> LocalJudge:
    """See opening.open_judge."""
    from .backends.amx import extra_buffers_work
    from .backends.llamacpp import LlamaCpp, LlamaCppOptions

    weights = find_weights(name)
    if adapter is not None:
        weights = replace(weights, adapter=adapter)
    if contract is not None and weights.own_contract and contract != weights.contract:
        raise ContractError(
            f"{weights.name} was trained to be asked by the contract {weights.contract}, not {contract}",
            hint="Leave out --contract: what it says when asked otherwise is no score.",
        )
    asked = load_contract(contract or weights.contract)
    backend = LlamaCpp(
        weights.model,
        LlamaCppOptions(
            threads=options.threads,
            cpu_moe=_layers_in_ram(options.cpu_moe, weights.model, options.memory_gb),
            extra_bufts=extra_buffers_work(weights.model),
        ),
        weights.adapter,
        weights.name,
    )
    try:
        return LocalJudge(backend, weights, rubric, asked, memory_gb=options.memory_gb, window=options.window)
    except BaseException:
        backend.close()
        raise


def _layers_in_ram(wanted: int | None, model: Path, cache_gb: float) -> int:
    """`--cpu-moe`: a number as given; None ("auto") as many layers' experts as the GPU has no room for."""
    if wanted is not None:
        return wanted
    from .expert_layers import expert_layers_in_ram

    return expert_layers_in_ram(model, cache_gb)
