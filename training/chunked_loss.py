"""Cross entropy of the head's logits a few tokens at a time, on any device; see loss.py for what it computes.

The head is frozen, so only the hidden states want a gradient, and that is as small as they are: it is taken while a
chunk of logits is there, in the forward pass, and the chunk is dropped.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

# Float32 logits held at a time: 128 tokens of Gemma 4's vocabulary. With 32 the head (1.4 GiB) is read from memory for
# too little work (1.8 x the time); with 512 there is a tenth to be had for four times the memory (docs/log.md).
CHUNK_BYTES = 128 * 2**20


def chunked(
    hidden: Tensor,
    weight: Tensor,
    tokens: Tensor,
    shares: Tensor,
    weights: Tensor,
    softcap: float | None,
    chunk_tokens: int | None = None,
) -> Tensor:
    """loss.soft_cross_entropy, `chunk_tokens` at a time (as many as CHUNK_BYTES hold where none is given)."""
    size = chunk_tokens or max(1, CHUNK_BYTES // (4 * weight.shape[0]))
    loss: Tensor = _Chunked.apply(hidden, weight, tokens, shares, weights, softcap, size)  # type: ignore[no-untyped-call]
    return loss


class Wanted(NamedTuple):
    """Targets of a chunk of n tokens: tokens (n, K), shares (n, K), weights (n,)."""

    tokens: Tensor
    shares: Tensor
    weights: Tensor


class Buffers(NamedTuple):
    """(n, V) each: logits in the head's dtype; capped (the same memory where that is float32) and mass in float32."""

    logits: Tensor
    capped: Tensor
    mass: Tensor


def _chunk(
    hidden: Tensor, weight: Tensor, wanted: Wanted, softcap: float | None, buffers: Buffers, slopes: bool
) -> tuple[Tensor, Tensor | None]:
    """Loss of a chunk, and with `slopes` its gradient in `hidden`. The buffers are overwritten."""
    logits, capped, mass = buffers
    torch.mm(hidden.to(weight.dtype), weight.T, out=logits)
    if capped.dtype != logits.dtype:
        capped.copy_(logits)
    if softcap is not None:
        capped.div_(softcap).tanh_().mul_(softcap)
    top = capped.amax(1, keepdim=True)
    torch.sub(capped, top, out=mass).exp_()
    sums = mass.sum(1, keepdim=True)
    said = (capped.gather(1, wanted.tokens) * wanted.shares).sum(1)
    loss = (wanted.weights * ((top + sums.log()).squeeze(1) - said)).sum()
    if not slopes:
        return loss, None
    weights = wanted.weights[:, None]
    mass.mul_(weights / sums).scatter_add_(1, wanted.tokens, -weights * wanted.shares)
    if softcap is not None:  # d cap*tanh(z/cap) / dz = 1 - (capped/cap)^2
        mass.mul_(capped.div_(softcap).square_().neg_().add_(1.0))
    return loss, (mass if mass.dtype == logits.dtype else logits.copy_(mass)) @ weight


class _Chunked(torch.autograd.Function):
    """Loss and, at once, its gradient in the hidden states."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        tokens: Tensor,
        shares: Tensor,
        weights: Tensor,
        softcap: float | None,
        size: int,
    ) -> Tensor:
        rows = min(size, hidden.shape[0])
        # Made once: memory that is asked for and given back at every chunk costs more than what is computed in it.
        logits = weight.new_empty(rows, weight.shape[0])
        capped = logits if logits.dtype == torch.float32 else torch.empty_like(logits, dtype=torch.float32)
        mass = torch.empty_like(capped)
        gradient = torch.empty_like(hidden) if ctx.needs_input_grad[0] else None
        total = torch.zeros((), device=hidden.device)
        for start in range(0, hidden.shape[0], size):
            part = slice(start, min(start + size, hidden.shape[0]))
            buffers = Buffers(*(b[: part.stop - start] for b in (logits, capped, mass)))
            wanted = Wanted(tokens[part], shares[part], weights[part])
            loss, slope = _chunk(hidden[part], weight, wanted, softcap, buffers, gradient is not None)
            total = total + loss
            if gradient is not None and slope is not None:
                gradient[part] = slope
        if gradient is not None:
            ctx.save_for_backward(gradient)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = ctx.saved_tensors
        return gradient * upstream.to(gradient.dtype), None, None, None, None, None, None
