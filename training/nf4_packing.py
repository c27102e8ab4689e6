"""One layer's experts as NF4, in a single run of bytes.

Each expert's matrix is quantised by itself: 4-bit NormalFloat codes in blocks of 64 (Dettmers et al. 2023, QLoRA,
section 3), the blocks' scales quantised again to 8 bits in blocks of 256, less their mean. That is 1/2 + 1/64 +
4/(64*256) bytes a parameter and 4 bytes an expert: 0.51587 at Gemma 4 26B-A4B's sizes.

One run of bytes and not a dozen tensors, so that a layer is staged by one copy, a cast of the model to another
floating-point type cannot touch the scales, and the size of the buffer is what is resident.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property

import bitsandbytes.functional as bnb
import torch
from torch import Tensor

from aipsy_judge.errors import WeightsError

BLOCK = 64  # values that share a scale; the next size, 128, does not divide the 704 columns of a 26B-A4B expert
SCALES = 256  # scales that share a scale: the only size bitsandbytes' kernels know
ALIGN = 256  # bytes; every part begins on such a boundary, which is what CUDA's allocator gives a tensor


@dataclass(frozen=True)
class Stack:
    """Shape of one stacked projection, [experts, rows, columns]; a token's vector has `columns` entries."""

    experts: int
    rows: int
    columns: int

    def __post_init__(self) -> None:
        if self.rows * self.columns % BLOCK:
            raise WeightsError(
                f"experts of {self.rows} x {self.columns} cannot be held in 4 bits: no multiple of {BLOCK} weights",
                hint="Use memory.base_bits: 16 for this model.",
            )

    @property
    def blocks(self) -> int:
        """Scales of one expert."""
        return self.rows * self.columns // BLOCK

    @property
    def parts(self) -> tuple[tuple[str, int, int, torch.dtype], ...]:
        """(name, experts, elements an expert, type) of each part, in the order of the bytes."""
        return (
            ("mean", self.experts, 1, torch.float32),
            ("scale_scales", self.experts, -(-self.blocks // SCALES), torch.float32),
            ("scales", self.experts, self.blocks, torch.uint8),
            ("codes", self.experts, self.rows * self.columns // 2, torch.uint8),
        )


@dataclass(frozen=True)
class Layout:
    """Where in the run of bytes each part of a layer's two projections lies."""

    gate_up: Stack
    down: Stack

    @cached_property
    def spans(self) -> dict[tuple[str, str], tuple[int, int]]:
        """(projection, part) -> (first byte, bytes)."""
        spans: dict[tuple[str, str], tuple[int, int]] = {}
        at = 0
        for projection in ("gate_up", "down"):
            stack: Stack = getattr(self, projection)
            for name, experts, elements, dtype in stack.parts:
                size = experts * elements * dtype.itemsize
                spans[projection, name] = (at, size)
                at += -(-size // ALIGN) * ALIGN
        return spans

    @property
    def bytes(self) -> int:
        """Bytes of the whole layer, the gaps of alignment included."""
        last, size = self.spans["down", "codes"]
        return last + -(-size // ALIGN) * ALIGN

    @property
    def parameters(self) -> int:
        """Weights that the bytes stand for."""
        return sum(s.experts * s.rows * s.columns for s in (self.gate_up, self.down))

    def view(self, packed: Tensor, projection: str, part: str) -> Tensor:
        """One part as [experts, elements], sharing the bytes of `packed`."""
        start, size = self.spans[projection, part]
        _, experts, _, dtype = next(p for p in getattr(self, projection).parts if p[0] == part)
        return packed[start : start + size].view(dtype).view(experts, -1)


def pack_expert(layout: Layout, packed: Tensor, projection: str, expert: int, weight: Tensor) -> None:
    """Quantise one expert's matrix [rows, columns] on its own device and write it into `packed` (any device)."""
    stack: Stack = getattr(layout, projection)
    if tuple(weight.shape) != (stack.rows, stack.columns):
        raise WeightsError(f"expert {expert}: {projection} is {tuple(weight.shape)}, not {(stack.rows, stack.columns)}")
    codes, state = bnb.quantize_4bit(
        weight.detach().contiguous(), blocksize=BLOCK, compress_statistics=True, quant_type="nf4"
    )
    values = {"codes": codes, "scales": state.absmax, "scale_scales": state.state2.absmax, "mean": state.offset}
    for part, value in values.items():
        layout.view(packed, projection, part)[expert].copy_(value.reshape(-1))


def unpack_expert(layout: Layout, packed: Tensor, projection: str, expert: int, dtype: torch.dtype) -> Tensor:
    """One expert's matrix [rows, columns] in `dtype` on the device of `packed`. A new tensor each time."""
    stack: Stack = getattr(layout, projection)
    parts = {part: layout.view(packed, projection, part)[expert] for part, *_ in stack.parts}
    four_bit, eight_bit = _codebooks(packed.device)
    inner = bnb.QuantState(absmax=parts["scale_scales"], blocksize=SCALES, code=eight_bit, dtype=torch.float32)
    state = bnb.QuantState(
        absmax=parts["scales"],
        # As rows of one block each: bitsandbytes 0.50.2's CPU kernel is wrong where a block runs over a row's end.
        shape=torch.Size((stack.blocks, BLOCK)),
        code=four_bit,
        blocksize=BLOCK,
        quant_type="nf4",
        dtype=dtype,
        offset=parts["mean"],
        state2=inner,
    )
    return bnb.dequantize_4bit(parts["codes"].view(-1, 1), state).view(stack.rows, stack.columns)


def unpack_all(layout: Layout, packed: Tensor, dtype: torch.dtype) -> Iterator[tuple[str, Tensor]]:
    """(projection, [experts, rows, columns]) of both projections: for tests and exports, not for training."""
    for projection in ("gate_up", "down"):
        count = getattr(layout, projection).experts
        yield projection, torch.stack([unpack_expert(layout, packed, projection, e, dtype) for e in range(count)])


@cache
def _codebooks(device: torch.device) -> tuple[Tensor, Tensor]:
    """The 16 values of NF4, and the 256 of the 8-bit scales, as bitsandbytes quantises with."""
    return bnb.get_4bit_type("nf4", device=device), bnb.create_dynamic_map().to(device)
