"""The bytes that a token of a tokenizer.json stands for: two ways to write bytes as text are in use."""

from __future__ import annotations

import json
from typing import Any, Literal

from .errors import WeightsError

Writing = Literal["ByteLevel", "ByteFallback"]
_BLANK = "▁"


def decoder_of(tokenizer: Any) -> bytes | None:
    """The decoder of a tokenizers.Tokenizer as in its tokenizer.json, None where it has none. This is what it pickles
    itself by: to write a whole vocabulary of 262,144 tokens for this part of it takes seconds."""
    decoder: bytes | None = None if tokenizer.decoder is None else tokenizer.decoder.__getstate__()
    return decoder


def writing_of(decoder_json: bytes | None, where: str) -> Writing:
    """How a vocabulary writes bytes: "ByteLevel" (GPT-2's letters) or "ByteFallback" (a mark for the blank and
    <0xNN>). WeightsError for another: its bytes would be a guess. `decoder_json`: see decoder_of."""
    decoder = {} if decoder_json is None else json.loads(decoder_json)
    parts = {part["type"] for part in decoder.get("decoders", [decoder]) if "type" in part}
    if "ByteLevel" in parts:
        return "ByteLevel"
    if "ByteFallback" in parts:
        return "ByteFallback"
    raise WeightsError(
        f"a tokenizer that decodes with {', '.join(sorted(parts)) or 'nothing'} is not understood",
        where=where,
        hint="Byte-level vocabularies and those with byte fallback are.",
    )


def token_bytes(text: str, writing: Writing) -> bytes:
    """
    >>> token_bytes("Ġhé", "ByteLevel"), token_bytes("▁h", "ByteFallback"), token_bytes("<0x0A>", "ByteFallback")
    (b' h\\xe9', b' h', b'\\n')
    """
    return _byte_level(text) if writing == "ByteLevel" else _blank_marked(text)


def _letters() -> dict[str, int]:
    """GPT-2's letter for every byte: printable ones stand for themselves, the others for letters from 256 on."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in plain]
    return {chr(b): b for b in plain} | {chr(256 + n): b for n, b in enumerate(others)}


_LETTERS = _letters()


def _byte_level(text: str) -> bytes:
    return bytes(_LETTERS[c] for c in text) if all(c in _LETTERS for c in text) else text.encode()


def _blank_marked(text: str) -> bytes:
    if len(text) == 6 and text.startswith("<0x") and text.endswith(">"):
        return bytes([int(text[3:5], 16)])
    return text.replace(_BLANK, " ").encode()
