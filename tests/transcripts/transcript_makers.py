"""What the tests of the readers share: what was said, and a zip as Inspect writes it."""

from __future__ import annotations

import struct
import zlib

import zstandard

from aipsy_judge.conversation import Conversation


def said(conversation: Conversation) -> list[tuple[str, str]]:
    """Role and text of the spoken messages."""
    return [(m.role, m.content) for m in conversation.messages if m.spoken]


def zstd_zip(
    entries: dict[str, bytes], *, declare: int | None = None, method: int = 93, crc: int | None = None, flags: int = 0
) -> bytes:
    """A zip whose entries are compressed with zstd (method 93), written by hand: zipfile cannot before Python 3.14.

    `declare`, `crc` and `flags` lie about every entry's size, checksum and encryption.
    """
    body, directory = b"", b""
    for name, content in entries.items():
        packed = zstandard.ZstdCompressor().compress(content)
        size = len(content) if declare is None else declare
        checksum = zlib.crc32(content) if crc is None else crc
        fields = struct.pack("<HHHHHIIIHH", 63, flags, method, 0, 33, checksum, len(packed), size, len(name), 0)
        directory += b"PK\1\2" + struct.pack("<H", 63) + fields + struct.pack("<HHHII", 0, 0, 0, 0, len(body))
        directory += name.encode()
        body += b"PK\3\4" + fields + name.encode() + packed
    end = struct.pack("<HHHHIIH", 0, 0, len(entries), len(entries), len(directory), len(body), 0)
    return body + directory + b"PK\5\6" + end
