"""Exports that went wrong, made from a good one by changing a few bytes of its head in place."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

HEAD = 16 * 2**20  # the metadata of a small model lie within


def _changed(source: Path, target: Path, *changes: tuple[bytes, bytes]) -> Path:
    """A copy with each text replaced once by another of the same length."""
    shutil.copyfile(source, target)
    with target.open("r+b") as file:
        head = file.read(HEAD)
        for old, new in changes:
            assert len(old) == len(new)
            assert head.count(old) >= 1
            at = head.index(old)
            file.seek(at)
            file.write(new)
            head = head[:at] + new + head[at + len(new) :]
    return target


def other_template(source: Path, target: Path) -> Path:
    """The answer is announced in another way than in training."""
    return _changed(source, target, (b"<|im_start|>assistant", b"<|im_start|>ASSISTANT"))


def other_end(source: Path, target: Path) -> Path:
    """The end token is named wrongly: an ordinary word ends the answer too."""
    return _changed(source, target, (_eos(source, 2), _eos(source, 300)))


def dropped_end(source: Path, target: Path) -> Path:
    """The end token is not one any more: its text is another, and it is not named as the end."""
    length = struct.pack("<Q", 10)
    renamed = (length + b"<|im_end|>", length + b"<|im_enx|>")
    return _changed(source, target, (_eos(source, 2), _eos(source, 300)), renamed)


def _eos(source: Path, token: int) -> bytes:
    return b"tokenizer.ggml.eos_token_id" + struct.pack("<II", 4, token)  # 4: uint32
