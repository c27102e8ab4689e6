"""Bytes of activations in training, counted operation by operation from a model's sizes. No torch.

What autograd keeps of each operation is read off the modules of transformers 5.24 (Gemma4TextDecoderLayer), peft 0.21
and bitsandbytes 0.50, with the base frozen: a frozen linear layer keeps nothing of its input, an adapter keeps its
input in the adapter's type, a norm keeps its input in float32. tests/training/test_training_memory_measured.py holds
the sums against what PyTorch's allocator records.
"""

from __future__ import annotations

from dataclasses import dataclass

from .model_sizes import Layer, Sizes

SUMS = 4  # bytes of the types that norms, adapters and gradients of adapters are in (float32)
# Bytes of chunked_loss.CHUNK_BYTES, which cannot be asked without torch; a test holds them equal.
LOSS_CHUNK = 128 * 2**20


@dataclass(frozen=True)
class Work:
    """One forward and backward pass: `tokens` a row, `rows` a batch, `width` bytes an activation, the adapter's rank.

    `four_bit`: experts as nf4_experts holds them, else as transformers' grouped matrix products compute them.
    """

    tokens: int
    rows: int
    width: int
    rank: int
    four_bit: bool
    expert_adapters: bool = False

    @property
    def total(self) -> int:
        """Tokens of all rows."""
        return self.tokens * self.rows


def kept_by_layer(sizes: Sizes, layer: Layer, work: Work) -> dict[str, int]:
    """Bytes by reason that one decoder layer keeps for its backward pass."""
    per_token = _attention(sizes, layer, work) | _feed_forward(sizes, work) | {"norms": _norms(sizes, layer, work)}
    return {reason: amount * work.total for reason, amount in per_token.items()}


def _attention(sizes: Sizes, layer: Layer, work: Work) -> dict[str, int]:
    width = work.width
    # Queries, keys and values as the kernel takes them (keys repeated for every head), its result, and the mask as
    # numbers, one row of it a token.
    repeated = layer.query if layer.key != layer.query else layer.key
    kernel = width * (2 * layer.query + 2 * repeated) + SUMS * layer.heads + width * work.tokens
    return {
        "attention kernel": kernel,
        "attention adapters": sum(_adapter(i, work) for i, _ in sizes.attention(layer).values()),
    }


def _feed_forward(sizes: Sizes, work: Work) -> dict[str, int]:
    found = {
        "MLP": 3 * work.width * sizes.inner,
        "MLP adapters": sum(_adapter(i, work) for i, _ in sizes.mlp.values()),
    }
    if sizes.experts:
        # Of the router its probabilities, and routing weights and order.
        routing = (SUMS + 8) * sizes.chosen + SUMS * sizes.experts
        found["experts"] = routing + work.width * (sizes.hidden if work.four_bit else _grouped(sizes))
    return found


def _grouped(sizes: Sizes) -> int:
    """Numbers a token that grouped products keep: gate, up, both multiplied (twice) and the result, for each choice."""
    return sizes.chosen * (4 * sizes.expert_inner + sizes.hidden)


def _norms(sizes: Sizes, layer: Layer, work: Work) -> int:
    """Each norm over the hidden size, and Gemma's over queries, keys and values, keeps a float32 copy of its input.

    In float32 training it keeps the input itself, which for some is kept anyway; counted all the same.
    """
    gemma = sizes.kind == "gemma4"
    over_hidden = (8 if sizes.experts else 4) if gemma else 2
    heads = layer.query + 2 * layer.key if gemma else 0
    return SUMS * (over_hidden * sizes.hidden + heads)


def _adapter(inputs: int, work: Work) -> int:
    """An adapter keeps a copy of its input, in the type it is computed in (autocast's, where activations are narrower
    than the adapter), and what is between its two matrices; in one type throughout the input is not copied."""
    return (work.width * inputs if work.width < SUMS else 0) + work.width * work.rank if work.rank else 0


def passing(sizes: Sizes, work: Work) -> int:
    """Bytes alive for a moment within a layer's backward pass, beside what it keeps.

    A norm's backward pass takes five float32 arrays of the hidden size and the gradient that comes in. Grouped
    products take three float32 arrays of every chosen expert's result while these are weighed.
    """
    norm = work.total * (work.width + 5 * SUMS) * sizes.hidden
    if work.four_bit or not sizes.experts:
        return norm
    weighed = work.total * 3 * sizes.chosen * SUMS * sizes.hidden
    # peft makes a layer's stacked experts anew with the adapter added, and autograd a gradient of the same size.
    whole = 2 * work.width * sizes.experts * 3 * sizes.hidden * sizes.expert_inner if work.expert_adapters else 0
    return max(norm, weighed) + whole


def carried(sizes: Sizes, work: Work) -> int:
    """Bytes alive from the first layer to the last: masks by kind of layer, rotations, and the states at the end."""
    kinds = {layer.sliding: layer.head for layer in sizes.layers}
    masks = len(kinds) * work.rows * work.tokens**2
    rotations = work.width * 2 * sum(kinds.values()) * work.total
    return masks + rotations + work.total * sizes.hidden * (SUMS + 2 * work.width)


def loss_bytes(sizes: Sizes, work: Work, kind: str) -> int:
    """Bytes of the loss at its peak, were every token predicted from: a chunk's logits in the activations' type, in
    float32 and as probabilities, and the states' gradient. Liger's kernel is counted as chunked, which it is under."""
    tokens = work.total if kind == "plain" else min(work.total, max(1, LOSS_CHUNK // (SUMS * sizes.vocabulary)))
    each = work.width + (6 if kind == "plain" else 2) * SUMS
    return tokens * sizes.vocabulary * each + 2 * work.width * work.total * sizes.hidden
