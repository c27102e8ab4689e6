"""A run's own loop over twenty rows in one of several processes, as a program:

    python tests/training/shared_out_training.py OUT [SPOILT]

RANK, WORLD_SIZE and the rest of what PyTorch's launchers tell stand in the environment. SPOILT: the process whose third
loss is no number. OUT/RANK.json gets the optimiser steps there were to take, the rows shown here, and what was said.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

ROWS, EPOCHS = 20, 2


def main(out: Path, spoilt: int | None) -> None:
    import torch
    from random_run import word_tokenizer
    from transformers import LlamaConfig, LlamaForCausalLM

    from aipsy_judge.errors import JudgeError
    from training.last_good import LastGood
    from training.lora import adapt
    from training.recipe import Lora
    from training.recipe_reading import load_recipe
    from training.sft_run import fit, make_trainer

    torch.set_num_threads(1)
    torch.manual_seed(0)
    shape = {"hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 4, "num_hidden_layers": 2}
    base = LlamaForCausalLM(LlamaConfig(vocab_size=64, **shape)).requires_grad_(False)
    told = (f"train.epochs={EPOCHS}", "train.batch=2", "train.accumulate=1", "train.precision=fp32")
    recipe = load_recipe("recipes/mini.yaml", [*told, "train.warmup=0.5", "train.save_every=2"])
    model = adapt(base, Lora(rank=4, modules=r".*self_attn\.(q|v)_proj"), 0)
    trainer = make_trainer(recipe, model, word_tokenizer(), _rows(), out, torch.device("cpu"))
    rank, shown, said = int(os.environ["RANK"]), _watched(trainer), []
    if rank == spoilt:
        _spoil()

    def keep() -> Path:
        return out / "kept"

    try:
        fit(trainer, out, None, LastGood(), said.append, keep)
    except JudgeError as error:
        said.append(str(error))
    found: dict[str, Any] = {"steps": trainer.args.max_steps, "warmup": trainer.args.warmup_steps}
    (out / f"{rank}.json").write_text(json.dumps({**found, "shown": shown, "said": said}))
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def _watched(trainer: Any) -> list[int]:
    from training.row_trainer import SHOWN

    shown: list[int] = []
    computed = trainer.compute_loss

    def watched(model: Any, inputs: Any, **words: Any) -> Any:
        shown.extend(inputs[SHOWN].tolist())
        return computed(model, inputs, **words)

    trainer.compute_loss = watched
    return shown


def _spoil() -> None:
    from training import row_trainer

    real, calls = row_trainer.soft_cross_entropy, list[int]()

    def spoilt(*args: Any, **words: Any) -> Any:
        calls.append(1)
        return real(*args, **words) * (float("nan") if len(calls) == 3 else 1.0)

    row_trainer.soft_cross_entropy = spoilt


def _rows() -> list[Any]:
    from training.rows import RowTree, Target

    rows = []
    for number in range(ROWS):
        tree = RowTree()
        last = tree.grow(-1, [3 + (i * 7 + number) % 60 for i in range(9)])
        rows.append(tree.row(f"item-{number}", (Target(last, (5 + number,), (1.0,), 1.0, "slot:empathy"),)))
    return rows


if __name__ == "__main__":
    sys.path[:0] = ["tests/training", "tests/models", "."]
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None)
