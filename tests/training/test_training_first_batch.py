"""Before the first step the longest batch is computed, and experts are moved until it fits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from gemma4_small import write_small_checkpoint

from aipsy_judge.errors import CapacityError
from training.allocated import peak_of
from training.first_batch import CONTEXT_BYTES, _compute, budget_for, settle_first_batch
from training.host_layers import expert_layers, on_host
from training.lora import adapt
from training.model import load_base
from training.recipe import Recipe
from training.recipe_reading import load_recipe
from training.row_trainer import RowTrainer
from training.rows import Row, RowTree, Target

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_thread")]

CPU = torch.device("cpu")
RECIPE = Path(__file__).resolve().parents[2] / "recipes" / "gemma4-16gb.yaml"
LENGTHS = (12, 96, 40, 7)


def _recipe(*overrides: str) -> Recipe:
    return load_recipe(RECIPE, ["train.optimiser=adamw", "train.precision=fp32", "lora.rank=4", *overrides])


def _row(length: int) -> Row:
    tree = RowTree()
    last = tree.grow(-1, [3 + i % 500 for i in range(length)])
    return tree.row(f"item-{length}", (Target(last, (7, 9), (0.25, 0.75), 1.0, "slot:empathy"),))


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    shape = {"num_hidden_layers": 12, "moe_intermediate_size": 256}
    return write_small_checkpoint(tmp_path_factory.mktemp("base"), **shape)


def _trainer(checkpoint: Path, out: Path, recipe: Recipe) -> RowTrainer:
    from training.sft_run import make_trainer

    model = adapt(load_base(checkpoint, precision="fp32", device=CPU, base_bits=4), recipe.lora, recipe.seed)
    return make_trainer(recipe, model, _tokenizer(), [_row(n) for n in LENGTHS], out, CPU)


def _tokenizer() -> Any:
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    vocabulary = {"<pad>": 0, "<eos>": 1, "<unk>": 2}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    return PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")


def test_experts_move_until_the_longest_rows_fit_and_nothing_else_changes(checkpoint: Path, tmp_path: Path) -> None:
    recipe = _recipe()
    trainer = _trainer(checkpoint, tmp_path, recipe)
    model = trainer.model
    peak = peak_of(lambda: _compute(trainer, recipe, CPU), model, CPU)
    model.zero_grad(set_to_none=True)
    trainer.tokens_seen = 0
    before = {n: p.clone() for n, p in model.named_parameters() if p.requires_grad}
    state = torch.get_rng_state()
    told: list[str] = []
    each = expert_layers(model)[0].layout.bytes
    settled = settle_first_batch(trainer, recipe, CPU, told.append, budget_bytes=peak - 3 * each)
    assert settled is not None
    assert settled.peak_bytes <= peak - 3 * each
    assert 5 <= settled.on_host == on_host(model) <= 8
    assert "experts of" in told[0]
    assert trainer.tokens_seen == 0
    assert torch.equal(torch.get_rng_state(), state)
    assert all(p.grad is None for p in model.parameters())
    assert all(torch.equal(p, before[n]) for n, p in model.named_parameters() if p.requires_grad)


def test_a_run_on_a_small_device_is_the_run_on_a_large_one(checkpoint: Path, tmp_path: Path) -> None:
    recipe = _recipe("train.steps=3", "train.accumulate=2", "train.learning_rate=0.01")
    weights = []
    for name, budget in (("large", 10**12), ("small", None)):
        trainer = _trainer(checkpoint, tmp_path / name, recipe)
        if budget is None:
            start = peak_of(lambda t=trainer: _compute(t, recipe, CPU), trainer.model, CPU)  # type: ignore[misc]
            trainer.model.zero_grad(set_to_none=True)
            budget = start - 2 * expert_layers(trainer.model)[0].layout.bytes
        settled = settle_first_batch(trainer, recipe, CPU, lambda line: None, budget_bytes=budget)
        assert settled is not None
        assert (settled.on_host > 0) == (name == "small")
        trainer.train()
        weights.append({n: p.detach().clone() for n, p in trainer.model.named_parameters() if p.requires_grad})
    assert all(torch.equal(weights[0][n], weights[1][n]) for n in weights[0])
    assert any(w.abs().max() > 0 for n, w in weights[0].items() if "lora_B" in n)


def test_a_budget_that_nothing_meets_ends_before_the_first_step(checkpoint: Path, tmp_path: Path) -> None:
    recipe = _recipe()
    trainer = _trainer(checkpoint, tmp_path, recipe)
    with pytest.raises(CapacityError, match="experts of all 12 layers"):
        settle_first_batch(trainer, recipe, CPU, lambda line: None, budget_bytes=1000)
    assert trainer.state.global_step == 0


def test_a_cpu_has_no_budget_of_its_own(checkpoint: Path, tmp_path: Path) -> None:
    recipe = _recipe()
    assert settle_first_batch(_trainer(checkpoint, tmp_path, recipe), recipe, CPU, lambda line: None) is None


def test_the_budget_leaves_room_for_what_comes_later(checkpoint: Path, tmp_path: Path) -> None:
    recipe = _recipe()
    trainer = _trainer(checkpoint, tmp_path, recipe)
    trained = sum(p.numel() for p in trainer.model.parameters() if p.requires_grad)
    assert budget_for(recipe, trainer) == 16_000_000_000 - CONTEXT_BYTES - 8 * trained
    eight_bit = _recipe("train.optimiser=paged_adamw_8bit")
    assert budget_for(eight_bit, trainer) == 16_000_000_000 - CONTEXT_BYTES - 2 * trained
