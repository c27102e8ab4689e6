"""What Inspect finds here by its entry point: the scorer, and the models `aipsy-judge/NAME`."""

from __future__ import annotations

from contextlib import suppress

from inspect_ai.model import ModelAPI, modelapi

from .over_samples import coverage as coverage
from .over_samples import means as means
from .over_samples import rates as rates
from .scorer import psychological_safety as psychological_safety

with suppress(ImportError):
    # Its logs name a reducer of its own; where they are scored again, that name must be known.
    import aipsy_bench.scorer  # noqa: F401


@modelapi(name="aipsy-judge")
def aipsy_judge_models() -> type[ModelAPI]:
    from .provider import JudgeAPI

    return JudgeAPI
