"""What the CUDA test of the 16 GB recipe does, done small on a CPU: everything but the card."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from gemma4_small import SHAPE, text_config
from random_run import run_on_random_weights

from training.model_sizes import read_sizes
from training.recipe_reading import load_recipe

pytestmark = pytest.mark.usefixtures("one_thread")

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_recipe_for_16_gb_runs_on_random_weights(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gemma4_text"} | SHAPE))
    overrides = ["train.steps=2", "train.accumulate=2", "train.optimiser=adamw", "render.max_tokens=48"]
    recipe = load_recipe(ROOT / "recipes" / "gemma4-16gb.yaml", overrides)
    sizes = read_sizes(tmp_path / "config.json")
    run = run_on_random_weights(recipe, sizes, text_config(), torch.device("cpu"), tmp_path / "out", 10**12)
    assert len(run.losses) == 2
    assert all(0 < loss < 30 for loss in run.losses)
    assert run.tokens == 2 * 2 * 48
