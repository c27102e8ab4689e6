"""4-bit experts on CUDA: the same weights, the same results, and copies from pinned memory that change nothing."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = [pytest.mark.gpu, pytest.mark.slow]


def _experts(seed: int = 0) -> Any:
    import torch
    from gemma4_small import text_config
    from transformers.models.gemma4.modeling_gemma4 import Gemma4TextExperts

    torch.manual_seed(seed)
    experts = Gemma4TextExperts(text_config(hidden_size=256, moe_intermediate_size=128)).requires_grad_(False)
    for stack in (experts.gate_up_proj, experts.down_proj):
        torch.nn.init.normal_(stack, std=0.1)
    return experts


def _routed(device: str) -> tuple[Any, Any, Any]:
    import torch

    made = torch.Generator().manual_seed(5)
    chosen = torch.stack([torch.randperm(8, generator=made)[:2] for _ in range(200)])
    x, weights = torch.randn(200, 256, generator=made), torch.rand(200, 2, generator=made)
    return x.to(device), chosen.to(device), weights.to(device)


def _grads(module: Any, device: str) -> list[Any]:
    import torch

    x, chosen, weights = _routed(device)
    x.requires_grad_(True)
    weights.requires_grad_(True)
    y = module(x, chosen, weights)
    y.backward(torch.randn(y.shape, generator=torch.Generator().manual_seed(6)).to(device))
    return [t.detach().cpu() for t in (y, x.grad, weights.grad)]


def test_packed_on_the_cpu_they_hold_the_same_weights_on_the_card() -> None:
    import torch

    from training.nf4_experts import NF4Experts

    packed = NF4Experts.of(_experts())
    here = packed.dequantised(torch.float32)
    there = packed.to("cuda").dequantised(torch.float32)
    for name, weight in here.items():
        torch.testing.assert_close(there[name].cpu(), weight, rtol=0, atol=1e-6)


def test_packed_on_the_card_they_are_as_near_to_the_original() -> None:
    import torch

    from training.nf4_experts import NF4Experts

    experts = _experts()
    for name, weight in NF4Experts.of(experts.cuda()).dequantised(torch.float32).items():
        original = getattr(experts, f"{name}_proj")
        assert 0.08 < (weight - original).norm() / original.norm() < 0.10


def test_output_and_gradients_are_those_of_the_cpu() -> None:
    import torch

    from training.nf4_experts import NF4Experts

    torch.backends.cuda.matmul.allow_tf32 = False
    packed = NF4Experts.of(_experts())
    here = _grads(packed, "cpu")
    for mine, theirs in zip(_grads(packed.to("cuda"), "cuda"), here, strict=True):
        assert (mine - theirs).norm() < 1e-4 * theirs.norm()


@pytest.mark.parametrize("layers", [1, 2, 5])
def test_layers_staged_from_pinned_memory_compute_what_resident_ones_do(layers: int) -> None:
    import torch
    from torch.utils.checkpoint import checkpoint

    from training.expert_staging import Staging
    from training.nf4_experts import NF4Experts

    device = torch.device("cuda", 0)
    resident = [NF4Experts.of(_experts(i)).to(device) for i in range(layers)]
    staged = [NF4Experts.of(_experts(i)) for i in range(layers)]
    staging = Staging(device, staged[0].layout.bytes)
    for number, experts in enumerate(staged):
        experts.stay_on_host(staging, number)
    staging.renumber([experts.packed for experts in staged])
    assert all(experts.packed.is_pinned() for experts in staged)
    _, chosen, weights = _routed("cuda")
    for _ in range(20):  # a race between copy and use shows itself in some of many
        start = torch.randn(200, 256, device=device)
        found = []
        for modules in (resident, staged):
            x = leaf = start.clone().requires_grad_(True)
            for module in modules:
                x = x + checkpoint(module, x, chosen, weights, use_reentrant=False)
            x.square().sum().backward()
            found.append((x.detach(), leaf.grad))
        # index_add_ on CUDA adds in no fixed order
        for ours, theirs in zip(found[1], found[0], strict=True):
            assert (ours - theirs).norm() < 1e-4 * theirs.norm()
    assert staging.waited == 1
    assert staging.taken == min(2, layers) * staged[0].layout.bytes
