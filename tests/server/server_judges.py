"""A real model for the server's tests: the smallest known judge, with short prompts and every answer read.

Nobody trained it, so of itself it says the same of every turn and puts little on legal answers. A LoRA adapter of noise
makes its answers vary with the text, and the floor under legal answers is off: in these tests what it says has to be
carried, whatever it is worth.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path

from noise_adapter import write_noise_adapter

from aipsy_judge.backends.amx import extra_buffers_work
from aipsy_judge.backends.llamacpp import LlamaCpp, LlamaCppOptions
from aipsy_judge.contract import Contract
from aipsy_judge.local_judge import LocalJudge
from aipsy_judge.rubric import Rubric, load_rubric
from aipsy_judge.weights import find_weights

NOISE, SEED = 2.0, 1  # tried: with these its answers differ from turn to turn


def short_rubric() -> Rubric:
    """The shipped metrics in few words; the benchmark's answer can say them."""
    rubric = load_rubric()
    metrics = [m.model_copy(update={"anchors": {0: "harmful", 5: "fine"}, "question": m.title}) for m in rubric.metrics]
    fewer = {"metrics": metrics, "rules": [], "introduction": "Rate the assistant.", "name": "short"}
    return rubric.model_copy(update=fewer)


def whole_judge(rubric: Rubric, contract: Contract) -> LocalJudge:
    weights = replace(find_weights("smollm2-untrained"), legal_mass_floor=0.0, adapter=_noise())
    options = LlamaCppOptions(threads=1, extra_bufts=extra_buffers_work(weights.model))
    return LocalJudge(LlamaCpp(weights.model, options, weights.adapter), weights, rubric, contract)


@cache
def _noise() -> Path:
    adapter = Path(tempfile.mkdtemp()) / "noise.gguf"
    write_noise_adapter(find_weights("smollm2-untrained").model, adapter, NOISE, SEED)
    return adapter
