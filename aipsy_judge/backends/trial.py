"""A file of weights that nobody has published is loaded first where it can do no harm: in a process with bounds.

The checks of a file's structure cannot know every assumption that a library makes of a hundred architectures; a file
that breaks one ends the process that loads it. So a child loads it, renders its chat template, tokenises and
evaluates a few tokens, with bounds of time and memory. What became of it is remembered by the files' sha256.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import llama_cpp

from ..cache_folder import recall, remember
from ..errors import AipsyJudgeError, WeightsError
from ..file_hash import file_sha256
from ..gguf_adapter import check_adapter
from ..gguf_model import check_model
from ..known_judges import known_judges
from ..model_folder import model_files, open_model_folder
from .mlx_library import mlx_versions
from .protocol import TokenBackend

LEAST_SECONDS, BYTES_A_SECOND = 60.0, 50e6  # of computing; and a slow disk reads so much
BUSY = 10  # times as long by the clock, on a machine that is busy with something else
# What the library takes beside the file: the vocabulary as texts, buffers of a small context.
LEAST_BYTES = 3 * 2**30
_SHIPPED = Path(__file__).resolve().parents[1] / "data"  # what comes with this package was tried when it was made
LONGEST_TEXT = 100_000  # characters that a template writes around messages; published ones write hundreds
_ROLES = (("system", "user"), ("user",), ("user", "assistant"))
# Every kind of character: what a tokenizer lacks shows at once, not at the first talk that has it.
_TEXT = 'Words, 123 and\n\tmore: \u00e9\u4e2d\U0001f614\u0000\x7f\ufffd {"a": null}'


def ensure_harmless(model: Path, adapter: Path | None = None) -> None:
    """Raise WeightsError unless the files are published or shipped, or a child could load them; each asked once.
    `model` is a GGUF file, or a folder of safetensors (without adapter)."""
    if model.is_dir():
        open_model_folder(model)
    else:
        header = check_model(model)
        if adapter is not None:
            check_adapter(adapter, header)
    hashes = (file_sha256(model), file_sha256(adapter) if adapter is not None else "")
    shipped = adapter is None or adapter.resolve().is_relative_to(_SHIPPED)
    if shipped and hashes[0] in {j.file.sha256 for j in known_judges()}:
        return
    library = mlx_versions() if model.is_dir() else f"llama-cpp-python {llama_cpp.__version__}"
    key = "|".join((*hashes, str(library)))
    if recall("trials", bool).get(key):
        return
    fault = try_files(model, adapter)
    if fault is not None:
        raise WeightsError(
            f"a process that loaded it first did not end well: {fault}",
            where=str(adapter or model),
            hint="It is damaged, not fit for the library as installed, or hostile. Fetch it from its source.",
        )
    remember("trials", recall("trials", bool) | {key: True})


@dataclass(frozen=True, slots=True)
class _Fault:
    """What went wrong, in words; `by_signal`: the process said nothing itself."""

    words: str
    by_signal: bool = False


def try_files(model: Path, adapter: Path | None = None) -> str | None:
    """Load, render, tokenise and evaluate in a child; what went wrong, in words, or None.

    A child that a signal ended is asked once more: a library that has already said why it cannot go on may abort by
    chance before the words are out. What ended a process once is refused whatever comes of the second.
    """
    fault = _tried(model, adapter)
    if fault is not None and fault.by_signal:
        again = _tried(model, adapter)
        fault = again if again is not None and not again.by_signal else fault
    return fault.words if fault is not None else None


def _tried(model: Path, adapter: Path | None) -> _Fault | None:
    words = [str(model)] + ([str(adapter)] if adapter is not None else [])
    files = model_files(model) if model.is_dir() else [Path(w) for w in words]
    size = sum(file.stat().st_size for file in files)
    seconds = LEAST_SECONDS + size / BYTES_A_SECOND
    command = [sys.executable, "-m", __name__, str(LEAST_BYTES + 2 * size), str(math.ceil(seconds)), *words]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=BUSY * seconds,
            check=False,
            # an assertion of the library's would start a debugger for its last words
            env={**os.environ, "GGML_NO_BACKTRACE": "1"},
        )
    except subprocess.TimeoutExpired:
        return _Fault(f"it was not done after {BUSY * seconds:.0f} s")
    except OSError as error:
        return _Fault(f"it could not be started: {error.strerror or error}")
    if done.returncode == 0:
        return None
    if sys.platform != "win32" and done.returncode == -signal.SIGXCPU:
        return _Fault(f"it was not done after {seconds:.0f} s of computing")
    if done.returncode < 0:
        return _Fault(f"it was ended by {signal.Signals(-done.returncode).name}", by_signal=True)
    return _Fault((done.stderr.strip().splitlines() or [f"it ended with code {done.returncode}"])[-1][:300])


def _bound_memory(most_bytes: int) -> None:
    """Data, not address space: the file itself is mapped, and may be larger than the memory."""
    if sys.platform == "win32":
        return
    import resource

    resource.setrlimit(resource.RLIMIT_DATA, (most_bytes, most_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _bound_time(most_seconds: int) -> None:
    """Of the processor, not by the clock: a machine that does other work too is no fault of the file."""
    if sys.platform == "win32":
        return
    import resource

    resource.setrlimit(resource.RLIMIT_CPU, (most_seconds, most_seconds + 1))


def _try(model: Path, adapter: Path | None) -> None:
    """What the child does."""
    from .protocol import Feed

    backend = _opened(model, adapter)
    if backend.chat_template is not None:
        _render_each(backend.chat_template, backend.special_tokens)
    tokens = [t for special in (False, True) for t in backend.tokenize(_TEXT, special=special)]
    _ = backend.vocabulary, backend.marker_texts, backend.end_tokens, backend.cell_bytes
    backend.reserve(len(tokens) + 1)
    backend.evaluate([Feed(0, 0, tokens, want_logits=True)])
    backend.close()


def _opened(model: Path, adapter: Path | None) -> TokenBackend:
    if model.is_dir():
        from .mlxlm import MlxLm

        return MlxLm(model)
    from .llamacpp import LlamaCpp, LlamaCppOptions

    options = LlamaCppOptions(threads=1, gpu_layers=0, extra_bufts=False, batch_tokens=64, micro_batch_tokens=64)
    return LlamaCpp(model, options, adapter)


def _render_each(template: str, special: Mapping[str, str]) -> None:
    from ..chat_template import render

    for roles in _ROLES:
        try:
            text = render(template, roles, special)
        except MemoryError:
            raise
        except Exception:  # some refuse a system message, say; that it ends is what is asked here
            continue
        if len(text) > LONGEST_TEXT:
            raise WeightsError(f"its chat template writes {len(text)} characters around {len(roles)} messages")


def _fault_of_trial(words: Sequence[str]) -> str | None:
    """Try the files that are named; what is wrong with them, as far as it is foreseen."""
    try:
        _try(Path(words[0]), Path(words[1]) if len(words) > 1 else None)
    except AipsyJudgeError as error:
        return error.message
    except MemoryError:
        return "it wanted more memory than a file of this size can need"
    return None


if __name__ == "__main__":
    _bound_memory(int(sys.argv[1]))
    _bound_time(int(sys.argv[2]))
    fault = _fault_of_trial(sys.argv[3:])
    if fault is not None:
        print(fault, file=sys.stderr, flush=True)
    # At once: a library whose work was broken off may abort while the process is taken down, and then its signal
    # would be all that is heard of the fault.
    os._exit(0 if fault is None else 1)
