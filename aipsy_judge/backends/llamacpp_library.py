"""What concerns the llama.cpp library as a whole: its log, and one buffer type it does not name."""

from __future__ import annotations

import ctypes
import re
import struct
import tempfile
from pathlib import Path
from typing import Any

import llama_cpp

from ..errors import BackendError

_kept_log: list[str] = []


@llama_cpp.llama_log_callback  # type: ignore[untyped-decorator]
def _keep(level: int, text: bytes, data: Any) -> None:
    """Errors (level 4 and up) are kept for a message of ours; the rest of the library's talk is dropped."""
    if level >= 4:
        _kept_log.append(text.decode("utf-8", "replace").strip())
        del _kept_log[:-20]


def quiet_library() -> None:
    """Start the library (once) and keep its log off the user's terminal."""
    llama_cpp.llama_log_set(_keep, ctypes.c_void_p(0))
    llama_cpp.llama_backend_init()


def last_errors() -> list[str]:
    """What the library complained of last."""
    return list(_kept_log)


def forget_errors() -> None:
    """Before something whose complaints are to be told apart from older ones."""
    _kept_log.clear()


def first_error() -> str:
    """What the library complained of first since then, without the names of its functions; the rest follows from it."""
    text = " ".join(_kept_log[0].split()) if _kept_log else "it does not say why"
    return re.sub(r"^(?:\w+: )*(?:error loading model: )?", "", text)[:300]


def knows_architecture(name: str) -> bool:
    """Whether this build of llama.cpp has the architecture. It offers no list, so it is shown a file that is nothing
    but that name, and what it complains of tells."""
    text = name.encode()
    key = b"general.architecture"
    head = struct.pack("<4sIQQ", b"GGUF", 3, 0, 1)
    pair = struct.pack("<Q", len(key)) + key + struct.pack("<IQ", 8, len(text)) + text
    quiet_library()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "name.gguf"
        path.write_bytes(head + pair)
        params = llama_cpp.llama_model_default_params()
        params.vocab_only = True
        forget_errors()
        model = llama_cpp.llama_model_load_from_file(str(path).encode(), params)
        if model:
            llama_cpp.llama_model_free(model)
    return not any("unknown model architecture" in line for line in _kept_log)


class _Override(ctypes.Structure):
    """llama_model_tensor_buft_override of llama.h."""

    _fields_ = (("pattern", ctypes.c_char_p), ("buffer_type", ctypes.c_void_p))


def cpu_expert_overrides(layers: int) -> ctypes.Array[_Override]:
    """The table that keeps the experts of the first `layers` layers in RAM. The caller keeps it alive."""
    cpu = _cpu_buffer_type()
    patterns = [rb"blk\.%d\.ffn_(up|down|gate|gate_up)_(ch|)exps" % i for i in range(layers)]
    table = (_Override * (len(patterns) + 1))()  # the last stays NULL: the end
    for row, pattern in zip(table, patterns, strict=False):
        row.pattern, row.buffer_type = pattern, cpu
    return table


def _cpu_buffer_type() -> int:
    """ggml's plain CPU buffer type. llama_cpp exports no name for it, so it is looked up in the library that
    llama_cpp has loaded: the one step outside its public names."""
    folder = Path(llama_cpp.__file__).parent / "lib"
    for file in sorted(folder.glob("*ggml*")):
        try:
            function = ctypes.CDLL(str(file)).ggml_backend_cpu_buffer_type
        except (OSError, AttributeError):
            continue
        function.restype = ctypes.c_void_p
        return int(function())
    raise BackendError("this build of llama.cpp has no CPU buffer type", hint="Leave out --cpu-moe.")
