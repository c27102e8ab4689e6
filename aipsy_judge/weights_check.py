"""`models verify`: every byte hashed again, every structure looked at, and a reason for whatever is wrong."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from .contracts import load_contract
from .errors import AipsyJudgeError
from .file_hash import remember_sha256
from .gguf_adapter import check_adapter
from .gguf_header import GgufHeader
from .gguf_model import check_model
from .known_judges import known_judges
from .model_folder import open_model_folder
from .named_files import NamedFile, NamedWeights
from .tensor_folder import CONFIG

Tell = Callable[[str, int, int], None]
PIECE_BYTES = 16 * 2**20


@dataclass(frozen=True, slots=True)
class Finding:
    """ok None: could not be looked at, which proves nothing either way."""

    what: str
    ok: bool | None
    detail: str


def hash_file(path: Path, tell: Tell = lambda what, done, total: None) -> str:
    """sha256 (hex), read from the disk and not from memory; `tell` hears how far it is."""
    total, done, digest = path.stat().st_size, 0, hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            digest.update(piece)
            done += len(piece)
            tell("checking", done, total)
    found = digest.hexdigest()
    remember_sha256(path, found)
    return found


def verify_weights(named: NamedWeights, tell: Tell = lambda what, done, total: None) -> Iterator[Finding]:
    """Findings, one after another as they are made. What fails never raises: it is a finding."""
    if not named.files:
        yield Finding("weights", None, "the server does not say where they are")
    base: GgufHeader | None = None
    for file in sorted(named.files, key=lambda f: f.role != "model"):
        sound = True
        for finding in _content(file, tell):
            sound = sound and finding.ok is True
            yield finding
        if file.path is not None and sound and file.role != "part":
            finding, header = _structure(file, file.path, base)
            base = header if file.role == "model" else base
            yield finding
    yield from _claims(named)


def _content(file: NamedFile, tell: Tell) -> Iterator[Finding]:
    what = f"{file.role} {Path(file.name).name}"
    if file.path is None:
        yield Finding(what, None if file.name.startswith("/") else False, "not on this machine")
        return
    try:
        size = file.path.stat().st_size
        if file.bytes is not None and size != file.bytes:
            yield Finding(what, False, f"{size} bytes; {file.bytes} are published: cut off, or another file")
            return
        found = hash_file(file.path, tell)
    except OSError as error:
        yield Finding(what, None, f"cannot be read: {error.strerror or error}")
        return
    if file.sha256 is None:
        same = next((j.name for j in known_judges() if j.file.sha256 == found), None)
        known = f"the published file of {same}" if same is not None else "nobody published one to compare with"
        yield Finding(what, True, f"sha256 {found}; {known}")
    elif found != file.sha256:
        yield Finding(what, False, f"sha256 {found}; wanted {file.sha256}: damaged, or another file")
    else:
        yield Finding(what, True, f"sha256 {found}, as published")


def _structure(file: NamedFile, path: Path, base: GgufHeader | None) -> tuple[Finding, GgufHeader | None]:
    what = f"structure of the {file.role}"
    if path.name == CONFIG:
        return _structure_of_folder(path.parent), None
    try:
        if file.role == "model":
            header = check_model(path)
        elif base is None:
            return Finding(what, None, "its base was not to be looked at"), None
        else:
            header = check_adapter(path, base)
    except AipsyJudgeError as error:
        return Finding(what, False, error.message), None
    arch = str(header.metadata["general.architecture"])
    if file.role == "model" and not _is_known(arch):
        return Finding(what, False, f"the architecture {arch!r} is not known to the installed llama.cpp"), None
    return Finding(what, True, f"{len(header.tensors)} tensors, architecture {arch}"), header


def _structure_of_folder(folder: Path) -> Finding:
    """Settings, headers of the weights, and the template; which models mlx-lm knows, only loading tells."""
    what = "structure of the model"
    try:
        found = open_model_folder(folder)
    except AipsyJudgeError as error:
        return Finding(what, False, error.message)
    tensors = sum(len(f.tensors) for f in found.files)
    return Finding(what, True, f"{tensors} tensors, architecture {found.config.get('model_type')}")


def _is_known(architecture: str) -> bool:
    from .backends.llamacpp_library import knows_architecture

    return knows_architecture(architecture)


def _claims(named: NamedWeights) -> Iterator[Finding]:
    if named.contract is not None:
        try:
            load_contract(named.contract)
            yield Finding("contract", True, named.contract)
        except AipsyJudgeError as error:
            yield Finding("contract", False, f"{error.message}; next: {error.hint}" if error.hint else error.message)
    if named.manifest is not None:
        from .judge_folder import template_sha256

        model = next((f.path for f in named.files if f.role == "model" and f.path is not None), None)
        try:
            folder_or_file = model.parent if model is not None and model.name == CONFIG else model
            found = template_sha256(folder_or_file) if folder_or_file is not None else None
        except AipsyJudgeError:
            return  # said already, with the structure
        if model is not None:
            same = found == named.manifest.template_sha256
            detail = "as the judge was trained with" if same else "another than the judge was trained with"
            yield Finding("chat template", same, detail)
        if not named.manifest.blessed:
            yield Finding("blessing", False, "its maker's checks did not pass: `score` refuses it without --unblessed")
