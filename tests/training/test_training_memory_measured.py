"""Predicted memory against what was measured: parameters, resident bytes, the allocator's peak, the process's peak."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from gemma4_small import SHAPE

from training.memory_parts import Part, Prediction, predict, total
from training.model_sizes import read_sizes
from training.recipe_reading import load_recipe

ROOT = Path(__file__).resolve().parents[2]
REAL = ROOT / "training" / "data" / "gemma-4-26b-a4b.config.json"
# What is reached on each of the cases below; the worst is said in docs/log.md.
ALLOCATOR_TOLERANCE = 0.08
# The process has besides: malloc's and oneDNN's own, and pages of what was freed.
PROCESS_TOLERANCE = 0.20

MIDDLE: dict[str, Any] = {
    "hidden_size": 512,
    "intermediate_size": 384,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 64,
    "global_head_dim": 128,
    "num_experts": 32,
    "top_k_experts": 4,
    "moe_intermediate_size": 128,
    "vocab_size": 2048,
}
# Two layers of the 26B-A4B, one of each kind, but for the number of experts.
TRUE_WIDTH = json.loads(REAL.read_text())["text_config"] | {
    "num_hidden_layers": 2,
    "layer_types": ["sliding_attention", "full_attention"],
    "num_experts": 16,
    "vocab_size": 2048,
}


@dataclass(frozen=True)
class Case:
    """A model, and how it is trained."""

    shape: dict[str, Any]
    four_bit: bool = True
    dtype: str = "bf16"
    checkpointing: bool = True
    tokens: int = 1024
    rows: int = 1

    def predicted(self, tmp_path: Path) -> Prediction:
        config = {"model_type": "gemma4_text"} | SHAPE | self.shape
        (tmp_path / "config.json").write_text(json.dumps(config))
        overrides = [
            f"memory.base_bits={4 if self.four_bit else 16}",
            f"train.precision={self.dtype}",
            f"train.checkpointing={str(self.checkpointing).lower()}",
            f"render.max_tokens={self.tokens}",
            f"train.batch={self.rows}",
            "train.optimiser=adamw",
        ]
        recipe = load_recipe(ROOT / "recipes" / "gemma4-16gb.yaml", overrides)
        return predict(recipe, read_sizes(tmp_path / "config.json"), cuda_share=0)

    @property
    def asked(self) -> dict[str, Any]:
        return vars(self) | {"dtype": {"bf16": "bfloat16", "fp32": "float32"}[self.dtype], "rank": 16}


def measured(cases: Sequence[Case], *, process: bool) -> list[dict[str, Any]]:
    """By one program: the allocator's figures are of tensors, whatever else the process holds. The process's own peak
    is that of one model."""
    assert len(cases) == 1 or not process
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    if process:  # malloc is to give freed memory back, or the process's peak says little of what was in use.
        environment |= {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    asked = json.dumps([case.asked | {"process": process} for case in cases])
    program = [sys.executable, "-W", "ignore", "tests/training/measured_training.py", asked]
    done = subprocess.run(program, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()[-len(cases) :]]


CASES = {
    "4 bits, checkpointed": Case(MIDDLE),
    "4 bits, checkpointed, the head's logits above all": Case(MIDDLE | {"vocab_size": 32768}, tokens=512),
    "4 bits, all kept, two rows": Case(MIDDLE, checkpointing=False, tokens=512, rows=2),
    "16 bits, checkpointed": Case(MIDDLE, four_bit=False),
    "16 bits, float32, all kept": Case(MIDDLE, four_bit=False, dtype="fp32", checkpointing=False, tokens=512),
    "the true width, 4 bits": Case(TRUE_WIDTH, tokens=768),
}


def _all(prediction: Prediction) -> tuple[Part, ...]:
    return prediction.resident + prediction.training


@pytest.fixture(scope="module")
def allocated() -> dict[str, dict[str, Any]]:
    return dict(zip(CASES, measured(list(CASES.values()), process=False), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_prediction_is_within_tolerance_of_the_allocator(
    name: str, allocated: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    predicted = {part.name: part.bytes for part in _all(CASES[name].predicted(tmp_path))}
    found = allocated[name]
    for part, size in found["weights"].items():
        assert predicted[f"weights: {part}"] == pytest.approx(size, rel=0.002), part
    for part in ("adapter", "adapter: gradients", "adapter: optimiser"):
        assert predicted[part] == found[part]
    activations = sum(v for k, v in predicted.items() if not k.startswith(("weights", "adapter")))
    print(f"\n{name}: {activations / 1e6:.1f} MB predicted, {found['step_peak'] / 1e6:.1f} measured")
    assert activations == pytest.approx(found["step_peak"], rel=ALLOCATOR_TOLERANCE)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the high-water mark is read from /proc")
@pytest.mark.parametrize("four_bit", [True, False])
def test_prediction_is_within_tolerance_of_the_whole_process(four_bit: bool, tmp_path: Path) -> None:
    wide = MIDDLE | {"hidden_size": 1024, "intermediate_size": 1024, "moe_intermediate_size": 256}
    case = Case(wide, four_bit=four_bit, checkpointing=False)
    predicted, (found,) = total(_all(case.predicted(tmp_path))), measured([case], process=True)
    print(f"\n{4 if four_bit else 16} bits: {predicted / 1e6:.0f} MB predicted, {found['process'] / 1e6:.0f} measured")
    assert predicted == pytest.approx(found["process"], rel=PROCESS_TOLERANCE)


@pytest.mark.slow
def test_the_26b_has_the_parameters_that_transformers_gives_it() -> None:
    import torch
    from transformers import AutoModelForCausalLM, Gemma4Config

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(Gemma4Config(**json.loads(REAL.read_text())))
    assert type(model).__name__ == "Gemma4ForConditionalGeneration"
    counts = {name: p.numel() for name, p in model.named_parameters()}
    ours = read_sizes(REAL).parameters
    assert ours["vision"] == sum(n for name, n in counts.items() if "vision" in name) == 572_792_112
    assert sum(ours.values()) - ours["vision"] == sum(n for name, n in counts.items() if "language_model" in name)
    assert sum(ours.values()) == 25_233_141_760 + 572_792_112
    assert ours["experts"] == sum(n for name, n in counts.items() if ".experts." in name)
    assert ours["router and norms"] == sum(
        n for name, n in counts.items() if "language_model" in name and ("router" in name or "norm" in name)
    )
