"""Fetch a known judge: room first, then the file, then its sha256, and only then its place.

A download that was broken off goes on where it stopped, also in another process. What does not have the published
sha256 is deleted; nothing of it is ever where a judge is looked for.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ..atomic import sync_folder
from ..errors import HubError, InputError, ManifestError, MissingExtraError, WeightsError
from ..file_hash import file_sha256, remember_sha256
from ..gguf_model import check_model
from ..known_judges import KnownJudge, installed_at
from ..manifest import MANIFEST, read_manifest
from .client import RemoteFile, fetch_from, look_up
from .pulled import PulledFile, Record, pulled_folder, staging_folder, write_record
from .room import check_room, words

CARD = "README.md"
# Manifest and card are text; whatever is larger is not fetched as one.
SMALL_BYTES = 8 * 2**20
Tell = Callable[[str, int, int], None]
"""Told of the work: what is done ("fetching", "checking"), bytes so far, bytes in all."""


@dataclass(frozen=True, slots=True)
class Pulled:
    """model: where the weights are. fetched: False where they were here already. remarks: what a person must know."""

    model: Path
    fetched: bool
    revision: str | None = None
    remarks: tuple[str, ...] = ()


def pull_judge(judge: KnownJudge, tell: Tell = lambda what, done, total: None) -> Pulled:
    """Fetch `judge` into the cache folder, unless it is on this machine already and whole.

    Raises HubError (no network, no room, refused, another file than the published one), InputError where the judge
    does not come from the hub.
    """
    here = installed_at(judge)
    if here is not None and file_sha256(here) == judge.file.sha256:
        return Pulled(here, fetched=False)
    if judge.hub is None:
        raise InputError(f"{judge.name} does not come from the hub", hint=judge.how_to_get)
    if not judge.file.name.endswith(".gguf"):
        raise InputError(f"{judge.file.name} is no GGUF file, and no other kind of weights is fetched")
    remote = look_up(judge.hub.repository, judge.hub.path, judge.hub.revision)
    if remote.sha256 is not None and remote.sha256 != judge.file.sha256:
        raise HubError(
            f"the hub's file is not the published one: sha256 {remote.sha256}, wanted {judge.file.sha256}",
            where=remote.words,
            hint="Nothing was fetched. Is this aipsy-judge up to date?",
        )
    staging = staging_folder(judge.name)
    part = staging / f"{judge.file.sha256[:16]}.part"
    check_room(staging, remote.size_bytes - (part.stat().st_size if part.is_file() else 0))
    staging.mkdir(parents=True, exist_ok=True)
    with _alone(staging, judge.name):
        _download(remote, part, tell)
        _check(part, judge, tell)
        remarks = _small_files(judge, remote, staging)
        model = _place(judge, remote, staging, part)
    with contextlib.suppress(OSError):
        staging.rmdir()
    return Pulled(model, fetched=True, revision=remote.revision, remarks=tuple(remarks))


@contextlib.contextmanager
def _alone(staging: Path, name: str) -> Iterator[None]:
    """Two processes must not write one file."""
    try:
        from filelock import FileLock, Timeout
    except ImportError as error:  # comes with huggingface-hub
        raise MissingExtraError("filelock", "hub", "fetching from the model hub") from error
    path = staging.with_name(f"{staging.name}.lock")
    try:
        with FileLock(path, timeout=0):
            yield
    except Timeout:
        raise HubError(f"another process is fetching {name} just now", where=str(staging)) from None


def _download(remote: RemoteFile, part: Path, tell: Tell) -> None:
    """Until the file is whole. The address of a large file is signed for some hours only, so after a break the hub is
    asked for it again; a try that brought nothing new is the last."""
    while True:
        start = part.stat().st_size if part.is_file() else 0
        if start > remote.size_bytes:
            part.unlink()
            start = 0
        if start == remote.size_bytes:
            return
        try:
            with part.open("r+b" if start else "wb") as file:
                file.seek(start)
                fetch_from(remote, _Watched(file, remote.size_bytes, tell), start)
                file.flush()
                os.fsync(file.fileno())
        except HubError:
            if part.stat().st_size <= start:
                raise
            remote = look_up(remote.repository, remote.path, remote.revision)
        except OSError as error:
            raise HubError(
                f"cannot be written: {error.strerror or error}; {words(part.stat().st_size)} of "
                f"{words(remote.size_bytes)} are here and kept",
                where=str(part),
                hint="Make room; the same command goes on where it stopped.",
            ) from error


class _Watched:
    """A file that tells how far it has come; what huggingface-hub's download needs of one."""

    def __init__(self, file: BinaryIO, total: int, tell: Tell) -> None:
        self._file, self._total, self._tell = file, total, tell
        self.seek, self.tell = file.seek, file.tell

    def write(self, data: bytes) -> int:
        written = self._file.write(data)
        # on the disk before the next piece is asked for: a break of the line must cost no more than that piece
        self._file.flush()
        self._tell("fetching", self._file.tell(), self._total)
        return written

    def truncate(self) -> int:
        return self._file.truncate()


def _check(part: Path, judge: KnownJudge, tell: Tell) -> None:
    """The published sha256, or nothing. Then that what was published is a model at all."""
    found = _hash(part, tell)
    if found != judge.file.sha256:
        part.unlink()
        raise HubError(
            f"what came is not the published file: sha256 {found}, wanted {judge.file.sha256}",
            where=judge.name,
            hint="It was deleted and nothing was installed. Try again; if it stays so, something on the way alters it.",
        )
    check_model(part)


def _hash(path: Path, tell: Tell) -> str:
    total, done, digest = path.stat().st_size, 0, hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(16 * 2**20):
            digest.update(piece)
            done += len(piece)
            tell("checking", done, total)
    return digest.hexdigest()


def _small_files(judge: KnownJudge, remote: RemoteFile, staging: Path) -> list[str]:
    """Manifest and card, of the same commit, where the repository has them. A manifest that is not of this very file
    is left out, and that is said: what it holds (temperatures, floors) would change scores."""
    remarks = []
    for name in (MANIFEST, CARD):
        with contextlib.suppress(HubError):  # missing, or not to be had: the weights do without
            found = look_up(remote.repository, name, remote.revision)
            if found.size_bytes > SMALL_BYTES:
                raise HubError(f"{name} is too large to be one")
            with (staging / name).open("wb") as file:
                fetch_from(found, file, 0)
    manifest = staging / MANIFEST
    if manifest.is_file():
        fault = _manifest_fault(manifest, judge)
        if fault is not None:
            manifest.unlink()
            remarks.append(f"the repository's {MANIFEST} was left out: {fault}")
    return remarks


def _manifest_fault(path: Path, judge: KnownJudge) -> str | None:
    try:
        manifest = read_manifest(path)
    except (ManifestError, WeightsError) as error:
        return error.message
    own = manifest.model
    if own.sha256 != judge.file.sha256 or own.name != judge.file.name:
        return f"it is of other weights ({own.name}, sha256 {own.sha256[:12]}...)"
    return "it names an adapter, which is not fetched" if manifest.adapter is not None else None


def _place(judge: KnownJudge, remote: RemoteFile, staging: Path, part: Path) -> Path:
    """Each file in one step, the weights last: with them the judge is there."""
    folder = pulled_folder(judge.name)
    folder.mkdir(parents=True, exist_ok=True)
    small = [p for p in (staging / MANIFEST, staging / CARD) if p.is_file()]
    sizes = {p.name: (p.stat().st_size, hashlib.sha256(p.read_bytes()).hexdigest()) for p in small}
    sizes[judge.file.name] = (part.stat().st_size, judge.file.sha256)
    files = tuple(PulledFile(name=n, bytes=size, sha256=sha) for n, (size, sha) in sizes.items())
    write_record(folder, Record(judge=judge.name, repository=remote.repository, revision=remote.revision, files=files))
    for path in small:
        path.replace(folder / path.name)
    model = folder / judge.file.name
    part.replace(model)
    sync_folder(folder)
    remember_sha256(model, judge.file.sha256)
    return model
