"""Trains a small Gemma 4 for a few steps, whole or sharded over processes, as a program:

    python tests/training/sharded_training.py STORE RANK PROCESSES OUT

Process r of n computes every n-th row; one process computes them all. OUT gets the loss of each step, summed over the
processes, the adapter at the end, and of each parameter whether it was sharded and how much of it lay here.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

STEPS = 4
LENGTHS = (24, 31, 17, 40)


def main(store: str, rank: int, processes: int, out: Path) -> None:
    import torch
    from gemma4_small import small_model
    from torch.distributed.tensor import DTensor

    from training.backbone import backbone, hidden_states
    from training.collate import collate
    from training.lora import adapt
    from training.loss import soft_cross_entropy
    from training.recipe import Lora

    torch.set_num_threads(1)
    model: Any = adapt(small_model(), Lora(rank=4), 0)
    model.get_base_model().activation_checkpointing_enable({"use_reentrant": False})
    if processes > 1:
        torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=processes)
        _shard(model)
    trained = [p for p in model.parameters() if p.requires_grad]
    # Plain descent: Adam divides rounding by rounding where a gradient is nearly nothing.
    optimiser = torch.optim.SGD(trained, lr=3e-5)
    rows = _rows()
    weight = sum(len(row.targets) for row in rows)
    losses = []
    for _ in range(STEPS):
        batch = collate(rows[rank::processes], 0)
        head = backbone(model).head
        total = soft_cross_entropy(
            batch.predicting(hidden_states(model, batch)),
            (head.full_tensor() if isinstance(head, DTensor) else head).detach(),
            batch.tokens,
            batch.shares,
            batch.weights,
            softcap=30.0,
        )
        # As the trainer does it: gradients are averaged over processes, weights were summed over them.
        (total / weight * processes).backward()
        optimiser.step()
        optimiser.zero_grad()
        loss = (total / weight).detach()
        if processes > 1:
            torch.distributed.all_reduce(loss)
        losses.append(loss.item())
    whole = {n: _whole(p) for n, p in model.named_parameters() if p.requires_grad}
    parameters = {
        n: (isinstance(p, DTensor), (p.to_local() if isinstance(p, DTensor) else p).numel(), p.numel())
        for n, p in model.named_parameters()
    }
    if rank == 0:
        torch.save({"losses": losses, "adapter": whole, "parameters": parameters}, out)
    if processes > 1:
        torch.distributed.destroy_process_group()


def _shard(model: Any) -> None:
    """By decoder layer, as recipes/fsdp2.yaml has it, and what is left by itself."""
    import torch
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (torch.distributed.get_world_size(),))
    for module in list(model.modules()):
        if type(module).__name__ == "Gemma4TextDecoderLayer":
            fully_shard(module, mesh=mesh)
    fully_shard(model, mesh=mesh)


def _whole(parameter: Any) -> Any:
    from torch.distributed.tensor import DTensor

    found = parameter.detach()
    return found.full_tensor() if isinstance(found, DTensor) else found.clone()


def _rows() -> list[Any]:
    from training.rows import RowTree, Target

    rows = []
    for number, length in enumerate(LENGTHS):
        tree = RowTree()
        last = tree.grow(-1, [3 + (i * 7 + number) % 500 for i in range(length)])
        rows.append(tree.row(f"item-{number}", (Target(last, (5 + number, 99), (0.75, 0.25), 1.0, "slot:empathy"),)))
    return rows


if __name__ == "__main__":
    sys.path[:0] = ["tests/models", "."]
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
