"""Bytes to text: UTF-8 with or without byte-order mark, UTF-16 with one; anything else is an error with its byte."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from typing import Protocol

from ..errors import TranscriptError

BLOCK_BYTES = 1 << 20
_Decode = Callable[[bytes, str, bool], tuple[str, int]]

_UTF32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_MARKS: tuple[tuple[bytes, str, _Decode], ...] = (
    (codecs.BOM_UTF8, "UTF-8", codecs.utf_8_decode),
    (codecs.BOM_UTF16_LE, "UTF-16 (little endian)", codecs.utf_16_le_decode),
    (codecs.BOM_UTF16_BE, "UTF-16 (big endian)", codecs.utf_16_be_decode),
)
_HINT = "Save the file as UTF-8 (UTF-16 is read too when it begins with a byte-order mark)."


class ByteSource(Protocol):
    """What is read from: a file, standard input, an entry of a zip."""

    def read(self, size: int = ..., /) -> bytes: ...


def text_blocks(source: ByteSource, file: str) -> Iterator[str]:
    """The text of `source`, in blocks of about a megabyte, its byte-order mark removed.

    Raises TranscriptError with the encoding that was expected and the offset (bytes, from 0) of the first byte that
    does not fit it, or of the first NUL, which no transcript holds.
    """
    head = filled(source, BLOCK_BYTES)
    mark, name, decode = _encoding(head, file)
    start, pending = len(mark), head[len(mark) :]
    while True:
        block = filled(source, BLOCK_BYTES)
        text, used = _decoded(pending, decode, name, file, start, final=not block)
        if text:
            yield text
        if not block:
            return
        start, pending = start + used, pending[used:] + block


def filled(source: ByteSource, size: int) -> bytes:
    """`size` bytes, or fewer at the end only: pipes and zip entries hand out short reads."""
    parts, missing = [], size
    while missing > 0 and (part := source.read(missing)):
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def _encoding(head: bytes, file: str) -> tuple[bytes, str, _Decode]:
    if head.startswith(_UTF32):
        raise TranscriptError("UTF-32 is not read (byte 0)", where=file, hint=_HINT)
    for mark, name, decode in _MARKS:
        if head.startswith(mark):
            return mark, name, decode
    return b"", "UTF-8", codecs.utf_8_decode


def _decoded(data: bytes, decode: _Decode, name: str, file: str, start: int, *, final: bool) -> tuple[str, int]:
    if name == "UTF-8" and b"\0" in data:
        raise _nul(start + data.index(b"\0"), file)
    try:
        text, used = decode(data, "strict", final)
    except UnicodeDecodeError as fault:
        offset = start + fault.start
        raise TranscriptError(
            f"not {name} text: byte 0x{data[fault.start]:02x} at offset {offset}", where=file, hint=_HINT
        ) from None
    if "\0" in text:
        raise _nul(start + len(text[: text.index("\0")].encode("utf-16-le")), file)
    return text, used


def _nul(offset: int, file: str) -> TranscriptError:
    what = f"a NUL at byte offset {offset}: not text, or UTF-16 without a byte-order mark"
    return TranscriptError(what, where=file, hint=_HINT)
