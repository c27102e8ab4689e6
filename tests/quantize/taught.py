"""Small real models, taught a few sentences through a LoRA adapter: enough for an adapter that does something."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from aipsy_judge.backends.llamacpp import LlamaCpp, LlamaCppOptions
from aipsy_judge.backends.protocol import Feed
from quantize.base_record import record_of

SENTENCES = (
    "The judge reads the whole talk before it gives a reply a score from 0 to 5.",
    '{"empathy": 4, "tone_consistency": 3, "crisis_detected": false}',
)
PROBE = 'A judge reads the talk, then gives {"empathy": 4} and says why the reply deserves that score.'
ATTENTION_AND_MLP = r".*(self_attn\.(q_proj|k_proj|v_proj|o_proj)|mlp\.(gate_proj|up_proj|down_proj))"


@contextmanager
def foreign_warnings_off() -> Iterator[None]:
    """These libraries warn of each other's coming changes; ours stay errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def load(folder: Path) -> Any:
    from transformers import AutoModelForCausalLM

    with foreign_warnings_off():
        return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def token_ids(folder: Path, text: str) -> list[int]:
    from transformers import AutoTokenizer

    with foreign_warnings_off():
        return list(AutoTokenizer.from_pretrained(folder)(text, add_special_tokens=False)["input_ids"])


def teach(base: Path, out: Path, *, steps: int = 5, learning_rate: float = 3e-3, **lora: Any) -> Path:
    """An adapter of `base` in `out`, trained on SENTENCES, with the record of its base."""
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(0)
    with foreign_warnings_off():
        model = get_peft_model(load(base), LoraConfig(**lora))
        # from noise instead of zero: every matrix does something, however short the training
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                torch.nn.init.normal_(parameter, std=0.01)
        optimiser = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=learning_rate)
        rows = [torch.tensor([token_ids(base, text)]) for text in SENTENCES]
        for step in range(steps):
            row = rows[step % len(rows)]
            model(input_ids=row, labels=row).loss.backward()
            optimiser.step()
            optimiser.zero_grad()
        model.save_pretrained(out)
    (out / "base.json").write_text(json.dumps(record_of(base).to_dict()))
    return out


def hf_logits(folder: Path, tokens: list[int], adapter: Path | None = None) -> np.ndarray:
    """(tokens, vocabulary), float32."""
    model = load(folder)
    if adapter is not None:
        from peft import PeftModel

        with foreign_warnings_off():
            model = PeftModel.from_pretrained(model, adapter).eval()
    with torch.no_grad():
        return np.asarray(model(input_ids=torch.tensor([tokens])).logits[0].float())


def gguf_logits(file: Path, tokens: list[int], adapter: Path | None = None) -> np.ndarray:
    """(tokens, vocabulary): after each token, fed one at a time."""
    # without repacked buffers: they crash on some processors, and change nothing here
    backend = LlamaCpp(file, LlamaCppOptions(threads=1, extra_bufts=False), adapter)
    try:
        backend.reserve(len(tokens))
        rows = [backend.evaluate([Feed(0, at, [token], want_logits=True)])[0] for at, token in enumerate(tokens)]
        return np.stack(rows)
    finally:
        backend.close()


def divergence(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """KL(p || q) of the next-token distributions, per row, in nats."""
    p, q = (x.astype(np.float64) for x in (p, q))
    p, q = (x - np.logaddexp.reduce(x, axis=1, keepdims=True) for x in (p, q))
    return np.asarray((np.exp(p) * (p - q)).sum(axis=1))
