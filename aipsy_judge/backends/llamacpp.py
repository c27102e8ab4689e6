"""llama.cpp, driven through the low-level interface of llama-cpp-python (public `llama_cpp.llama_*` names only).

All sequences share one unified cache: a cell can belong to several sequences, so a fork costs no evaluation. The
cache keeps the whole window of sliding layers (`swa_full`): with it off, a rewind silently reads evicted cells and
cells shared between sequences are not recycled.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import llama_cpp
import numpy as np

from ..errors import BackendError, CapacityError, WeightsError
from ..gguf_adapter import check_adapter
from ..gguf_header import cell_bytes
from ..gguf_model import check_model
from .batch_rows import chunks, rows
from .llamacpp_library import cpu_expert_overrides, first_error, forget_errors, quiet_library
from .protocol import Feed, Logits, Work

MAX_SEQUENCES = 256  # LLAMA_MAX_SEQ of llama.cpp
CELL_STEP = 2048  # the cache grows in such steps, so that talks of like length share a context


@dataclass(frozen=True, slots=True)
class LlamaCppOptions:
    """How the model is run. All of it can change the last digits of a figure and stands in the provenance.

    threads      0: the processors this process may use
    gpu_layers   -1: all layers, where the build has a GPU
    cpu_moe      layers whose experts stay in RAM (counted from the first); 0: none
    flash_attention  None: where the model runs on a GPU. On a CPU it saves no time here and makes logits depend on
                 how tokens were cut into batches (by up to 0.6 with quantised weights, docs/log.md); without it
                 they do not, but for what else lies in the cache
    extra_bufts  library's repacked weight buffers; False avoids a crash on processors with AMX (see amx.py)
    """

    threads: int = 0
    gpu_layers: int = -1
    cpu_moe: int = 0
    extra_bufts: bool = True
    flash_attention: bool | None = None
    batch_tokens: int = 2048
    micro_batch_tokens: int = 512


class LlamaCpp:
    """One model, and the context its sequences live in. See backends.protocol.TokenBackend."""

    def __init__(
        self, path: Path, options: LlamaCppOptions | None = None, adapter: Path | None = None, name: str | None = None
    ) -> None:
        self._options = options or LlamaCppOptions()
        self._threads = self._options.threads or _usable_processors()
        wanted = self._options.flash_attention
        self._flash_attention = self._on_gpu if wanted is None else wanted
        self.name = name or path.stem
        self._path = path
        self._context: Any = None
        self._batch: Any = None
        self._cells = 0
        self._work = Work()
        self.before_pass: Callable[[], None] = lambda: None
        self._header = check_model(path)
        self._adapter_path = adapter
        if adapter is not None:  # before the base, which can take minutes
            check_adapter(adapter, self._header)
        quiet_library()
        self._model = _load_model(path, self._options)
        self._vocab = llama_cpp.llama_model_get_vocab(self._model)
        self._vocabulary_size = llama_cpp.llama_vocab_n_tokens(self._vocab)
        self._adapter = self._load_adapter(adapter) if adapter is not None else None

    @property
    def _on_gpu(self) -> bool:
        return bool(llama_cpp.llama_supports_gpu_offload()) and self._options.gpu_layers != 0

    # -- what the model is ------------------------------------------------------------------------------------

    @property
    def context_tokens(self) -> int:
        return int(llama_cpp.llama_model_n_ctx_train(self._model))

    @property
    def max_sequences(self) -> int:
        return MAX_SEQUENCES

    @property
    def work(self) -> Work:
        return self._work

    @property
    def cell_bytes(self) -> int:
        return cell_bytes(self._header)

    @property
    def chat_template(self) -> str | None:
        text = llama_cpp.llama_model_chat_template(self._model, None)
        return text.decode("utf-8") if text else None

    @cached_property
    def special_tokens(self) -> Mapping[str, str]:
        ids = {
            "bos_token": llama_cpp.llama_vocab_bos(self._vocab),
            "eos_token": llama_cpp.llama_vocab_eos(self._vocab),
        }
        return {k: self._piece(i, special=True).decode("utf-8", "replace") if i >= 0 else "" for k, i in ids.items()}

    @property
    def begin_token(self) -> int | None:
        """The BOS id, where the tokenizer wants one before a text."""
        wanted = llama_cpp.llama_vocab_get_add_bos(self._vocab)
        return int(llama_cpp.llama_vocab_bos(self._vocab)) if wanted else None

    @cached_property
    def vocabulary(self) -> Sequence[bytes]:
        return [self._piece(i, special=False) for i in range(self._vocabulary_size)]

    @cached_property
    def marker_texts(self) -> tuple[str, ...]:
        """Control tokens, and user-defined ones that look like markers: Gemma 4 keeps `<|channel>` and the tool
        markers there, which the library recognises in any text."""
        texts: list[str] = []
        for token in range(self._vocabulary_size):
            attributes = llama_cpp.llama_vocab_get_attr(self._vocab, token)
            control = attributes & llama_cpp.LLAMA_TOKEN_ATTR_CONTROL
            user = attributes & llama_cpp.LLAMA_TOKEN_ATTR_USER_DEFINED
            if control or user:
                text = self._piece(token, special=True).decode("utf-8", "replace")
                if len(text) > 2 and (control or "|" in text):
                    texts.append(text)
        return tuple(texts)

    @cached_property
    def end_tokens(self) -> frozenset[int]:
        ends = (i for i in range(self._vocabulary_size) if llama_cpp.llama_vocab_is_eog(self._vocab, i))
        return frozenset(ends)

    def tokenize(self, text: str, *, special: bool) -> list[int]:
        data = text.encode("utf-8")
        room = len(data) + 8
        tokens = (llama_cpp.llama_token * room)()
        count = llama_cpp.llama_tokenize(self._vocab, data, len(data), tokens, room, False, special)
        if count < 0:
            raise BackendError(f"the tokenizer refused a text of {len(data)} bytes")
        return list(tokens[:count])

    def _piece(self, token: int, *, special: bool) -> bytes:
        buffer = ctypes.create_string_buffer(64)
        count = llama_cpp.llama_token_to_piece(self._vocab, token, buffer, 64, 0, special)
        if count < 0:
            buffer = ctypes.create_string_buffer(-count)
            count = llama_cpp.llama_token_to_piece(self._vocab, token, buffer, -count, 0, special)
        return buffer.raw[: max(count, 0)]

    # -- evaluation -------------------------------------------------------------------------------------------

    def reserve(self, cells: int) -> bool:
        if self._context is not None and cells <= self._cells:
            return False
        self._free_context()
        rounded = -(-cells // CELL_STEP) * CELL_STEP
        self._context = self._open_context(rounded)
        self._cells = rounded
        options = self._options
        self._batch = llama_cpp.llama_batch_init(options.batch_tokens, 0, 1)
        return True

    def _open_context(self, cells: int) -> Any:
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = cells
        params.n_batch = self._options.batch_tokens
        params.n_ubatch = self._options.micro_batch_tokens
        params.n_seq_max = MAX_SEQUENCES
        # One row of logits a sequence is all that is ever asked for at once; the default keeps one a batch token.
        params.n_outputs_max = MAX_SEQUENCES
        params.n_threads = params.n_threads_batch = self._threads
        params.kv_unified = True
        params.swa_full = True
        params.no_perf = True
        params.flash_attn_type = (
            llama_cpp.LLAMA_FLASH_ATTN_TYPE_ENABLED
            if self._flash_attention
            else llama_cpp.LLAMA_FLASH_ATTN_TYPE_DISABLED
        )
        context = llama_cpp.llama_init_from_model(self._model, params)
        if not context:
            raise CapacityError(
                f"no room for a context of {cells} tokens ({cells * self.cell_bytes / 2**30:.1f} GiB of cache)",
                hint="Give less with --memory-gb, or score shorter conversations.",
            )
        if self._adapter is not None:
            adapters = (llama_cpp.llama_adapter_lora_p_ctypes * 1)(self._adapter)
            scales = (ctypes.c_float * 1)(1.0)
            if llama_cpp.llama_set_adapters_lora(context, adapters, 1, scales) != 0:
                raise WeightsError("the adapter cannot be applied to this base", where=str(self._adapter_path))
        return context

    def evaluate(self, feeds: Sequence[Feed]) -> list[Logits]:
        tokens, positions, sequences, wanted = rows(feeds)
        out: list[Logits] = []
        # The library cuts a pass into micro-batches at the same places; cut here, an evaluation can end between two.
        for start, stop in chunks(wanted, self._options.micro_batch_tokens, MAX_SEQUENCES):
            self.before_pass()
            self._fill(tokens[start:stop], positions[start:stop], sequences[start:stop], wanted[start:stop])
            self._decode(stop - start)
            for row in np.flatnonzero(wanted[start:stop]):
                pointer = llama_cpp.llama_get_logits_ith(self._context, int(row))
                out.append(np.ctypeslib.as_array(pointer, shape=(self._vocabulary_size,)).copy())
        return out

    def _fill(self, tokens: Any, positions: Any, sequences: Any, wanted: Any) -> None:
        batch, count = self._batch, len(tokens)
        batch.n_tokens = count
        np.ctypeslib.as_array(batch.token, shape=(count,))[:] = tokens
        np.ctypeslib.as_array(batch.pos, shape=(count,))[:] = positions
        np.ctypeslib.as_array(batch.n_seq_id, shape=(count,))[:] = 1
        np.ctypeslib.as_array(batch.logits, shape=(count,))[:] = wanted
        for row, sequence in enumerate(sequences.tolist()):
            batch.seq_id[row][0] = sequence

    def _decode(self, count: int) -> None:
        status = llama_cpp.llama_decode(self._context, self._batch)
        self._work.tokens += count
        self._work.passes += 1
        if status == 1:
            raise CapacityError(f"the cache of {self._cells} cells is full", hint="This is a fault of the plan.")
        if status != 0:
            raise BackendError(f"llama_decode failed with status {status}", where=self.name)

    @property
    def _memory(self) -> Any:
        return llama_cpp.llama_get_memory(self._context)

    def fork(self, source: int, target: int, length: int) -> None:
        llama_cpp.llama_memory_seq_rm(self._memory, target, -1, -1)
        if length:
            llama_cpp.llama_memory_seq_cp(self._memory, source, target, 0, length)

    def trim(self, sequence: int, length: int) -> None:
        if not llama_cpp.llama_memory_seq_rm(self._memory, sequence, length, -1):
            raise BackendError(f"sequence {sequence} cannot be cut back to {length} tokens", where=self.name)

    # -- a sequence out of the cache and back ------------------------------------------------------------------

    @property
    def cuts_change_nothing(self) -> bool:
        """Measured on processors without flash attention (docs/log.md); of GPUs it is not known."""
        return not self._on_gpu and not self._flash_attention

    @property
    def micro_batch_tokens(self) -> int:
        return self._options.micro_batch_tokens

    def save_sequence(self, sequence: int) -> bytes:
        size = llama_cpp.llama_state_seq_get_size(self._context, sequence)
        buffer = (ctypes.c_uint8 * size)()
        written = llama_cpp.llama_state_seq_get_data(self._context, buffer, size, sequence)
        if written != size:
            raise BackendError(f"the state of a sequence has {size} bytes, {written} were given", where=self.name)
        return bytes(buffer)

    def load_sequence(self, sequence: int, state: bytes) -> bool:
        forget_errors()
        buffer = (ctypes.c_uint8 * len(state)).from_buffer_copy(state)
        return bool(llama_cpp.llama_state_seq_set_data(self._context, buffer, len(state), sequence) == len(state))

    # -- the rest ---------------------------------------------------------------------------------------------

    def describe(self) -> dict[str, Any]:
        return {
            "backend": "llamacpp",
            "library": f"llama-cpp-python {llama_cpp.__version__}",
            **asdict(self._options),
            "threads": self._threads,
            "gpu": self._on_gpu,
            "adapter": self._adapter_path.name if self._adapter_path else None,
            "flash_attention": self._flash_attention,
        }

    def _load_adapter(self, path: Path) -> Any:
        """The library itself looks at more than the check did: the shapes, and that tensors come in pairs."""
        forget_errors()
        adapter = llama_cpp.llama_adapter_lora_init(self._model, str(path).encode())
        if not adapter:
            self.close()
            raise WeightsError(
                f"the library cannot use this adapter with this base: {first_error()}",
                where=str(path),
                hint="An adapter fits only the base it was trained on: check the judge's manifest.",
            )
        return adapter

    def _free_context(self) -> None:
        if self._batch is not None:
            llama_cpp.llama_batch_free(self._batch)
            self._batch = None
        if self._context is not None:
            llama_cpp.llama_free(self._context)
            self._context = None

    def close(self) -> None:
        self._free_context()
        if self._model is not None:
            llama_cpp.llama_model_free(self._model)
            self._model = None


def _usable_processors() -> int:
    """Those this process may run on, which in a container are fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _load_model(path: Path, options: LlamaCppOptions) -> Any:
    params = llama_cpp.llama_model_default_params()
    params.n_gpu_layers = options.gpu_layers
    params.use_extra_bufts = options.extra_bufts
    # kept alive until the file is loaded: the library keeps only the pointer
    overrides = cpu_expert_overrides(options.cpu_moe) if options.cpu_moe else None
    if overrides is not None:
        params.tensor_buft_overrides = ctypes.addressof(overrides)
    forget_errors()
    model = llama_cpp.llama_model_load_from_file(str(path).encode(), params)
    if not model:
        raise WeightsError(
            f"llama.cpp cannot load this file: {first_error()}",
            where=str(path),
            hint="The file may be damaged, or its architecture newer than the installed llama-cpp-python.",
        )
    return model
