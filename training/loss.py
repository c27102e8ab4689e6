"""Cross entropy of the head's logits with soft, weighted targets, without the whole matrix of logits.

With a vocabulary of 262,144 the logits of 4,096 tokens are 4 GiB in float32, and autograd keeps several such.

plain     all logits at once; what the others are held to
chunked   a few tokens at a time, any device (chunked_loss.py)
liger     Liger's fused kernel for targets of one token, chunked for the rest; CUDA alone
"""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

from aipsy_judge.errors import InputError

from .chunked_loss import chunked
from .liger import fused, missing, require

Kind = Literal["plain", "chunked", "liger"]


def soft_cross_entropy(
    hidden: Tensor,
    weight: Tensor,
    tokens: Tensor,
    shares: Tensor,
    weights: Tensor,
    *,
    softcap: float | None = None,
    kind: Kind = "chunked",
) -> Tensor:
    """sum_n weights[n] * (logsumexp(z_n) - sum_k shares[n, k] z_n[tokens[n, k]]), a float32 scalar.

    z_n = hidden[n] @ weight.T in the head's dtype, then in float32 cap * tanh(z / cap) where there is a `softcap`
    (Gemma 4: 30). hidden (N, H); weight (V, H), frozen; tokens (N, K) and shares (N, K), padded with share 0; weights
    (N,). Differentiable in `hidden`, once. Raises InputError where the kind cannot be had on this device, ValueError
    for a head that wants a gradient or shapes that do not fit.
    """
    _check(hidden, weight, tokens, shares, weights)
    shares, weights = shares.float(), weights.float()
    with torch.autocast(hidden.device.type, enabled=False):
        if kind == "plain":
            return plain(hidden, weight, tokens, shares, weights, softcap)
        if kind == "liger":
            return fused(hidden, weight, tokens, shares, weights, softcap)
        return chunked(hidden, weight, tokens, shares, weights, softcap)


def _check(hidden: Tensor, weight: Tensor, tokens: Tensor, shares: Tensor, weights: Tensor) -> None:
    count = hidden.shape[0]
    if weight.requires_grad:
        raise ValueError("the head is frozen; one that is trained would get no gradient here")
    if hidden.ndim != 2 or hidden.shape[1:] != weight.shape[1:]:
        raise ValueError(f"hidden states {tuple(hidden.shape)} and head {tuple(weight.shape)} do not fit")
    if tokens.ndim != 2 or tokens.shape != shares.shape or tokens.shape[0] != count or weights.shape != (count,):
        shapes = ", ".join(str(tuple(t.shape)) for t in (tokens, shares, weights))
        raise ValueError(f"{count} states, but tokens, shares and weights are {shapes}")


def chosen_kind(asked: str, device: torch.device) -> Kind:
    """The kind that a recipe's `train.loss` means on this device: auto is liger on CUDA where it is installed, else
    chunked. Raises InputError for what cannot be had."""
    if asked == "auto":
        return "chunked" if missing(device) else "liger"
    if asked == "liger":
        require(device)
    for kind in get_args(Kind):
        if asked == kind:
            return kind  # type: ignore[no-any-return]
    raise InputError(f"no loss is called {asked!r}", hint=f"Losses: auto, {', '.join(get_args(Kind))}.")


def plain(
    hidden: Tensor, weight: Tensor, tokens: Tensor, shares: Tensor, weights: Tensor, softcap: float | None
) -> Tensor:
    """The whole matrix of logits, as such a loss is ordinarily written; autograd does the rest."""
    logits = (hidden.to(weight.dtype) @ weight.T).float()
    if softcap is not None:  # one step a line: what is not needed again is given back
        logits = logits / softcap
        logits = torch.tanh(logits)
        logits = logits * softcap
    said = torch.log_softmax(logits, 1)
    del logits
    return -(weights * (said.gather(1, tokens) * shares).sum(1)).sum()
