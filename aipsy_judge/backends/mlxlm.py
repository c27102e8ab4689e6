"""MLX, through mlx-lm's models: a folder of safetensors, quantised or not, on the GPU of a Mac (or a processor).

Every feed is a pass of its own. mlx-lm's server is not used: it ignores the form an answer is asked in
(ml-explore/mlx-lm#1007), and here the engine reads the model's distribution itself, free text included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..errors import BackendError, CapacityError
from ..model_folder import ModelFolder, open_model_folder
from .folder_tokens import FolderTokens
from .mlx_library import device, load_model, mlx_versions, need_mlx
from .protocol import Feed, Logits, Work
from .token_half import TokenHalf

if TYPE_CHECKING:
    from .mlx_cells import Cells, Layer

T = TypeVar("T")
MAX_SEQUENCES = 256  # as llama.cpp's, so that both follow the same plan
CELL_STEP = 2048  # the cache grows in such steps
PASS_TOKENS = 512
# Where logits are wanted, so many of the last tokens are a pass of their own: the head is computed for every token of
# a pass that logits are taken from, and a vocabulary of 262,144 at 512 tokens is half a GiB of them. A GPU reads all
# weights once a pass, however few its tokens; a processor is slow at computing, not at reading.
LAST_TOKENS = {"gpu": 16, "cpu": 1}

_MARK = b"mlx cells 1\n"  # before a sequence that was copied out


class MlxLm(TokenHalf):
    """See backends.protocol.TokenBackend. What MLX is asked happens on one thread of its own: its arrays belong to the
    thread that made them, and a server asks from several.

    Raises WeightsError for a folder that cannot be judged with, MissingExtraError where mlx-lm is not installed.
    """

    def __init__(self, path: Path, name: str | None = None) -> None:
        need_mlx()
        folder = open_model_folder(path)
        self._thread = ThreadPoolExecutor(1, "mlx")
        self._model, self._layers, size, self._device = self._on_thread(_load, folder)
        self._tokens = FolderTokens(folder, size)
        self._stored = folder.stored
        self.name = name or folder.path.resolve().name
        self.max_sequences = MAX_SEQUENCES
        self.context_tokens = folder.context_tokens
        self.work = Work()
        self.before_pass: Callable[[], None] = lambda: None
        self._cells = 0
        self._on_thread(self._open, 0)

    def _on_thread(self, work: Callable[..., T], *words: Any) -> T:
        return self._thread.submit(work, *words).result()

    # -- evaluation -------------------------------------------------------------------------------------------

    @property
    def cell_bytes(self) -> int:
        return sum(layer.cell_bytes for layer in self._layers)

    def reserve(self, cells: int) -> bool:
        if cells <= self._cells:
            return False
        rounded = -(-cells // CELL_STEP) * CELL_STEP
        try:
            self._on_thread(self._open, rounded)
        except (RuntimeError, MemoryError, ValueError) as error:
            self._on_thread(self._open, 0)
            raise CapacityError(
                f"no room for a cache of {rounded} tokens ({rounded * self.cell_bytes / 2**30:.1f} GiB): {error}",
                hint="Give less with --memory-gb, or score shorter conversations.",
            ) from error
        return True

    def _open(self, cells: int) -> None:
        import mlx.core as mx

        from .mlx_cells import CellCache, Places

        self._cells, self._places, self._caches = 0, Places(0), list[CellCache]()
        mx.clear_cache()  # what was freed goes back to the machine before as much is asked for again
        self._caches = [CellCache(layer, cells) for layer in self._layers]
        mx.eval(self._arrays)
        self._cells, self._places = cells, Places(cells)

    @property
    def _arrays(self) -> list[Any]:
        return [array for cache in self._caches for array in cache.arrays]

    def evaluate(self, feeds: Sequence[Feed]) -> list[Logits]:
        out: list[Logits] = []
        for feed in feeds:
            if feed.start != len(self._places.of(feed.sequence)):
                raise BackendError(
                    f"sequence {feed.sequence} has {len(self._places.of(feed.sequence))} tokens, not {feed.start}",
                    where=self.name,
                    hint="This is a fault of the plan.",
                )
            for tokens, wanted in _passes(feed.tokens, LAST_TOKENS[self._device] if feed.want_logits else 0):
                self.before_pass()
                self._places.extend(feed.sequence, len(tokens))
                out += self._on_thread(self._pass, self._places.of(feed.sequence), tokens, wanted)
        return out

    def _pass(self, cells: Cells, tokens: Sequence[int], wanted: bool) -> list[Logits]:
        import mlx.core as mx

        for cache in self._caches:
            cache.begin(cells, len(tokens))
        try:
            logits = self._model(mx.array([list(tokens)]), cache=self._caches)
            last = [logits[0, -1].astype(mx.float32)] if wanted else []
            mx.eval(last, self._arrays)  # logits that nobody wants are never computed
        except (RuntimeError, ValueError) as error:  # e.g. a type that the device does not compute in
            self._open(0)  # what it has begun to write would fail whatever reads it next: it is made anew
            raise BackendError(f"MLX could not evaluate the model: {error}", where=self.name) from error
        self.work.passes += 1
        self.work.tokens += len(tokens)
        return [np.array(row) for row in last]

    def fork(self, source: int, target: int, length: int) -> None:
        self._places.fork(source, target, length)

    def trim(self, sequence: int, length: int) -> None:
        self._places.trim(sequence, length)

    # -- a sequence out of the cache and back ------------------------------------------------------------------

    @property
    def cuts_change_nothing(self) -> bool:
        """Not claimed: the kernels of a GPU differ with the number of rows, and no Mac was at hand to measure them."""
        return False

    @property
    def micro_batch_tokens(self) -> int:
        return PASS_TOKENS

    def save_sequence(self, sequence: int) -> bytes:
        return self._on_thread(self._save, self._places.of(sequence))

    def _save(self, cells: Cells) -> bytes:
        return b"".join([_MARK, len(cells).to_bytes(4, "little"), *(cache.save(cells) for cache in self._caches)])

    def load_sequence(self, sequence: int, state: bytes) -> bool:
        head = len(_MARK) + 4
        count = int.from_bytes(state[len(_MARK) : head], "little")
        if state[: len(_MARK)] != _MARK or len(state) != head + count * self.cell_bytes:
            return False
        self.trim(sequence, 0)
        self._on_thread(self._load, self._places.extend(sequence, count), memoryview(state)[head:])
        return True

    def _load(self, cells: Cells, state: memoryview) -> None:
        for cache in self._caches:
            state = cache.load(cells, state)

    # -- the rest ---------------------------------------------------------------------------------------------

    def describe(self) -> dict[str, Any]:
        return {
            "backend": "mlx",
            "library": mlx_versions(),
            "device": self._device,
            "weights": self._stored,
            "cache": str(self._layers[0].dtype).rpartition(".")[2],
            "pass_tokens": PASS_TOKENS,
        }

    def close(self) -> None:
        if self._model is not None:
            self._on_thread(self._open, 0)
            self._model = None
            self._thread.shutdown()


def _load(folder: ModelFolder) -> tuple[Any, list[Layer], int, str]:
    """The model, its layers, how many logits it gives, and the device it runs on ("gpu" or "cpu")."""
    from .mlx_cells import look_at

    runs_on = device()
    model, caches = load_model(folder)
    layers, size = look_at(model, caches, str(folder.path))
    return model, layers, size, runs_on


def _passes(tokens: Sequence[int], last: int) -> Iterator[tuple[Sequence[int], bool]]:
    """Cuts of a feed, each with whether logits are taken after it; the last such cut has at most `last` tokens."""
    first = max(0, len(tokens) - last)
    for start in range(0, first, PASS_TOKENS):
        yield tokens[start : min(first, start + PASS_TOKENS)], False
    if last:
        yield tokens[first:], True
