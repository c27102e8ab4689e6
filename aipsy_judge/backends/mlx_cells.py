"""Keys and values of all sequences for an MLX model, in one run of cells a layer, as llama.cpp's unified cache.

A cell can belong to several sequences, so a fork copies nothing and the planner's count (trunk + every branch) is what
memory holds. mlx-lm's own rotating cache of sliding layers overwrites what left the window and can then no longer be
cut back; here every position stays and a sliding layer is shown only what its window reaches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import numpy as np
from numpy.typing import NDArray

from ..errors import CapacityError, WeightsError

Cells = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Layer:
    """What one token leaves in a layer. window: positions that a token sees, itself counted; None: all."""

    key_shape: tuple[int, int]  # heads, size
    value_shape: tuple[int, int]
    dtype: Any
    window: int | None

    @property
    def cell_bytes(self) -> int:
        (a, b), (c, d) = self.key_shape, self.value_shape
        return (a * b + c * d) * int(self.dtype.size)


class Places:
    """Which cells hold which sequence; they are numbers here, without content."""

    def __init__(self, cells: int) -> None:
        self._of: dict[int, Cells] = {}
        self._uses = np.zeros(cells, dtype=np.int64)

    def of(self, sequence: int) -> Cells:
        """The cells of positions 0, 1, ... of a sequence."""
        return self._of.get(sequence, _NONE)

    def extend(self, sequence: int, count: int) -> Cells:
        """`count` free cells, lowest first, for the positions that follow. CapacityError if there are not so many."""
        free = np.flatnonzero(self._uses == 0)[:count]
        if len(free) < count:
            raise CapacityError(f"the cache of {len(self._uses)} cells is full", hint="This is a fault of the plan.")
        self._uses[free] += 1
        self._of[sequence] = np.concatenate([self.of(sequence), free])
        return free

    def fork(self, source: int, target: int, length: int) -> None:
        shared = self.of(source)[:length]
        self._uses[shared] += 1
        self.trim(target, 0)
        self._of[target] = shared

    def trim(self, sequence: int, length: int) -> None:
        held = self.of(sequence)
        self._uses[held[length:]] -= 1
        self._of[sequence] = held[:length]


_NONE: Cells = np.zeros(0, dtype=np.int64)


class CellCache:
    """One layer's memory, and what mlx-lm's models take for a cache. `begin` says which sequence goes on."""

    def __init__(self, layer: Layer, cells: int) -> None:
        self._layer = layer
        self._keys, self._values = (
            mx.zeros((1, heads, cells, size), dtype=layer.dtype) for heads, size in (layer.key_shape, layer.value_shape)
        )
        self.offset = 0  # read by the models: position of the first new token
        self._new, self._seen = _NONE, _NONE

    @property
    def arrays(self) -> tuple[Any, Any]:
        return self._keys, self._values

    def begin(self, cells: Cells, new: int) -> None:
        """The next pass writes the last `new` of a sequence's `cells`."""
        self.offset = len(cells) - new
        self._new = cells[self.offset :]
        window = self._layer.window
        self._seen = cells if window is None else cells[max(0, self.offset - window + 1) :]

    def read(self, cells: Cells) -> tuple[Any, Any]:
        """Keys and values, (1, heads, cells, size) each: a view where the cells follow each other, else a copy."""
        return _part(self._keys, cells), _part(self._values, cells)

    def write(self, cells: Cells, keys: Any, values: Any) -> None:
        for start, run in _runs(cells):
            begin, end = int(run[0]), int(run[-1]) + 1
            self._keys[:, :, begin:end] = keys[:, :, start : start + len(run)]
            self._values[:, :, begin:end] = values[:, :, start : start + len(run)]

    def save(self, cells: Cells) -> bytes:
        """Keys, then values, of these cells as they lie in memory."""
        if not len(cells):
            return b""
        return b"".join(np.array(mx.view(part, mx.uint8)).tobytes() for part in self.read(cells))

    def load(self, cells: Cells, saved: memoryview) -> memoryview:
        """Take back what `save` gave; what follows it in `saved` is returned."""
        parts = []
        for heads, size in (self._layer.key_shape, self._layer.value_shape):
            shape = (1, heads, len(cells), size * int(self._layer.dtype.size))
            count = heads * shape[2] * shape[3]
            parts.append(mx.view(mx.array(np.frombuffer(saved[:count], np.uint8).reshape(shape)), self._layer.dtype))
            saved = saved[count:]
        self.write(cells, *parts)
        mx.eval(self.arrays)
        return saved

    # -- what mlx-lm's models call ----------------------------------------------------------------------------

    def update_and_fetch(self, keys: Any, values: Any) -> tuple[Any, Any]:
        self.write(self._new, keys, values)
        return self.read(self._seen)

    def make_mask(self, tokens: int, return_array: bool = False, window_size: int | None = None) -> Any:
        """Which of the cells shown each new token sees: an array (tokens, cells), or mlx's words for the usual."""
        window = window_size or self._layer.window
        length = self.offset + tokens
        if (window is None or length <= window) and not return_array:
            return None if tokens == 1 else "causal"
        queries = mx.arange(self.offset, length)[:, None]
        keys = mx.arange(length - len(self._seen), length)[None]
        mask = keys <= queries
        return mask if window is None else mask & (keys > queries - window)


def _runs(cells: Cells) -> Iterator[tuple[int, Cells]]:
    """Runs of cells that follow each other, each with where it begins."""
    breaks = np.flatnonzero(np.diff(cells) != 1) + 1
    starts = [0, *breaks.tolist()]
    return zip(starts, np.split(cells, breaks), strict=True)


def _part(array: Any, cells: Cells) -> Any:
    begin = int(cells[0])
    if np.array_equal(cells, np.arange(begin, begin + len(cells))):
        return array[:, :, begin : begin + len(cells)]
    return mx.take(array, mx.array(cells), axis=2)


class _Look:
    """Stands for a layer's cache in a pass that is never computed, to learn the shapes."""

    def __init__(self) -> None:
        self.offset = 0
        self.given: list[tuple[Any, Any]] = []

    def update_and_fetch(self, keys: Any, values: Any) -> tuple[Any, Any]:
        self.given.append((keys, values))
        return keys, values

    def make_mask(self, tokens: int, return_array: bool = False, window_size: int | None = None) -> None:
        return None


def look_at(model: Any, caches: Sequence[Any], where: str) -> tuple[list[Layer], int]:
    """The layers of a model, and how many logits it gives. `caches` are those that mlx-lm would use with it.

    Nothing is computed: MLX knows shapes before values. WeightsError where a layer keeps something else than keys and
    values a position, once a pass, which could be neither shared nor cut back.
    """
    windows = [_window(cache, where) for cache in caches]
    looks = [_Look() for _ in caches]
    try:
        logits = model(mx.array([[0]]), cache=looks)
    except Exception as error:  # whatever a model asks of a cache that this one has not, or its weights lack
        raise _refusal(f"this model cannot be judged with here: {error!r}"[:300], where) from error
    layers = [_layer(look, window, where) for look, window in zip(looks, windows, strict=True)]
    return layers, int(logits.shape[-1])


def _layer(look: _Look, window: int | None, where: str) -> Layer:
    if len(look.given) != 1:
        # a second time would be written over the first
        raise _refusal(f"a layer of this model keeps keys and values {len(look.given)} times a pass", where)
    keys, values = look.given[0]
    return Layer(_sizes(keys), _sizes(values), mx.result_type(keys, values), window)


def _window(cache: Any, where: str) -> int | None:
    kind = type(cache).__name__
    if kind == "KVCache":
        return None
    if kind == "RotatingKVCache" and cache.keep == 0:
        return int(cache.max_size)
    raise _refusal(f"a model whose layers keep a {kind} cannot be judged with here", where)


def _refusal(message: str, where: str) -> WeightsError:
    return WeightsError(
        message,
        where=where,
        hint="Models of attention layers, full or sliding, can. A GGUF of it may run with llama.cpp.",
    )


def _sizes(array: Any) -> tuple[int, int]:
    return int(array.shape[1]), int(array.shape[3])
