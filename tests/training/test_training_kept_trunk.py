"""Layers below the adapter are computed once a row, and what is made of that is the same to the bit."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import GraniteConfig, GraniteForCausalLM, LlamaConfig, LlamaForCausalLM

from aipsy_judge.errors import InputError
from training.backbone import hidden_states
from training.collate import collate
from training.kept_trunk import KeptTrunk, first_adapted
from training.lora import adapt
from training.recipe import Lora
from training.rows import Row, RowTree, Target

UPPER = r"model\.layers\.[23]\.self_attn\.(q|o)_proj"


def model(modules: str = UPPER, **config: Any) -> Any:
    torch.manual_seed(1)
    shape = {"hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 4, "num_hidden_layers": 4}
    return with_adapter(LlamaForCausalLM(LlamaConfig(vocab_size=64, **shape, **config)), modules)


def with_adapter(base: Any, modules: str = UPPER) -> Any:
    base.requires_grad_(False)
    adapted = adapt(base, Lora(rank=4, modules=modules), 14)
    for name, weight in adapted.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.1)
    return adapted


def rows() -> list[Row]:
    found = []
    for n in range(3):
        tree = RowTree()
        trunk = tree.grow(-1, range(3, 9 + 2 * n))
        ends = [tree.grow(trunk, [40 + b, 50 + n]) for b in range(2)]
        found.append(tree.row(f"r{n}", [Target(end, (7,), (1.0,), 1.0, "end") for end in ends]))
    return found


def states(trunk: KeptTrunk, judge: Any, shown: list[int]) -> torch.Tensor:
    chosen = [rows()[n] for n in shown]
    return trunk.hidden_states(judge, collate(chosen, 0), shown, [len(r.tokens) for r in chosen])


def test_states_and_gradients_are_those_of_the_whole_model_to_the_bit() -> None:
    judge = model()
    trunk = KeptTrunk(judge, rows(), memory_gb=1)
    assert (trunk.first, first_adapted(judge)) == (2, 2)
    layers = list(judge.get_base_model().model.layers)
    whole = hidden_states(judge, collate([rows()[1]], 0))
    whole.square().sum().backward()
    wanted = {n: p.grad.clone() for n, p in judge.named_parameters() if p.grad is not None}
    judge.zero_grad()
    for _ in range(2):  # computed, then kept
        found = states(trunk, judge, [1])
        torch.testing.assert_close(found, whole, rtol=0, atol=0)
    found.square().sum().backward()
    for name, gradient in wanted.items():
        torch.testing.assert_close(judge.get_parameter(name).grad, gradient, rtol=0, atol=0)
    assert list(judge.get_base_model().model.layers) == layers


def test_the_lower_layers_are_not_computed_again() -> None:
    judge = model()
    trunk = KeptTrunk(judge, rows(), memory_gb=1)
    passes: list[int] = []
    judge.get_base_model().model.layers[0].register_forward_hook(lambda *_: passes.append(1))
    for shown in ([0, 1], [1, 0], [0], [1, 2], [2, 0, 1]):  # row 2 is new in the fourth
        states(trunk, judge, shown)
    assert len(passes) == 2


def test_rows_of_unlike_length_kept_from_different_batches_are_what_each_is_alone() -> None:
    judge = model()
    trunk = KeptTrunk(judge, rows(), memory_gb=1)
    for shown in ([0, 2], [1]):
        states(trunk, judge, shown)
    together = states(trunk, judge, [2, 0, 1])
    for place, n in enumerate((2, 0, 1)):
        length = len(rows()[n].tokens)
        torch.testing.assert_close(together[place, :length], hidden_states(judge, collate([rows()[n]], 0))[0])


@pytest.mark.parametrize(
    ("judge", "memory_gb", "said"),
    [
        (lambda: model(r"model\.layers\.\d\.self_attn\.q_proj"), 1.0, "no layer lies below the adapter"),
        (lambda: model(num_kv_shared_layers=2), 1.0, "take more from below"),
        (model, 1e-6, "more than half of memory.host_gb"),
    ],
)
def test_where_nothing_can_be_kept_it_is_said(judge: Any, memory_gb: float, said: str) -> None:
    with pytest.raises(InputError, match=said):
        KeptTrunk(judge(), rows(), memory_gb)


@pytest.mark.parametrize(("multiplier", "fits"), [(1.0, True), (12.0, False)])
def test_a_model_that_scales_what_enters_in_place_of_embeddings_is_refused(multiplier: float, fits: bool) -> None:
    torch.manual_seed(1)
    shape = {"hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 4, "num_hidden_layers": 4}
    judge = with_adapter(GraniteForCausalLM(GraniteConfig(vocab_size=64, embedding_multiplier=multiplier, **shape)))
    if fits:
        assert KeptTrunk(judge, rows(), memory_gb=1).first == 2
        assert judge.training
        return
    with pytest.raises(InputError, match="something else of states that were kept"):
        KeptTrunk(judge, rows(), memory_gb=1)
