"""What the loss and the cache need of a causal language model, whatever wraps it: layers, head, soft cap, window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from .collate import Batch, within_window

SLIDING = "sliding_attention"


@dataclass(frozen=True)
class Backbone:
    """inner    gives `last_hidden_state` of tokens; the layers an adapter changes are in it
    head     (V, H), frozen
    softcap  of the logits: cap * tanh(z / cap); None: none
    window   positions that a sliding layer sees, itself included; None: no such layers
    """

    inner: nn.Module
    head: Tensor
    softcap: float | None
    window: int | None


def backbone(model: nn.Module) -> Backbone:
    """Of a causal model, adapted or not."""
    outer: Any = model
    core = outer.get_base_model() if hasattr(outer, "get_base_model") else outer
    config = core.config.get_text_config()
    sliding = SLIDING in (getattr(config, "layer_types", None) or ())
    return Backbone(
        inner=core.base_model,
        head=core.get_output_embeddings().weight,
        softcap=getattr(config, "final_logit_softcapping", None),
        window=config.sliding_window if sliding else None,
    )


def masks_for(window: int | None, visible: Tensor, distance: Tensor) -> Any:
    """The attention_mask argument: one mask, or one a kind of layer where some layers slide.

    visible (B, Q, K) bool; distance (B, Q, K): how many positions key k lies before query q.
    """
    full = visible[:, None]
    return full if window is None else {"full_attention": full, SLIDING: full & (distance < window)[:, None]}


def batch_masks(window: int | None, batch: Batch) -> Any:
    """The same for rows of training: see collate."""
    full = batch.visible[:, None]
    if window is None:
        return full
    return {"full_attention": full, SLIDING: within_window(batch.visible, batch.position_ids, window)[:, None]}


def hidden_states(model: nn.Module, batch: Batch, states: Tensor | None = None) -> Tensor:
    """(B, T, H) of a batch of rows, after the last norm. `states` (B, T, H): instead of the tokens' embeddings.

    `model` is called as it is wrapped (DDP and FSDP gather their weights there), asked for the logits of a single
    place a row, and what its layers gave is caught on the way to the head.
    """
    core: Any = model
    while hasattr(core, "module"):
        core = core.module
    found = backbone(core)
    caught: list[Tensor] = []
    handle = found.inner.register_forward_hook(lambda module, args, output: caught.append(output.last_hidden_state))
    try:
        shown = {"input_ids": batch.input_ids} if states is None else {"inputs_embeds": states}
        model(
            **shown,
            position_ids=batch.position_ids,
            attention_mask=batch_masks(found.window, batch),
            use_cache=False,
            logits_to_keep=1,
        )
    finally:
        handle.remove()
    return caught[0]


def logits_of(found: Backbone, hidden: Tensor) -> Tensor:
    """(N, V) float32 of hidden states (N, H)."""
    logits = (hidden.to(found.head.dtype) @ found.head.T).float()
    return logits if found.softcap is None else found.softcap * torch.tanh(logits / found.softcap)
