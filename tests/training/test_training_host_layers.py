"""Experts move to the machine's memory until the longest batch fits, measured by the allocator itself."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import pytest
import torch
from gemma4_small import small_model
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from aipsy_judge.errors import CapacityError
from training.allocated import allocation_peak, peak_of, resident_bytes
from training.host_layers import expert_layers, host_order, on_host, put_on_host, settle
from training.nf4_experts import NF4Experts

pytestmark = pytest.mark.usefixtures("one_thread")

CPU = torch.device("cpu")
# Experts are most of this model, as they are of the real one.
SHAPE = {"num_hidden_layers": 12, "num_experts": 8, "vocab_size": 64, "moe_intermediate_size": 512}


@cache
def _quantised() -> Any:
    model = small_model(**SHAPE)
    for layer in model.model.layers:
        layer.experts = NF4Experts.of(layer.experts)
    return model.requires_grad_(False)


def _model() -> Any:
    return copy.deepcopy(_quantised())


def _step(model: Any, tokens: int = 8) -> Tensor:
    """Forward and backward to the embeddings, as an adapter below everything would need it."""
    ids = 1 + torch.arange(tokens)[None]  # not 0: padding is a vector of zeros, at which norms have no bounded slope
    x = model.model.embed_tokens(ids).detach().requires_grad_(True)
    model(inputs_embeds=x, use_cache=False).logits.square().sum().backward()
    assert x.grad is not None
    return x.grad


@given(st.integers(1, 130))
def test_every_layer_is_in_the_order_of_moving_once(layers: int) -> None:
    assert sorted(host_order(layers)) == list(range(layers))


@pytest.mark.parametrize("moved", [2, 4, 8, 12, 16])
def test_every_beginning_of_the_order_is_spread_over_the_depth(moved: int) -> None:
    chosen = sorted(host_order(30)[:moved])
    gaps = [b - a for a, b in zip(chosen, [*chosen[1:], 30 + chosen[0]], strict=True)]
    assert max(gaps) <= 2 * 32 / moved


def test_moving_more_never_brings_a_layer_back() -> None:
    model = _model()
    for count in (2, 5, 3, 12):
        before = {i for i, e in enumerate(expert_layers(model)) if e.on_host}
        put_on_host(model, count, CPU)
        after = {i for i, e in enumerate(expert_layers(model)) if e.on_host}
        assert before <= after
        assert len(after) == max(len(before), count)


@pytest.mark.slow
def test_results_are_the_same_wherever_experts_lie() -> None:
    model = _model()
    expected = _step(model)
    for count in (1, 2, 7, 12):
        put_on_host(model, count, CPU)
        assert torch.equal(_step(model), expected)


@pytest.mark.slow
def test_the_longest_batch_settles_within_the_budget_by_moving_layers() -> None:
    model = _model()
    free = peak_of(lambda: _step(model), model, CPU)
    each = expert_layers(model)[0].layout.bytes
    budget = free - 4 * each
    settled = settle(model, lambda: _step(model), CPU, budget)
    # 4 layers must go and 2 buffers come: 6, had the rest of the peak stayed the same
    assert 6 <= settled.on_host <= 8
    assert settled.on_host == on_host(model)
    assert settled.peak_bytes <= budget
    assert peak_of(lambda: _step(model), model, CPU) <= budget


@pytest.mark.slow
def test_what_fits_at_once_is_left_alone() -> None:
    model = _model()
    settled = settle(model, lambda: _step(model), CPU, 10**12)
    assert (settled.on_host, settled.attempts) == (0, 1)


@pytest.mark.slow
def test_running_out_of_memory_moves_layers_and_tries_again() -> None:
    model = _model()
    room = resident_bytes(model) - 3 * expert_layers(model)[0].layout.bytes

    def step_on_a_small_device() -> None:
        _step(model)
        if resident_bytes(model) > room:  # staging buffers are there by now
            raise torch.OutOfMemoryError("no room")

    settled = settle(model, step_on_a_small_device, CPU, 10**12)
    assert settled.attempts > 1
    assert resident_bytes(model) <= room
    assert settled.on_host < 12


@pytest.mark.slow
def test_a_batch_that_cannot_fit_ends_with_what_to_lower() -> None:
    model = _model()
    with pytest.raises(CapacityError, match="with the experts of all 12 layers") as caught:
        settle(model, lambda: _step(model), CPU, 1000)
    assert "render.max_tokens" in str(caught.value.hint)


def test_a_model_without_4_bit_experts_has_nothing_to_move() -> None:
    model = small_model(num_hidden_layers=6)
    with pytest.raises(CapacityError, match=r"the longest batch does not fit 0\.00 GB"):
        settle(model, lambda: _step(model), CPU, 1000)


def test_the_measured_peak_is_that_of_the_tensors_alive_together() -> None:
    def work() -> None:
        first = torch.ones(1000, 1000)  # 4 MB
        second = first * 2  # 8 MB alive
        del first
        third = second.double()  # 4 + 8 MB alive
        del second, third
        torch.ones(10)

    assert abs(allocation_peak(work) - 12_000_000) < 20_000


@pytest.mark.slow
def test_experts_on_the_host_count_only_as_staged() -> None:
    model = _model()
    before = resident_bytes(model)
    each = expert_layers(model)[0].layout.bytes
    put_on_host(model, 5, CPU)
    assert before - resident_bytes(model) == 5 * each
    _step(model)
    assert before - resident_bytes(model) == 3 * each
