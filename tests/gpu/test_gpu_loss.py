"""The loss on CUDA is the plain one, Liger's kernel included, where the soft cap bends the logits."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.gpu, pytest.mark.slow]


@pytest.mark.parametrize("kind", ["chunked", "liger"])
@pytest.mark.parametrize("soft", [False, True], ids=["one token a target", "soft targets"])
def test_loss_and_gradient_equal_the_plain_ones_at_the_true_sizes(kind: str, soft: bool) -> None:
    import torch

    from training.loss import soft_cross_entropy

    torch.manual_seed(0)
    weight = torch.randn(262_144, 2816, device="cuda", dtype=torch.bfloat16) * 0.02
    states = torch.randn(96, 2816, device="cuda", dtype=torch.bfloat16) * 8
    capped = 30 * torch.tanh((states @ weight.T).float() / 30)
    assert capped.abs().max() > 20  # the cap is at work
    tokens = torch.randint(0, 262_144, (96, 3), device="cuda")
    shares = torch.tensor([0.6, 0.3, 0.1] if soft else [1.0, 0.0, 0.0], device="cuda").expand(96, 3).contiguous()
    weights = torch.where(torch.arange(96, device="cuda") % 2 == 0, 1.0, 0.1)
    found = {}
    for one in ("plain", kind):
        leaf = states.clone().requires_grad_(True)
        loss = soft_cross_entropy(leaf, weight, tokens, shares, weights, softcap=30.0, kind=one)  # type: ignore[arg-type]
        loss.backward()
        assert leaf.grad is not None
        found[one] = (loss.detach(), leaf.grad.float())
    (plain, plain_grad), (other, other_grad) = found["plain"], found[kind]
    torch.testing.assert_close(other, plain, rtol=1e-3, atol=0)
    assert (other_grad - plain_grad).norm() < 0.02 * plain_grad.norm()  # bfloat16 keeps 8 bits
