"""Gemma 4's routed experts, frozen in 4 bits, through which adapters below them can still be trained.

Stock 4-bit loading replaces `nn.Linear` only and leaves the stacked experts, nine tenths of the model, in 16 bits.
Here each expert is made whole (8 and 4 MB at 26B-A4B's sizes) when tokens reach it, used, and dropped; the backward
pass makes it whole again and computes the expert's inside a second time, so that nothing of the size of a weight is
ever kept for it. Gradients flow to the tokens and to the routing weights; the experts themselves take none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Self

import torch
from torch import Tensor, nn

from aipsy_judge.errors import WeightsError

from .expert_staging import Staging
from .nf4_packing import Layout, Stack, pack_expert, unpack_all, unpack_expert

Activation = Callable[[Tensor], Tensor]


class NF4Experts(nn.Module):
    """Stands in for `Gemma4TextExperts` (transformers 5.24): same call, same result as the dequantised weights give.

    `packed` is the layer's whole weight as bytes (see nf4_packing). With `stay_on_host` the bytes lie in the machine's
    memory, `.to(device)` leaves them there, and they are staged to the tokens' device when needed.
    """

    packed: Tensor

    def __init__(self, layout: Layout, activation: nn.Module, packed: Tensor | None = None) -> None:
        super().__init__()
        self.layout = layout
        self.act_fn = activation
        self.num_experts = layout.gate_up.experts
        self.hidden_dim = layout.gate_up.columns
        self.intermediate_dim = layout.down.columns
        self._staging: Staging | None = None
        self._number = 0
        bytes_ = torch.zeros(layout.bytes, dtype=torch.uint8) if packed is None else packed
        self.register_buffer("packed", bytes_)

    @classmethod
    def of(cls, experts: nn.Module) -> Self:
        """The 4-bit form of a module that has `gate_up_proj` [E, 2I, H], `down_proj` [E, H, I] and `act_fn`."""
        stacks: dict[str, Tensor] = {"gate_up": experts.gate_up_proj, "down": experts.down_proj}  # type: ignore[dict-item]
        layout = Layout(*(Stack(*stack.shape) for stack in stacks.values()))
        packed = torch.zeros(layout.bytes, dtype=torch.uint8, device=stacks["down"].device)
        for projection, stack in stacks.items():
            for expert, weight in enumerate(stack):
                pack_expert(layout, packed, projection, expert, weight)
        return cls(layout, experts.act_fn, packed)  # type: ignore[arg-type]

    @property
    def on_host(self) -> bool:
        """Whether the bytes lie in the machine's memory and are staged."""
        return self._staging is not None

    @property
    def staging(self) -> Staging | None:
        """What serves the bytes that lie in the machine's memory."""
        return self._staging

    @property
    def staged_bytes(self) -> int:
        """Bytes that staging has taken on the device, for all layers that share it."""
        return self._staging.taken if self._staging is not None else 0

    def stay_on_host(self, staging: Staging, number: int) -> None:
        """Lie in the machine's memory, pinned where there is CUDA, as layer `number` of `staging`."""
        if not self.on_host:
            moved = self.packed.cpu()
            self.packed = moved.pin_memory() if torch.cuda.is_available() else moved
        self._staging, self._number = staging, number

    def bytes_on(self, device: torch.device) -> Tensor:
        """The packed bytes where `device` can compute with them."""
        if self._staging is not None:
            return self._staging.fetch(self._number)
        if self.packed.device != device:
            raise WeightsError(f"experts lie on {self.packed.device}, tokens on {device}")
        return self.packed

    def forward(self, hidden_states: Tensor, top_k_index: Tensor, top_k_weights: Tensor) -> Tensor:
        """[T, H] tokens, [T, K] experts of each and [T, K] their weights -> [T, H], in the tokens' type."""
        kind = hidden_states.device.type
        compute = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else hidden_states.dtype
        with torch.autocast(kind, enabled=False):
            out = _Mixture.apply(hidden_states.to(compute), top_k_weights, top_k_index, self)  # type: ignore[no-untyped-call]
        return out.to(hidden_states.dtype)  # type: ignore[no-any-return]

    def dequantised(self, dtype: torch.dtype) -> dict[str, Tensor]:
        """{"gate_up": [E, 2I, H], "down": [E, H, I]}: the weights that are in effect. For tests and inspection."""
        return dict(unpack_all(self.layout, self.packed, dtype))

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """`.to(device)` and the like. Bytes that wait in the machine's memory stay there."""
        if self.on_host:
            return self  # nothing else in here has bytes
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        return self

    def extra_repr(self) -> str:
        where = "host" if self.on_host else str(self.packed.device)
        return (
            f"{self.num_experts} experts, {self.layout.parameters:,} weights in {self.layout.bytes:,} bytes ({where})"
        )


class _Mixture(torch.autograd.Function):
    """y[t] = sum over its experts e of weight[t, e] * down_e(act(gate_e x[t]) * up_e x[t]).

    Sums are kept in float32. Tokens, weights and routing are saved, nothing else.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weights: Tensor, index: Tensor, experts: NF4Experts) -> Tensor:
        packed = experts.bytes_on(x.device)
        out = torch.zeros(x.shape, dtype=torch.float32, device=x.device)
        order, counts = _by_expert(index, experts.num_experts)
        for expert, chosen in _runs(order, counts):
            token = chosen // index.shape[1]
            inner, _, _ = _inside(experts, packed, expert, x[token])
            y = inner @ unpack_expert(experts.layout, packed, "down", expert, x.dtype).t()
            out.index_add_(0, token, y.float() * weights.reshape(-1)[chosen, None].float())
        ctx.save_for_backward(x, weights, order)
        ctx.counts, ctx.experts = counts, experts
        return out.to(x.dtype)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None, None]:
        (grad,) = grads
        x, weights, order = ctx.saved_tensors
        experts: NF4Experts = ctx.experts
        packed = experts.bytes_on(x.device)
        dx = torch.zeros(x.shape, dtype=torch.float32, device=x.device)
        dw = torch.zeros(weights.numel(), dtype=torch.float32, device=x.device)
        for expert, chosen in _runs(order, ctx.counts):
            token = chosen // weights.shape[1]
            inner, gate_up, weight = _inside(experts, packed, expert, x[token])
            down = unpack_expert(experts.layout, packed, "down", expert, x.dtype)
            # Without the routing weight: with the inner it gives that weight's own gradient too, <Wh, g> = <h, W'g>.
            unweighted = (grad[token] @ down).float()
            dw[chosen] = (unweighted * inner.float()).sum(-1)
            d_inner = (unweighted * weights.reshape(-1)[chosen, None].float()).to(x.dtype)
            d_gate_up = _through_gate(experts.act_fn, gate_up, d_inner)
            dx.index_add_(0, token, (d_gate_up @ weight).float())
        return dx.to(x.dtype), dw.view_as(weights).to(weights.dtype), None, None


def _by_expert(index: Tensor, experts: int) -> tuple[Tensor, list[int]]:
    """Places of the flattened [T, K] choice sorted by expert, and how many each expert has.

    An index of `experts` stands for none (transformers' expert-parallel padding): such places come last, uncounted.
    """
    flat = index.reshape(-1)
    counts = torch.bincount(flat, minlength=experts + 1).tolist()
    return torch.argsort(flat, stable=True), counts[:experts]


def _runs(order: Tensor, counts: list[int]) -> Iterator[tuple[int, Tensor]]:
    start = 0
    for expert, count in enumerate(counts):
        if count:
            yield expert, order[start : start + count]
        start += count


def _inside(experts: NF4Experts, packed: Tensor, expert: int, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(act(gate x) * up x, [gate x, up x], the dequantised gate-and-up matrix) for the tokens of one expert."""
    weight = unpack_expert(experts.layout, packed, "gate_up", expert, x.dtype)
    gate_up = x @ weight.t()
    gate, up = gate_up.chunk(2, dim=-1)
    return experts.act_fn(gate) * up, gate_up, weight


def _through_gate(activation: Activation, gate_up: Tensor, d_inner: Tensor) -> Tensor:
    """The gradient of act(gate) * up with regard to [gate, up], whatever the activation is."""
    with torch.enable_grad():
        leaf = gate_up.detach().requires_grad_(True)
        gate, up = leaf.chunk(2, dim=-1)
        inner = activation(gate) * up
    return torch.autograd.grad(inner, leaf, d_inner)[0]
