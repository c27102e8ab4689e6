"""From a judge's name to a judge: which kind the name means, and nothing else."""

from __future__ import annotations

from pathlib import Path

from .errors import InputError
from .judge import Judge, JudgeOptions
from .rubric import DEFAULT_RUBRIC, Rubric, load_rubric


def open_judge(
    name: str | Path | None = None,
    *,
    rubric: str | Path | Rubric | None = None,
    contract: str | None = None,
    adapter: str | Path | None = None,
    options: JudgeOptions | None = None,
) -> Judge:
    """The judge called `name`: a known judge, a GGUF file, or None for the best that is installed and takes this rubric
    and contract.

    `openai:MODEL@URL` and `ollama:MODEL@URL` name a server, `fake` a stand-in for tests. `rubric` is a name, a file
    or a Rubric; `contract` overrides how weights of unknown origin are asked; `adapter` is a LoRA GGUF beside them.

    Raises RubricError, WeightsError, ContractError, CapacityError or BackendError; InputError for an adapter that the
    judge could not wear.
    """
    chosen = options or JudgeOptions()
    asked = rubric if isinstance(rubric, Rubric) else load_rubric(rubric if rubric is not None else DEFAULT_RUBRIC)
    if name is not None and is_served(name):
        check_no_adapter(name, adapter)
        from .served_judge import open_served

        return open_served(str(name), asked, contract or "full", chosen)
    from .open_local import open_local

    return open_local(name, asked, contract, Path(adapter) if adapter is not None else None, chosen)


def is_served(name: str | Path) -> bool:
    """Whether a name means a judge without weights on this machine: on a server, or the stand-in."""
    return str(name).split(":", 1)[0] in ("openai", "ollama", "fake")


def check_no_adapter(name: str | Path, adapter: str | Path | None) -> None:
    """Raise InputError for an adapter beside such a judge."""
    if adapter is not None:
        raise InputError(
            f"an adapter goes beside weights on this machine, and {name} has none: it would be left out silently",
            where=str(adapter),
        )
