"""How a judge is asked. A judge is asked only by the contract it was made for.

full            our whole rubric in the prompt, one JSON object as answer; needs no training
compact         a short fixed cue, one line a metric, each an answer of its own; for judges trained that way
aipsy-bench-v1  the benchmark's frozen prompt and answer (see bench_contract.py); for judges trained on it
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .answer import AnswerForm, compact_forms, full_form
from .conversation import Conversation
from .errors import ContractError
from .prompt import ChatMessage, compact_messages, full_messages
from .rubric import Rubric


@dataclass(frozen=True, slots=True)
class Contract:
    """`messages(rubric, conversation, upto)` is the prompt that rates what message `upto` closes; `forms(rubric)` the
    answers asked for by it, by name."""

    name: str
    messages: Callable[[Rubric, Conversation, int], list[ChatMessage]]
    forms: Callable[[Rubric], Mapping[str, AnswerForm]]


FULL = Contract("full", full_messages, lambda rubric: {"answer": full_form(rubric)})
COMPACT = Contract("compact", compact_messages, compact_forms)
CONTRACTS = ("full", "compact", "aipsy-bench-v1")


def load_contract(name: str) -> Contract:
    """A contract by name. Raises ContractError if there is none, or what it needs has not been pulled."""
    if name == "full":
        return FULL
    if name == "compact":
        return COMPACT
    if name == "aipsy-bench-v1":
        from .bench_contract import load_bench_contract

        return load_bench_contract()
    raise ContractError(f"no contract is called {name!r}", hint=f"Contracts: {', '.join(CONTRACTS)}.")


def pull_bench_prompt() -> str:
    """Fetch and check what the contract aipsy-bench-v1 needs; the path it was put at."""
    from .bench_contract import pull

    return str(pull())
