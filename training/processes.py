"""Several processes that train together: how many, which of them writes, and what one of them has found."""

from __future__ import annotations

import os
from typing import Any


def processes() -> int:
    """How many compute together. Several hold parts of the model, with which the engine cannot judge."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def first_process() -> bool:
    """Whether this is the one that writes; the only one where there are not several."""
    return int(os.environ.get("RANK", "0")) == 0


def anywhere(found: bool, device: Any) -> bool:
    """Whether any process has found it; each asks at the same place. One that stopped by itself would leave the others
    waiting for its gradients. `device`: a torch.device that they exchange tensors on."""
    import torch

    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return found
    told = torch.tensor(int(found), device=device)
    torch.distributed.all_reduce(told, torch.distributed.ReduceOp.MAX)
    return bool(told)
