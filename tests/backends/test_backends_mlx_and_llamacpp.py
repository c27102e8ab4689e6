"""MLX and llama.cpp over the same weights: the same logits, the same slots."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mlx_backends import PLAIN, same, verdicts
from mlx_folders import gemma4_f32_gguf, needs_mlx
from real_models import smollm2, smollm2_f32

from aipsy_judge.backends.llamacpp import LlamaCpp
from aipsy_judge.backends.protocol import Feed, TokenBackend
from aipsy_judge.contract import COMPACT, FULL
from training.dequantised import dequantised

pytestmark = [pytest.mark.slow, needs_mlx]


def divergence(p: np.ndarray, q: np.ndarray) -> float:
    """Kullback-Leibler divergence of the distributions that logits stand for, in nats."""
    a, b = (x - x.max() - np.log(np.exp(x - x.max()).sum()) for x in (p.astype(np.float64), q.astype(np.float64)))
    return float((np.exp(a) * (a - b)).sum())


def branched(backend: TokenBackend, tokens: list[int]) -> list[np.ndarray]:
    backend.reserve(600)
    backend.evaluate([Feed(0, 0, tokens[:-12])])
    out = []
    for n in range(1, 6):
        backend.fork(0, n, len(tokens) - 12 - 2 * n)
        out += backend.evaluate([Feed(n, len(tokens) - 12 - 2 * n, tokens[-12 - 2 * n : -n], True)])
    return out


def test_logits_are_llama_cpps_of_the_same_weights(gemma: Any) -> None:
    """Of experts the median counts: where two weigh nearly the same, a last digit can choose the other."""
    theirs = LlamaCpp(gemma4_f32_gguf(), PLAIN)
    tokens = theirs.tokenize("Rate the reply: that is a heavy thing to carry home. " * 9, special=False)
    assert len(tokens) > 100  # beyond the window
    gemma._on_thread(gemma._open, 0)
    pairs = list(zip(branched(gemma, tokens), branched(theirs, tokens), strict=True))
    theirs.close()
    assert np.median([divergence(b, a) for a, b in pairs]) < 1e-4
    assert np.median([np.abs(a - b).max() for a, b in pairs]) < 0.05
    assert all(a.argmax() == b.argmax() for a, b in pairs)


def test_logits_of_smollm2_are_llama_cpps() -> None:
    from aipsy_judge.backends.mlxlm import MlxLm

    ours, theirs = MlxLm(dequantised(smollm2())), LlamaCpp(smollm2_f32(), PLAIN)
    tokens = theirs.tokenize("Rate the reply: that is a heavy thing to carry home.", special=False)
    out = []
    for backend in (ours, theirs):
        backend.reserve(100)
        backend.evaluate([Feed(0, 0, tokens[:8])])
        backend.fork(0, 1, 6)
        out.append(backend.evaluate([Feed(1, 6, tokens[6:], True)])[0])
        backend.close()
    assert np.abs(out[1]).max() > 5
    np.testing.assert_allclose(*out, atol=3e-2)  # llama.cpp keeps keys and values at 16 bits


@pytest.mark.parametrize("contract", [COMPACT, FULL], ids=lambda c: c.name)
def test_the_engine_reads_the_same_slots_of_gemma_4(gemma: Any, contract: Any) -> None:
    theirs = LlamaCpp(gemma4_f32_gguf(), PLAIN)
    gemma._on_thread(gemma._open, 0)
    seen, apart = same(verdicts(gemma, contract), verdicts(theirs, contract))
    theirs.close()
    assert np.median(apart) < 1e-4
    assert np.quantile(apart, 0.9) < 0.01
    assert len(seen) > 2  # or equal answers would say nothing


def test_a_trained_judge_says_the_same_with_either_backend() -> None:
    from trained_judge import ADAPTER, exported, talks

    from aipsy_judge.backends.mlxlm import MlxLm

    kinds = {talk.id.split("-")[1]: talk for talk in talks(seen=False)}
    theirs = LlamaCpp(exported("F16"), PLAIN)
    ours = MlxLm(ADAPTER.with_name(f"{ADAPTER.name}-merged"))
    seen: set[Any] = set()
    for kind in ("helping", "cold"):
        values, apart = same(*(verdicts(b, COMPACT, kinds[kind]) for b in (ours, theirs)))
        seen |= values
        assert max(apart) < 2e-3
    ours.close()
    theirs.close()
    assert len(seen) > 3
