"""Small real models, taught a few sentences through a LoRA adapter: enough for an adapter that does something."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from aipsy_judge.backends.llamacpp import LlamaCpp, LlamaCppOptions
from aipsy_judge.backends.protocol import Feed
from training.adapter_files import load_adapter, save_adapter
from training.model import load_base

SENTENCES = (
    "The judge reads the whole talk before it gives a reply a score from 0 to 5.",
    '{"empathy": 4, "tone_consistency": 3, "crisis_detected": false}',
)
PROBE = 'A judge reads the talk, then gives {"empathy": 4} and says why the reply deserves that score.'


@contextmanager
def foreign_warnings_off() -> Iterator[None]:
    """These libraries warn of each other's coming changes; ours stay errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def load(folder: Path, adapter: Path | None = None) -> Any:
    """As training loads it, at 32 bits: of Gemma 4 the text model alone, whose weights have other names than stored."""
    with foreign_warnings_off():
        model = load_base(folder, precision="fp32", device=torch.device("cpu"))
        return (model if adapter is None else load_adapter(model, adapter)).eval()


@cache
def tokenizer(folder: Path) -> Any:
    from transformers import AutoTokenizer

    with foreign_warnings_off():
        return AutoTokenizer.from_pretrained(folder)


def token_ids(folder: Path, text: str) -> list[int]:
    return list(tokenizer(folder)(text, add_special_tokens=False)["input_ids"])


def teach(base: Path, out: Path, wrapped: Callable[[Any], Any], noise: float = 0.01) -> Path:
    """An adapter of `base` in `out` as training writes it, three steps on SENTENCES. `wrapped`: model -> PeftModel;
    noise: standard deviation that the second matrices begin with."""
    torch.manual_seed(0)
    with foreign_warnings_off():
        model = wrapped(load(base))
        # from noise instead of zero: every matrix does something, however short the training
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                torch.nn.init.normal_(parameter, std=noise)
        optimiser = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=5e-4)
        for text in (*SENTENCES, SENTENCES[0]):
            row = torch.tensor([token_ids(base, text)])
            model(input_ids=row, labels=row).loss.backward()
            optimiser.step()
            optimiser.zero_grad()
        save_adapter(model, out, base)
    return out


def hf_logits(folder: Path, tokens: list[int], adapter: Path | None = None) -> np.ndarray:
    """(tokens, vocabulary), float32."""
    with torch.no_grad():
        return np.asarray(load(folder, adapter)(input_ids=torch.tensor([tokens])).logits[0].float())


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
