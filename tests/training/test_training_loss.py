"""The chunked loss is the plain one, in value and in gradient, and never holds all logits."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import types

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from aipsy_judge.errors import InputError
from training import chunked_loss, liger
from training.chunked_loss import chunked
from training.loss import Kind, chosen_kind, plain, soft_cross_entropy

CAP = 30.0


def problem(
    count: int, width: int, vocabulary: int, options: int, seed: int, dtype: torch.dtype = torch.float32
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Logits with a standard deviation of 40 before the cap: most are beyond 20, where the cap bends them."""
    generator = torch.Generator().manual_seed(seed)
    hidden = torch.randn(count, width, generator=generator).to(dtype)
    weight = (torch.randn(vocabulary, width, generator=generator) * (40 / width**0.5)).to(dtype)
    tokens = torch.stack([torch.randperm(vocabulary, generator=generator)[:options] for _ in range(count)])
    shares = torch.rand(count, options, generator=generator)
    shares[torch.rand(count, options, generator=generator) < 0.3] = 0.0
    shares[:, 0] += 0.05
    weights = torch.rand(count, generator=generator) + 0.01
    return hidden, weight, tokens, shares / shares.sum(1, keepdim=True), weights


def taken(kind: Kind, parts: tuple[Tensor, ...], softcap: float | None) -> tuple[Tensor, Tensor]:
    hidden = parts[0].clone().requires_grad_()
    value = soft_cross_entropy(hidden, *parts[1:], softcap=softcap, kind=kind)
    (3.0 * value).backward()  # type: ignore[no-untyped-call]
    assert hidden.grad is not None
    return value.detach(), hidden.grad


@settings(max_examples=60, deadline=None)
@given(
    count=st.integers(1, 9),
    width=st.integers(1, 12),
    vocabulary=st.integers(2, 50),
    size=st.integers(1, 10),
    softcap=st.sampled_from([None, CAP, 5.0]),
    seed=st.integers(0, 2**16),
    data=st.data(),
)
def test_chunks_of_any_size_give_the_plain_loss_and_gradient(
    count: int, width: int, vocabulary: int, size: int, softcap: float | None, seed: int, data: st.DataObject
) -> None:
    options = data.draw(st.integers(1, min(vocabulary, 6)))
    hidden, *rest = problem(count, width, vocabulary, options, seed)
    one, other = hidden.clone().requires_grad_(), hidden.clone().requires_grad_()
    wanted = plain(one, *rest, softcap)
    found = chunked(other, *rest, softcap, size)
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-4)
    torch.autograd.backward([wanted, found])
    torch.testing.assert_close(other.grad, one.grad, rtol=1e-4, atol=1e-4)


def test_the_value_worked_by_hand() -> None:
    # Two tokens, logits 3 and 1 uncapped: logsumexp = 3 + ln(1 + e^-2) = 3.126928; target .25/.75: .25*3 + .75*1 = 1.5
    hidden, weight = torch.tensor([[1.0]]), torch.tensor([[3.0], [1.0]])
    args = (hidden, weight, torch.tensor([[0, 1]]), torch.tensor([[0.25, 0.75]]), torch.tensor([2.0]))
    for kind in ("plain", "chunked"):
        assert soft_cross_entropy(*args, kind=kind).item() == pytest.approx(2 * (3.126928 - 1.5), abs=1e-5)
    # Cap 2: 2 tanh(1.5) = 1.810297, 2 tanh(.5) = 0.924234; logsumexp = 2.155499; target 1.145750
    for kind in ("plain", "chunked"):
        assert soft_cross_entropy(*args, kind=kind, softcap=2.0).item() == pytest.approx(2 * 1.009749, abs=1e-5)


def test_the_gradient_is_the_slope_of_the_loss() -> None:
    hidden, *rest = (t.double() if t.is_floating_point() else t for t in problem(3, 4, 7, 2, 5))
    hidden = (hidden / 8).float().double()

    def value(moved: Tensor) -> float:
        return float(plain(moved.double(), rest[0], rest[1], rest[2], rest[3], CAP))

    _, gradient = taken("chunked", (hidden.float(), *(t.float() if t.is_floating_point() else t for t in rest)), CAP)
    for index in ((0, 0), (1, 3), (2, 2)):
        step = torch.zeros_like(hidden)
        step[index] = 1e-2
        slope = (value(hidden + step) - value(hidden - step)) / 2e-2
        assert gradient[index].item() / 3 == pytest.approx(slope, rel=2e-2, abs=2e-3)


@pytest.mark.parametrize("softcap", [None, CAP])
def test_bfloat16_heads_agree_within_their_rounding(softcap: float | None) -> None:
    parts = problem(40, 64, 500, 6, 3, torch.bfloat16)
    (wanted, slope), (found, gradient) = taken("plain", parts, softcap), taken("chunked", parts, softcap)
    assert found.dtype == torch.float32
    assert gradient.dtype == torch.bfloat16
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=0)
    # a bfloat16 has 8 bits; the largest entries set what rounding can do to the smallest
    assert (gradient - slope).abs().max() <= slope.abs().max() * 2**-7


def test_the_cap_matters_in_these_tests() -> None:
    hidden, weight, *rest = problem(40, 64, 500, 6, 3)
    assert ((hidden @ weight.T).abs() > 20).float().mean() > 0.5
    capped = soft_cross_entropy(hidden, weight, *rest, softcap=CAP)
    assert abs(capped - soft_cross_entropy(hidden, weight, *rest)) > 0.1 * capped.abs()


def test_float32_states_over_a_bfloat16_head_keep_their_own_gradient_type() -> None:
    hidden, weight, *rest = problem(6, 8, 30, 3, 1)
    for kind in ("plain", "chunked"):
        _, gradient = taken(kind, (hidden, weight.bfloat16(), *rest), CAP)
        assert gradient.dtype == torch.float32


def test_no_targets_are_a_loss_of_nothing() -> None:
    hidden, weight, tokens, shares, weights = problem(4, 8, 30, 3, 1)
    for kind in ("plain", "chunked"):
        value, gradient = taken(kind, (hidden[:0], weight, tokens[:0], shares[:0], weights[:0]), CAP)
        assert value.item() == 0.0
        assert gradient.shape == (0, 8)


def test_padding_of_the_shares_changes_nothing() -> None:
    hidden, weight, tokens, shares, weights = problem(5, 8, 30, 3, 1)
    wider = torch.cat([tokens, torch.zeros(5, 2, dtype=torch.int64)], 1)
    padded = torch.cat([shares, torch.zeros(5, 2)], 1)
    wanted, slope = taken("chunked", (hidden, weight, tokens, shares, weights), CAP)
    found, gradient = taken("chunked", (hidden, weight, wider, padded, weights), CAP)
    torch.testing.assert_close(found, wanted)
    torch.testing.assert_close(gradient, slope)


def test_the_largest_tensor_is_a_chunk_of_logits(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch.utils._python_dispatch import TorchDispatchMode

    largest = 0

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            nonlocal largest
            out = func(*args, **(kwargs or {}))
            if isinstance(out, Tensor):
                largest = max(largest, out.numel())
            return out

    monkeypatch.setattr(chunked_loss, "CHUNK_BYTES", 4 * 1000 * 5)  # five tokens of logits
    parts = problem(64, 4, 1000, 3, 2)
    with Watch():
        taken("chunked", parts, CAP)
    assert largest == 5 * 1000


def test_a_head_that_wants_a_gradient_is_refused() -> None:
    hidden, weight, *rest = problem(3, 4, 7, 2, 5)
    with pytest.raises(ValueError, match="frozen"):
        soft_cross_entropy(hidden, weight.requires_grad_(), *rest)


@pytest.mark.parametrize("which", range(5))
def test_shapes_that_do_not_fit_are_refused(which: int) -> None:
    parts = list(problem(3, 4, 7, 2, 5))
    parts[which] = parts[which][..., :1] if which < 2 else parts[which][:2]
    with pytest.raises(ValueError, match=r"fit|states"):
        soft_cross_entropy(*parts)


def test_without_cuda_liger_is_refused_and_auto_is_chunked() -> None:
    cpu = torch.device("cpu")
    assert chosen_kind("auto", cpu) == "chunked"
    assert chosen_kind("plain", cpu) == "plain"
    for call in (
        lambda: chosen_kind("liger", cpu),
        lambda: soft_cross_entropy(*problem(3, 4, 7, 2, 5), kind="liger"),
    ):
        with pytest.raises(InputError, match="CUDA") as caught:
            call()
        assert "chunked" in (caught.value.hint or "")


def test_an_unknown_loss_names_those_there_are() -> None:
    with pytest.raises(InputError) as caught:
        chosen_kind("fast", torch.device("cpu"))
    assert "chunked" in (caught.value.hint or "")


def test_auto_on_cuda_without_the_package_is_chunked(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if "liger" in name else found(name, *a))
    assert chosen_kind("auto", torch.device("cuda")) == "chunked"
    with pytest.raises(InputError, match="not installed"):
        chosen_kind("liger", torch.device("cuda"))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_is_handed_to_liger_adds_up_to_the_plain_loss(monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype) -> None:
    """With a stand-in for the kernel: which targets it gets, how often it is called, and how its sums are weighted."""
    calls: list[int] = []

    class Stand:
        def __init__(self, *, reduction: str, softcap: float | None) -> None:
            assert reduction == "sum"
            self.softcap = softcap

        def __call__(self, weight: Tensor, states: Tensor, tokens: Tensor) -> Tensor:
            calls.append(len(tokens))
            assert states.dtype == weight.dtype
            ones = torch.ones(len(tokens))
            return plain(states, weight, tokens[:, None], ones[:, None], ones, self.softcap)

    stand = types.ModuleType("liger_kernel.transformers.fused_linear_cross_entropy")
    stand.LigerFusedLinearCrossEntropyLoss = Stand  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, stand.__name__, stand)
    for package in ("liger_kernel", "liger_kernel.transformers"):
        monkeypatch.setitem(sys.modules, package, types.ModuleType(package))
    monkeypatch.setattr(liger, "require", lambda device: None)
    hidden, weight, tokens, shares, weights = problem(60, 16, 90, 4, 8, dtype)
    shares[1::2] = 0.25
    shares[::2] = torch.eye(4)[2]  # hard, and not in the first place
    weights[::2] = torch.tensor([0.1] * 14 + [0.25] * 9 + [1.0] * 7)
    parts = (hidden.float(), weight, tokens, shares, weights)
    (wanted, slope), (found, gradient) = taken("plain", parts, CAP), taken("liger", parts, CAP)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-3)
    torch.testing.assert_close(gradient, slope, rtol=1e-2, atol=2e-2 * float(slope.abs().max()))
    assert calls == [14, 9]  # the last seven are too few for a call of their own


@pytest.mark.slow
def test_the_losses_import_no_liger_until_it_is_asked_for() -> None:
    program = (
        "import sys; sys.modules['liger_kernel'] = None; import torch, training.loss as l; "
        "h = torch.randn(2, 3, requires_grad=True); "
        "t = torch.tensor([[1], [2]]); "
        "l.soft_cross_entropy(h, torch.randn(5, 3), t, torch.ones(2, 1), torch.ones(2)).backward(); "
        "assert 'triton' not in sys.modules and h.grad is not None"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)


@pytest.mark.slow
@pytest.mark.skipif(not torch.cuda.is_available(), reason="Liger's kernels need CUDA, which is not to be had here")
@pytest.mark.parametrize("softcap", [None, CAP])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_liger_agrees_with_the_plain_loss_where_the_cap_bends(softcap: float | None, dtype: torch.dtype) -> None:
    parts = tuple(t.cuda() for t in problem(60, 64, 500, 6, 3, dtype))
    parts[3][::2] = torch.eye(6, device="cuda")[0]  # half of the targets are hard, and these the kernel takes
    parts[4][::4] = 0.1
    parts[4][2::4] = 1.0
    (wanted, slope), (found, gradient) = taken("plain", parts, softcap), taken("liger", parts, softcap)
    torch.testing.assert_close(found, wanted, rtol=1e-3, atol=0)
    assert (gradient - slope).abs().max() <= slope.abs().max() * (1e-3 if dtype == torch.float32 else 2**-6)
