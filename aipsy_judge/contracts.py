"""Contracts by name. A judge is asked only by the contract it was made for.

full, compact, compact-v2  see contract.py
aipsy-bench-v1             the benchmark's frozen prompt and answer (see bench_contract.py); for judges trained on it
"""

from __future__ import annotations

from .bench_contract import NAME as BENCH
from .bench_contract import load_bench_contract, pull
from .contract import COMPACT, COMPACT_V2, FULL, Contract
from .errors import ContractError

CONTRACTS = ("full", "compact", "compact-v2", BENCH)


def load_contract(name: str) -> Contract:
    """A contract by name. Raises ContractError if there is none, or what it needs has not been pulled."""
    known = {contract.name: contract for contract in (FULL, COMPACT, COMPACT_V2)}
    if name in known:
        return known[name]
    if name == BENCH:
        return load_bench_contract()
    raise ContractError(f"no contract is called {name!r}", hint=f"Contracts: {', '.join(CONTRACTS)}.")


def pull_bench_prompt() -> str:
    """Fetch and check what the contract aipsy-bench-v1 needs; the path it was put at."""
    return str(pull())
