"""What an Ollama server says of a tag, and the file of weights behind it where it lies on this machine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .backends.refusals import as_error
from .backends.server_name import ServerName, parse_server_name
from .backends.wire import Patience, Wire
from .named_files import NamedFile, NamedWeights

ANSWER_SECONDS = 20.0
# A model file names its weights by the path of a blob, whose name is its sha256.
_FROM = re.compile(r"^FROM\s+(?P<path>.*sha256-(?P<sha>[0-9a-f]{64}))\s*$", re.MULTILINE)
_ADAPTER = re.compile(r"^ADAPTER\s+(?P<path>.*sha256-(?P<sha>[0-9a-f]{64}))\s*$", re.MULTILINE)


def of_tag(name: str) -> NamedWeights:
    """The weights behind `ollama:TAG[@URL]`. Raises InputError, BackendError, AccessError (no such tag)."""
    server = parse_server_name(name)
    data = _show(server)
    modelfile = data.get("modelfile")
    text = modelfile if isinstance(modelfile, str) else ""
    files = []
    for role, pattern in (("model", _FROM), ("adapter", _ADAPTER)):
        for match in pattern.finditer(text):
            # a server elsewhere has its own disk: a path that happens to exist here too is not its file
            here = Path(match["path"]) if server.is_loopback and _is_file(Path(match["path"])) else None
            files.append(NamedFile("model" if role == "model" else "adapter", match["path"], here, match["sha"]))
    return NamedWeights(server.text, "ollama", tuple(files), server=tuple(_words(data)))


def _show(server: ServerName) -> Mapping[str, Any]:
    wire = Wire(server.url, loopback=server.is_loopback, patience=Patience(ANSWER_SECONDS, retries=1))
    try:
        answer = wire.post("api/show", {"model": server.model})
    finally:
        wire.close()
    if answer.problem is not None:
        raise as_error(answer.problem, where=server.text, model=server.model)
    return answer.data


def _words(data: Mapping[str, Any]) -> list[str]:
    details, info = data.get("details"), data.get("model_info")
    details = details if isinstance(details, Mapping) else {}
    info = info if isinstance(info, Mapping) else {}
    rows = [
        ("family", details.get("family")),
        ("parameters", details.get("parameter_size")),
        ("quantisation", details.get("quantization_level")),
        ("context", next((v for k, v in info.items() if str(k).endswith(".context_length")), None)),
    ]
    return [f"{label}: {value}" for label, value in rows if isinstance(value, str | int) and value != ""]


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # the server's user may keep its files to itself
        return False
