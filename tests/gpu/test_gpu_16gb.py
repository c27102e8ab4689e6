"""The 16 GB recipe on random weights of the true sizes, on a card that is allowed no more than 16 GB."""

from __future__ import annotations

import datetime
import json
import os
from pathlib import Path

import pytest

pytestmark = [pytest.mark.gpu, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "training" / "data" / "gemma-4-26b-a4b.config.json"
LOG = "AIPSY_JUDGE_GPU_LOG"  # a file that gets a line of what was measured; set by `make gpu`


def test_the_recipe_for_16_gb_trains_under_a_cap_of_16_gb(tmp_path: Path) -> None:
    import torch
    from random_run import run_on_random_weights
    from transformers import Gemma4TextConfig

    from training.first_batch import CONTEXT_BYTES
    from training.memory_parts import predict
    from training.model_sizes import read_sizes
    from training.recipe_reading import load_recipe

    device = torch.device("cuda", 0)
    overrides = ["train.steps=3", "train.accumulate=2", "train.learning_rate=1e-6", f"base.config={CONFIG}"]
    recipe = load_recipe(ROOT / "recipes" / "gemma4-16gb.yaml", overrides)
    config = Gemma4TextConfig(**json.loads(CONFIG.read_text())["text_config"])
    card = torch.cuda.get_device_properties(device)
    cap = int(recipe.memory.device_gb * 1e9) - CONTEXT_BYTES
    if card.total_memory < cap:
        pytest.skip(f"{card.name} has less than 16 GB")
    torch.cuda.set_per_process_memory_fraction(cap / card.total_memory, device)
    try:
        run = run_on_random_weights(recipe, read_sizes(CONFIG), config, device, tmp_path)
        reserved = torch.cuda.max_memory_reserved(device)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0, device)
    predicted = predict(recipe, read_sizes(CONFIG)).peak
    line = (
        f"{datetime.date.today()} · gemma4-16gb on random weights of the true sizes, {card.name} capped at 16 GB"
        f" ({CONTEXT_BYTES / 1e9:.1f} of them left to CUDA), {recipe.render.max_tokens} tokens a row: experts of"
        f" {run.layers} layers staged (predicted {run.predicted_layers}), {reserved / 1e9:.2f} GB reserved at the peak"
        f" (predicted {predicted / 1e9:.2f} with CUDA's own), {run.tokens_per_second:.0f} tokens/s."
    )
    print(line)
    if LOG in os.environ:
        with (ROOT / os.environ[LOG]).open("a", encoding="utf-8") as log:
            log.write(f"\n{line}\n")
    assert reserved <= cap
    assert len(run.losses) == 3
    assert run.layers <= run.predicted_layers + 6, "the prediction was far off"
