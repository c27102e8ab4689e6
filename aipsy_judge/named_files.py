"""What a name of weights stands for: the files of a judge, and what is known of it without loading any."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from .known_judges import KnownJudge
from .manifest import Manifest

CARD = "README.md"
Kind = Literal["known", "folder", "file", "ollama"]


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file of weights. path None: not on this machine; sha256, bytes None: nobody has published them."""

    role: Literal["model", "adapter", "part"]
    name: str
    path: Path | None
    sha256: str | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class NamedWeights:
    """card: a text for people beside the weights. server: what an Ollama server says of the tag."""

    name: str
    kind: Kind
    files: tuple[NamedFile, ...]
    contract: str | None = None
    known: KnownJudge | None = None
    manifest: Manifest | None = None
    folder: Path | None = None
    server: tuple[str, ...] = ()

    @property
    def card(self) -> Path | None:
        path = self.folder / CARD if self.folder is not None else None
        return path if path is not None and path.is_file() else None
