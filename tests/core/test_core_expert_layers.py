"""How many layers' experts stay in RAM, counted by hand."""

from __future__ import annotations

import re

import pytest

from aipsy_judge.backends.llamacpp_library import cpu_expert_overrides
from aipsy_judge.expert_layers import GIB, OVERHEAD_BYTES, layers_in_ram
from aipsy_judge.gguf_header import GgufHeader, TensorInfo


def model(first_layer: int = 0) -> GgufHeader:
    """1 GiB of other weights and four layers with 2 GiB of experts each."""
    rows = [("token_embd.weight", GIB)]
    for layer in range(first_layer, first_layer + 4):
        rows += [(f"blk.{layer}.ffn_gate_up_exps.weight", GIB), (f"blk.{layer}.ffn_down_exps.weight", GIB)]
    return GgufHeader({}, {}, tuple(TensorInfo(n, (1,), 0, 0, size) for n, size in rows))


@pytest.mark.parametrize(("gib_for_experts", "layers"), [(8, 0), (7.9, 1), (6, 1), (4, 2), (0.5, 4), (-1, 4)])
def test_the_fewest_layers_that_make_room(gib_for_experts, layers):
    gpu = OVERHEAD_BYTES + int((1 + 2 + gib_for_experts) * GIB)
    assert layers_in_ram(model(), gpu, cache_gb=2) == layers


def test_layers_without_experts_at_the_beginning_are_counted_too():
    """Experts begin in the fourth layer: to leave out those of one layer, the first four must be named."""
    gpu = OVERHEAD_BYTES + (1 + 6) * GIB
    assert layers_in_ram(model(first_layer=3), gpu, cache_gb=0) == 4


def test_a_model_without_experts_has_none_to_leave_out():
    dense = GgufHeader({}, {}, (TensorInfo("blk.0.ffn_up.weight", (1,), 0, 0, 9 * GIB),))
    assert layers_in_ram(dense, GIB, cache_gb=0) == 0


def test_the_table_names_the_experts_of_these_layers_and_ends_with_nothing():
    *rows, end = cpu_expert_overrides(2)
    assert end.pattern is None
    assert end.buffer_type is None
    assert len({row.buffer_type for row in rows}) == 1
    patterns = [row.pattern.decode() for row in rows]

    def named(tensor: str) -> bool:
        return any(re.search(p, tensor) for p in patterns)

    for kind in ("up", "down", "gate", "gate_up"):
        assert named(f"blk.0.ffn_{kind}_exps.weight")
        assert named(f"blk.1.ffn_{kind}_exps.weight")
        assert not named(f"blk.2.ffn_{kind}_exps.weight")
        assert not named(f"blk.11.ffn_{kind}_exps.weight")
        assert not named(f"blk.0.ffn_{kind}.weight")
