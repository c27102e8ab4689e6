"""Real weights for tests: those that a package carries, and a Gemma 4 of random weights made once a clone."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import llama_cpp
import numpy as np
from made_once import CACHE, one_at_a_time

from aipsy_judge.backends.llamacpp import LlamaCpp
from aipsy_judge.weights import find_weights


@cache
def smollm2() -> Path:
    return find_weights("smollm2-untrained").model


@cache
def smollm2_f32() -> Path:
    """The same weights at 32 bits. With quantised weights activations are rounded to 8 bits, which makes a
    difference in the last digit (other cells in the cache, another batch) into one of half a logit."""
    target = CACHE / "smollm2-f32.gguf"
    with one_at_a_time(target):
        if not target.is_file():
            params = llama_cpp.llama_model_quantize_default_params()
            params.ftype, params.allow_requantize, params.nthread = 0, True, 2
            part = target.with_suffix(".part")
            assert llama_cpp.llama_model_quantize(str(smollm2()).encode(), str(part).encode(), params) == 0
            part.rename(target)
    return target


@cache
def gemma4_tiny() -> Path:
    """Made in about 20 s from the vocabulary in llama-cpp-python's source, then kept in .cache/ of the clone."""
    target = CACHE / "gemma4-tiny-v3.gguf"
    with one_at_a_time(target):
        if not target.is_file():
            from gemma4_tiny import write_gemma4_tiny

            from quantize.llama_source import llama_cpp_source

            write_gemma4_tiny(llama_cpp_source() / "models" / "ggml-vocab-gemma-4.gguf", target)
    return target


# What must be added to a token's logit so that the model, over the turns of these tests, is about as likely to say
# one thing as another: the negative mean of its log probability where it was asked. Measured once, rounded.
_BIAS: dict[tuple[str, str], dict[str, float]] = {
    ("smollm2", "full"): {
        "0": 1.44,
        "1": 1.27,
        "2": 1.74,
        "3": 2.17,
        "4": 2.87,
        "5": 2.08,
        " null": 1.3,
        "no": 0.97,
        "yes": 0.51,
        "direct": -2.4,
        "d": -2.4,
        "di": -2.4,
        "dir": -2.4,
    },
    ("smollm2", "compact"): {
        "0": 3.7,
        "1": 0.9,
        "2": 1.2,
        "3": 2.6,
        "4": 2.6,
        "5": 2.6,
        "NA": 4.5,
        "N": 4.5,
        "none": 1.4,
        "ind": 1.2,
        "direct": 0.9,
    },
    ("gemma4", "full"): {"yes": 4.0, "direct": 1.5},
}


def bias_of(model: LlamaCpp, contract: str) -> np.ndarray:
    """The bias over the vocabulary for a family and contract; zeros where none is needed."""
    family = "smollm2" if len(model.vocabulary) < 100_000 else "gemma4"
    bias = np.zeros(len(model.vocabulary), dtype=np.float32)
    for text, value in _BIAS.get((family, contract), {}).items():
        for token, piece in enumerate(model.vocabulary):
            if piece == text.encode():
                bias[token] += value
    return bias
