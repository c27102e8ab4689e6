"""A model of transformers as a token backend, so that the instrument's own engine judges with it while it trains.

All feeds of a call are evaluated in one forward pass: every token sees the cells of its sequence up to its position
(in sliding layers, those in its window), by a mask of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aipsy_judge.backends.batch_rows import rows as rows_of
from aipsy_judge.backends.protocol import Feed, Logits, Work
from aipsy_judge.backends.token_half import TokenHalf

from .backbone import backbone, logits_of, masks_for
from .cell_cache import CellCache
from .hf_tokens import HFTokens

MAX_SEQUENCES = 256
BATCH_TOKENS = 2048  # of one pass: its mask is tokens x cells


class TransformersBackend(TokenHalf):
    """See backends.protocol.TokenBackend. `model` is the caller's: it may go on training between calls, and is left
    in the mode it was in.

    autocast   compute in bfloat16 where weights are kept at 32 bits beside 16-bit ones (adapters), as in training
    """

    def __init__(self, model: Any, tokens: HFTokens, *, autocast: bool = False, name: str | None = None) -> None:
        self._model, self._tokens, self._autocast = model, tokens, autocast
        self._found = backbone(model)
        self.name = name or tokens.name
        self.max_sequences = MAX_SEQUENCES
        self.work = Work()
        self._cache = CellCache(0, MAX_SEQUENCES)
        config = self._config
        self.context_tokens = int(config.max_position_embeddings)

    @property
    def _config(self) -> Any:
        return self._model.config.get_text_config()

    # -- tokens -----------------------------------------------------------------------------------------------

    @cached_property
    def vocabulary(self) -> Sequence[bytes]:
        """As long as the head: ids beyond the tokenizer's own stand for nothing."""
        pieces = self._tokens.vocabulary
        return [*pieces, *[b""] * (self._found.head.shape[0] - len(pieces))]

    # -- evaluation -------------------------------------------------------------------------------------------

    @property
    def cell_bytes(self) -> int:
        """Keys and values of one token over all layers, in the type they are computed in."""
        config = self._config
        each = getattr(config, "per_layer_config", None)
        total = 0
        for layer in range(config.num_hidden_layers):
            own = each[layer] if each is not None else config
            heads = getattr(own, "num_key_value_heads", None) or config.num_attention_heads
            total += 2 * heads * (getattr(own, "head_dim", None) or config.hidden_size // config.num_attention_heads)
        return total * (2 if self._autocast else self._found.head.element_size())

    def reserve(self, cells: int) -> bool:
        if cells <= self._cache.cells:
            return False
        self._cache = CellCache(cells, MAX_SEQUENCES)
        return True

    def evaluate(self, feeds: Sequence[Feed]) -> list[Logits]:
        rows = _Rows(*rows_of(feeds))
        out: list[Logits] = []
        was_training = self._model.training
        self._model.eval()
        try:
            with torch.no_grad(), self._precision():
                for start in range(0, len(rows.tokens), BATCH_TOKENS):
                    out += self._pass(rows.part(start, start + BATCH_TOKENS))
        finally:
            self._model.train(was_training)
        return out

    def _pass(self, rows: _Rows) -> list[Logits]:
        device = self._found.head.device
        cells = self._cache.place(len(rows.tokens))
        for sequence in np.unique(rows.sequences):
            own = rows.sequences == sequence
            self._cache.hold(int(sequence), cells[own], rows.positions[own])
        seen = self._cache.begin(cells, device)
        distance = rows.positions[:, None] - self._cache.position[None, :seen]
        visible = self._cache.member[rows.sequences, :seen] & (distance >= 0)
        hidden = self._found.inner(
            input_ids=_tensor(rows.tokens, device)[None],
            position_ids=_tensor(rows.positions, device)[None],
            attention_mask=masks_for(
                self._found.window, _tensor(visible, device)[None], _tensor(distance, device)[None]
            ),
            cache=self._cache,
            use_cache=True,
        ).last_hidden_state[0]
        self.work.passes += 1
        self.work.tokens += len(rows.tokens)
        wanted = np.flatnonzero(rows.wanted)
        if not len(wanted):
            return []
        logits = logits_of(self._found, hidden[_tensor(wanted, device)])
        return list(logits.cpu().numpy())

    def _precision(self) -> AbstractContextManager[Any]:
        if not self._autocast:
            return nullcontext()
        return torch.autocast(self._found.head.device.type, torch.bfloat16)

    def fork(self, source: int, target: int, length: int) -> None:
        self._cache.fork(source, target, length)

    def trim(self, sequence: int, length: int) -> None:
        self._cache.trim(sequence, length)

    def describe(self) -> dict[str, Any]:
        import transformers

        return {
            "backend": "transformers",
            "library": f"transformers {transformers.__version__}, torch {torch.__version__}",
            "device": str(self._found.head.device),
            "dtype": str(self._found.head.dtype).removeprefix("torch."),
            "autocast": self._autocast,
        }

    def close(self) -> None:
        self._cache = CellCache(0, MAX_SEQUENCES)


class _Rows:
    """Tokens of all feeds as batch_rows.rows gives them, or some of them."""

    def __init__(self, tokens: Any, positions: Any, sequences: Any, wanted: Any) -> None:
        self.tokens, self.positions, self.sequences, self.wanted = tokens, positions, sequences, wanted

    def part(self, start: int, stop: int) -> _Rows:
        return _Rows(*(a[start:stop] for a in (self.tokens, self.positions, self.sequences, self.wanted)))


def _tensor(values: NDArray[Any], device: torch.device) -> Tensor:
    return torch.from_numpy(values).to(device)
