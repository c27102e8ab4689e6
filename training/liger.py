"""Liger's fused linear cross entropy, called as an operation on hidden states; CUDA alone.

Its patched model classes are never used: under transformers 5.24 the one for Gemma 4 fails, and patching one model
changes every other in the process. Nor is the package imported where it is not asked for: it needs triton,
which macOS does not have, and its kernels do not run on a CPU.
"""

from __future__ import annotations

import importlib.util
from collections import Counter

import torch
from torch import Tensor

from aipsy_judge.errors import InputError

from .chunked_loss import chunked

FEWEST_ALIKE = 8  # targets of one weight that are worth a call
_INSTEAD = "train.loss: chunked computes the same on any device (auto picks it by itself)."


def missing(device: torch.device) -> str | None:
    """Why the kernel cannot be had on `device`; None where it can."""
    if device.type != "cuda":
        return f"Liger's kernels run on CUDA alone, and this is {device.type}"
    if importlib.util.find_spec("liger_kernel") is None:
        return "the package liger-kernel is not installed"
    return None


def require(device: torch.device) -> None:
    """Raises InputError where the kernel cannot be had."""
    reason = missing(device)
    if reason is not None:
        raise InputError(f"loss liger: {reason}", hint=_INSTEAD)


def fused(
    hidden: Tensor, weight: Tensor, tokens: Tensor, shares: Tensor, weights: Tensor, softcap: float | None
) -> Tensor:
    """The loss of loss.soft_cross_entropy: targets of one token by the kernel, the others chunked.

    The kernel sums over unweighted targets, so it is called once for every weight that is shared by many: that of the
    skeleton, and that of each row's rationale. Each call reads the whole head; the few with a weight of their own,
    such as the inner branchings of a slot, are cheaper among the chunks.
    """
    require(hidden.device)
    from liger_kernel.transformers.fused_linear_cross_entropy import LigerFusedLinearCrossEntropyLoss

    operation = LigerFusedLinearCrossEntropyLoss(reduction="sum", softcap=softcap)
    hard = (shares == 1.0).any(1)
    wanted = tokens.gather(1, shares.argmax(1, keepdim=True)).squeeze(1)
    total, rest = hidden.new_zeros((), dtype=torch.float32), torch.ones_like(hard)
    for value, count in sorted(Counter(weights[hard].tolist()).items()):
        if count < FEWEST_ALIKE:
            continue
        alike = hard & (weights == value)
        rest &= ~alike
        # the kernel multiplies in the dtype it is given, like the head's own logits
        total = total + value * operation(weight, hidden[alike].to(weight.dtype), wanted[alike]).float()
    if bool(rest.any()):
        total = total + chunked(hidden[rest], weight, tokens[rest], shares[rest], weights[rest], softcap)
    return total
