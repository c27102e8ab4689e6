"""Place: where in a file something stands, so that every error can name it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..errors import TranscriptError


class UnknownShape(TranscriptError):
    """The file holds none of the known shapes: a stray file in a folder, not a damaged transcript."""


@dataclass(frozen=True, slots=True)
class Place:
    """A file, in it a line (from 1) where lines matter, in that a JSON path (`$` is the whole).

    >>> str(Place("chats.jsonl", line=3).at("messages", 0))
    'chats.jsonl, line 3, $.messages[0]'
    """

    file: str
    line: int | None = None
    path: str = ""

    def at(self, *steps: int | str) -> Place:
        return replace(self, path=self.path + "".join(_step(s) for s in steps))

    def on_line(self, line: int) -> Place:
        return replace(self, line=line)

    def error(self, message: str, *, hint: str | None = None) -> TranscriptError:
        return TranscriptError(message, where=str(self), hint=hint)

    def __str__(self) -> str:
        line = [f"line {self.line}"] if self.line is not None else []
        path = [f"${self.path}"] if self.path else []
        return ", ".join([self.file, *line, *path])


def shown(name: str) -> str:
    """A file's name as it can be printed: one with control or invisible characters, or that is no text, is quoted."""
    return name if name.isprintable() else repr(name)


def _step(step: int | str) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    # Keys come from the file: one that is long or odd is quoted and cut, so that an error stays one line.
    return f".{step}" if step.isidentifier() and len(step) <= 40 else f"[{step[:40]!r}]"
