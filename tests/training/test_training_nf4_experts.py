"""4-bit experts give what their dequantised weights give, and take the bytes that are claimed."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from gemma4_small import text_config
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import Gemma4ForCausalLM
from transformers.models.gemma4.modeling_gemma4 import Gemma4TextExperts

from aipsy_judge.errors import WeightsError
from training.expert_staging import Staging, next_needed
from training.nf4_experts import NF4Experts
from training.nf4_packing import Layout, Stack, pack_expert, unpack_expert

pytestmark = pytest.mark.usefixtures("one_thread")

REAL = Layout(Stack(128, 1408, 2816), Stack(128, 2816, 704))  # a layer of Gemma 4 26B-A4B


def _config(**changed: Any) -> Any:
    """Gemma4TextConfig of the small model, half as wide and of few words."""
    narrow = {"vocab_size": 64, "hidden_size": 64, "intermediate_size": 96, "sliding_window": 16}
    return text_config(**narrow | {"moe_intermediate_size": 32} | changed)


def _experts(seed: int = 0, **changed: Any) -> Gemma4TextExperts:
    config = _config(**changed)
    config._experts_implementation = "eager"
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        experts = Gemma4TextExperts(config).requires_grad_(False)
        nn.init.normal_(experts.gate_up_proj, std=0.2)
        nn.init.normal_(experts.down_proj, std=0.2)
    return experts


def _dequantised(experts: Gemma4TextExperts, packed: NF4Experts) -> Gemma4TextExperts:
    """The stock module holding the weights that the 4-bit one has in effect."""
    reference = copy.deepcopy(experts)
    weights = packed.dequantised(experts.down_proj.dtype)
    reference.gate_up_proj.data, reference.down_proj.data = weights["gate_up"], weights["down"]
    return reference


def _routed(tokens: int, experts: int = 8, k: int = 2, width: int = 64) -> tuple[Tensor, Tensor, Tensor]:
    made = torch.Generator().manual_seed(5)
    x = torch.randn(tokens, width, generator=made)
    chosen = torch.stack([torch.randperm(experts, generator=made)[:k] for _ in range(tokens)])
    return x, chosen, torch.rand(tokens, k, generator=made)


def _grads(module: nn.Module, x: Tensor, chosen: Tensor, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(y, dy/dx, dy/dweights) under a fixed random gradient of y."""
    x, weights = x.clone().requires_grad_(True), weights.clone().requires_grad_(True)
    y = module(x, chosen, weights)
    y.backward(torch.randn(y.shape, generator=torch.Generator().manual_seed(6)).to(y.dtype))
    assert x.grad is not None
    assert weights.grad is not None
    return y.detach(), x.grad, weights.grad


@pytest.mark.parametrize("shape", [{}, {"hidden_size": 96, "moe_intermediate_size": 48}])
def test_output_and_gradients_equal_those_of_the_dequantised_weights(shape: dict[str, int]) -> None:
    experts = _experts(**shape)
    packed = NF4Experts.of(experts)
    routed = _routed(40, width=experts.hidden_dim)
    ours, theirs = _grads(packed, *routed), _grads(_dequantised(experts, packed), *routed)
    torch.testing.assert_close(ours[0], theirs[0], rtol=0, atol=0)
    for mine, stock in zip(ours[1:], theirs[1:], strict=True):
        assert (mine - stock).norm() < 1e-6 * stock.norm()


def test_weights_come_back_within_the_known_error_of_nf4() -> None:
    # Relative error of NF4 in blocks of 64 on normal weights: 0.09. A kernel that reads a scale amiss gives 0.2.
    experts = _experts(hidden_size=96, moe_intermediate_size=48)
    for name, weight in NF4Experts.of(experts).dequantised(torch.float32).items():
        stored = getattr(experts, f"{name}_proj")
        assert 0.08 < (weight - stored).norm() / stored.norm() < 0.10


def test_an_expert_that_no_token_chose_and_a_place_for_none_are_skipped() -> None:
    packed = NF4Experts.of(_experts())
    x, chosen, weights = _routed(12)
    chosen = chosen.clamp(max=3)
    with_none = torch.cat([chosen, torch.full((12, 1), 8)], dim=1)  # 8 of 8 experts: transformers' word for none
    one_more = torch.cat([weights, torch.ones(12, 1)], dim=1)
    assert torch.equal(packed(x, with_none, one_more), packed(x, chosen, weights))


def test_bf16_keeps_its_sums_in_float32() -> None:
    experts = _experts()
    packed = NF4Experts.of(experts)
    x, chosen, weights = _routed(40, k=6)
    exact = _dequantised(experts, packed)(x.bfloat16().float(), chosen, weights)
    ours = packed(x.bfloat16(), chosen, weights)
    stock = _dequantised(experts, packed).bfloat16()(x.bfloat16(), chosen, weights)
    assert ours.dtype == torch.bfloat16
    assert (ours - exact).norm() <= (stock - exact).norm()


def test_autocast_computes_in_its_type_and_returns_the_callers() -> None:
    packed = NF4Experts.of(_experts())
    x, chosen, weights = _routed(10)
    with torch.autocast("cpu", torch.bfloat16):
        y = packed(x, chosen, weights)
    assert y.dtype == torch.float32
    assert torch.equal(y, packed(x.bfloat16(), chosen, weights).float())


def test_a_layer_of_the_26b_takes_the_bytes_of_the_budget() -> None:
    # 1/2 + 1/64 + 4/(64*256) bytes a weight and 4 bytes an expert and projection, as the 26B-A4B's sizes divide evenly
    parameters = 128 * (1408 * 2816 + 2816 * 704)
    assert REAL.parameters == parameters == 761_266_176
    assert REAL.bytes == parameters * (1 / 2 + 1 / 64 + 4 / (64 * 256)) + 2 * 128 * 4
    assert round(REAL.bytes / parameters, 5) == 0.51587
    assert NF4Experts(REAL, nn.Identity()).packed.nbytes == REAL.bytes


def test_parts_do_not_overlap_and_start_where_a_kernel_can_read_them() -> None:
    layout = Layout(Stack(3, 6, 96), Stack(3, 96, 48))
    end = 0
    for start, size in layout.spans.values():
        assert start >= end
        assert start % 16 == 0
        end = start + size
    assert end <= layout.bytes


@pytest.mark.slow
def test_one_real_expert_survives_packing() -> None:
    layout = Layout(Stack(1, 1408, 2816), Stack(1, 64, 64))
    packed = torch.zeros(layout.bytes, dtype=torch.uint8)
    weight = torch.randn(1408, 2816, generator=torch.Generator().manual_seed(0))
    pack_expert(layout, packed, "gate_up", 0, weight)
    error = (unpack_expert(layout, packed, "gate_up", 0, torch.float32) - weight).norm() / weight.norm()
    assert 0.088 < error < 0.094


def test_a_matrix_of_the_wrong_shape_is_refused() -> None:
    layout = Layout(Stack(2, 4, 64), Stack(2, 64, 64))
    with pytest.raises(WeightsError, match=r"expert 1: down is \(4, 64\), not \(64, 64\)"):
        pack_expert(layout, torch.zeros(layout.bytes, dtype=torch.uint8), "down", 1, torch.zeros(4, 64))


def test_experts_that_do_not_divide_into_blocks_are_refused() -> None:
    with pytest.raises(WeightsError, match="no multiple of 64"):
        Stack(2, 3, 50)


def test_casting_the_model_leaves_the_scales_alone() -> None:
    packed = NF4Experts.of(_experts())
    before = packed.packed.clone()
    packed.to(torch.bfloat16).half()
    assert torch.equal(packed.packed, before)


def test_state_is_saved_and_loaded() -> None:
    source = NF4Experts.of(_experts(seed=1))
    other = NF4Experts.of(_experts(seed=2))
    x, chosen, weights = _routed(9)
    assert not torch.equal(other(x, chosen, weights), source(x, chosen, weights))
    other.load_state_dict(source.state_dict())
    assert torch.equal(other(x, chosen, weights), source(x, chosen, weights))


def test_experts_hold_no_parameter_that_an_optimiser_could_find() -> None:
    assert list(NF4Experts.of(_experts()).parameters()) == []


# --- staging ---------------------------------------------------------------------------------------------------------


def _staged(layers: int) -> tuple[list[NF4Experts], Staging]:
    modules = [NF4Experts.of(_experts(seed=i)) for i in range(layers)]
    staging = Staging(torch.device("cpu"), modules[0].layout.bytes)
    for number, module in enumerate(modules):
        module.stay_on_host(staging, number)
    staging.renumber([module.packed for module in modules])
    return modules, staging


def _chain(modules: list[NF4Experts], tokens: Tensor, chosen: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    x = start = tokens.clone().requires_grad_(True)
    for module in modules:
        x = x + checkpoint(module, x, chosen, weights, use_reentrant=False)
    x.square().sum().backward()
    assert start.grad is not None
    return x.detach(), start.grad


@pytest.mark.parametrize("layers", [1, 2, 3, 5])
def test_staged_layers_compute_what_resident_ones_do(layers: int) -> None:
    modules, _ = _staged(layers)
    resident = [NF4Experts.of(_experts(seed=i)) for i in range(layers)]
    routed = _routed(15)
    for _ in range(3):  # staging carries state from one step to the next
        ours, theirs = _chain(modules, *routed), _chain(resident, *routed)
        assert torch.equal(ours[0], theirs[0])
        assert torch.equal(ours[1], theirs[1])


def test_a_step_waits_for_no_copy_but_the_first() -> None:
    modules, staging = _staged(5)
    routed = _routed(15)
    _chain(modules, *routed)
    assert staging.waited == 1
    # 5 up, and 3 more down: the top two are still there when the backward pass begins
    assert staging.copies == 8
    _chain(modules, *routed)
    assert staging.waited == 1
    assert staging.copies == 8 + 3 + 3


def test_two_buffers_are_all_the_room_staging_takes() -> None:
    modules, staging = _staged(5)
    _chain(modules, *_routed(15))
    assert staging.taken == staging.bytes == 2 * modules[0].layout.bytes


def test_what_lies_on_the_host_stays_there_when_the_model_is_moved() -> None:
    modules, _ = _staged(2)
    modules[0].to("meta")
    assert modules[0].packed.device.type == "cpu"
    free = NF4Experts.of(_experts()).to("meta")
    assert free.packed.device.type == "meta"


@pytest.mark.parametrize(
    ("current", "previous", "after"),
    [(0, None, 1), (1, 0, 2), (4, 3, None), (4, 4, 3), (3, 4, 2), (3, 3, 2), (0, 1, None), (0, 0, None)],
)
def test_the_next_layer_is_the_one_above_on_the_way_up_and_the_one_below_on_the_way_down(
    current: int, previous: int | None, after: int | None
) -> None:
    assert next_needed(current, previous, 5) == after


# --- in the model ----------------------------------------------------------------------------------------------------


def _adapted(model: Gemma4ForCausalLM) -> nn.Module:
    from peft import LoraConfig, get_peft_model

    targets = r"model\.layers\.\d+\.(self_attn\.(q|k|v|o)_proj|mlp\.(gate|up|down)_proj)"
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return get_peft_model(model, LoraConfig(r=4, target_modules=targets, init_lora_weights=False))


def _model_step(model: nn.Module) -> tuple[Tensor, dict[str, Tensor]]:
    tokens = torch.randint(0, 64, (2, 24), generator=torch.Generator().manual_seed(4))
    model.train()
    loss = model(input_ids=tokens, labels=tokens, use_cache=False).loss
    loss.backward()
    return loss.detach(), {n: p.grad for n, p in model.named_parameters() if p.requires_grad}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing:FutureWarning")  # peft 0.21 asks by the old name
def test_loss_and_every_adapter_gradient_of_the_model_are_those_of_the_dequantised_weights() -> None:
    torch.manual_seed(0)
    plain = Gemma4ForCausalLM(_config())
    packed = copy.deepcopy(plain)
    held = []
    for ours, theirs in zip(packed.model.layers, plain.model.layers, strict=True):
        ours.experts = NF4Experts.of(theirs.experts)
        held.append(ours.experts)
        weights = ours.experts.dequantised(torch.float32)
        theirs.experts.gate_up_proj.data, theirs.experts.down_proj.data = weights["gate_up"], weights["down"]
    staging = Staging(torch.device("cpu"), held[0].layout.bytes)
    for number, experts in enumerate(held[:3]):
        experts.stay_on_host(staging, number)
    staging.renumber([experts.packed for experts in held[:3]])
    plain.config._experts_implementation = "eager"
    packed_lora, plain_lora = _adapted(packed), _adapted(plain)
    packed.activation_checkpointing_enable({"use_reentrant": False})
    packed.enable_input_require_grads()
    ours, our_grads = _model_step(packed_lora)
    theirs, their_grads = _model_step(plain_lora)
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=0)
    assert len(our_grads) == len(their_grads) == 2 * (6 * 7 - 1)  # the full layer has no v_proj
    for name, grad in our_grads.items():
        assert grad is not None, name
        assert (grad - their_grads[name]).norm() < 1e-5 * their_grads[name].norm(), name
        assert grad.abs().max() > 0, name
