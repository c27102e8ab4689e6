"""A recipe run on random weights of any config: the real loader, adapter, trainer and first batch; only what is read
from files otherwise is drawn. Says what it took."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from random_tensors import drawn_checkpoint

from training.first_batch import settle_first_batch
from training.lora import adapt
from training.memory_parts import predict
from training.model_sizes import Sizes
from training.recipe import Recipe
from training.row_trainer import RowTrainer
from training.rows import Row, RowTree, Target


@dataclass(frozen=True)
class RandomRun:
    """Figures of a run: layers staged as predicted and in the end, seconds and tokens a second, losses."""

    predicted_layers: int
    layers: int
    tokens: int
    seconds: float
    losses: tuple[float, ...]

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / self.seconds


def run_on_random_weights(
    recipe: Recipe, sizes: Sizes, config: Any, device: torch.device, out: Path, budget_bytes: int | None = None
) -> RandomRun:
    """Trains recipe.train.steps steps on rows of recipe.render.max_tokens tokens."""
    from training.streamed_load import fill_four_bit

    predicted = predict(recipe, sizes).staged
    dtype = {"bf16": torch.bfloat16, "fp32": torch.float32}[recipe.train.precision]
    drawn = drawn_checkpoint(config, device)
    base = fill_four_bit(config, drawn, device, on_host=predicted, dtype=dtype, where="random weights")
    trainer = _trainer(recipe, adapt(base, recipe.lora, recipe.seed), out, device)
    settled = settle_first_batch(trainer, recipe, device, print, budget_bytes)
    assert settled is not None
    begun = time.monotonic()
    trainer.train()
    seconds = time.monotonic() - begun
    losses = tuple(entry["loss"] for entry in trainer.state.log_history if "loss" in entry)
    return RandomRun(predicted, settled.on_host, trainer.tokens_seen, seconds, losses)


def _trainer(recipe: Recipe, model: Any, out: Path, device: torch.device) -> RowTrainer:
    from training.sft_run import make_trainer

    vocabulary = model.get_base_model().config.vocab_size
    count = recipe.train.batch * recipe.train.accumulate
    rows = [_row(recipe.render.max_tokens, vocabulary, number) for number in range(count)]
    return make_trainer(recipe, model, word_tokenizer(), rows, out, device)


def word_tokenizer() -> Any:
    """One that pads and ends, for trainers of rows that are tokens already."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({"<pad>": 0, "<eos>": 1, "<unk>": 2}, unk_token="<unk>"))
    return PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")


def _row(length: int, vocabulary: int, number: int) -> Row:
    """As long as the recipe allows, an eighth of it predicted. Never token 0, whose vector is nothing but zeros."""
    drawn = torch.randint(1, vocabulary, (length,), generator=torch.Generator().manual_seed(number)).tolist()
    tree = RowTree()
    tree.grow(-1, drawn)
    answer = range(length - length // 8, length - 1)
    targets = [Target(at, (drawn[at + 1],), (1.0,), 1.0, "skeleton") for at in answer]
    return tree.row(f"item-{number}", tuple(targets))
