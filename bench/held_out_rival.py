"""Opens a rival: weights that nobody trained as a judge are asked as the judge is, and made to choose.

Such weights put little probability on legal answers, and what lies under the usual floor would be Unscored: nothing to
compare with. Without a floor the rival always answers; that is a setting of its own, named in its verdicts.
"""

from __future__ import annotations

from dataclasses import replace

from aipsy_judge import open_judge
from aipsy_judge.contracts import load_contract
from aipsy_judge.judge import Judge, JudgeOptions
from aipsy_judge.local_judge import LocalJudge
from aipsy_judge.open_backend import open_backend
from aipsy_judge.rubric import load_rubric
from aipsy_judge.weights import find_weights


def open_rival(name: str, rubric: str, contract: str, options: JudgeOptions) -> Judge:
    """A judge with a contract of its own, or at a server, as it is; other weights by `contract`, without a floor."""
    if is_served(name):
        return open_judge(name, rubric=rubric, contract=contract, options=options)
    weights = find_weights(name, unblessed=options.unblessed)
    if weights.own_contract:
        return open_judge(name, rubric=rubric, options=options)
    weights = replace(weights, legal_mass_floor=0.0)
    backend = open_backend(weights, options)
    try:
        return LocalJudge(backend, weights, load_rubric(rubric), load_contract(contract), memory_gb=options.memory_gb)
    except BaseException:
        backend.close()
        raise


def is_served(name: str) -> bool:
    """Whether the name means a server (opening.open_judge)."""
    return name.split(":", 1)[0] in ("openai", "ollama", "fake")


def has_own_contract(name: str, options: JudgeOptions) -> bool:
    """Whether the judge was trained on a contract, by which alone it is asked."""
    return not is_served(name) and find_weights(name, unblessed=options.unblessed).own_contract


def is_forced(judge: Judge) -> bool:
    return isinstance(judge, LocalJudge) and not judge.weights.own_contract and judge.weights.legal_mass_floor == 0
