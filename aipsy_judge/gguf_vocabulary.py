"""Is the vocabulary of a GGUF file whole? llama.cpp ends the process over some faults of one, in the loading or at the
first text that needs the missing piece, and passes over others with a warning.

Source: llama.cpp as of llama-cpp-python 0.3.36, llama-vocab.cpp.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from .gguf_header import FLOAT32, INT32, STRING, UINT32, GgufHeader, array_numbers, array_texts

_BYTE = re.compile(rb"<0x[0-9A-Fa-f]{2}>")
_NORMAL_TYPES = range(7)  # undefined, normal, unknown, control, user-defined, unused, byte
_BYTE_TYPE = 6
_WITH_MERGES = ("gpt2", "gemma4")
_WITH_BYTES = ("llama", "gemma4")  # tokenizers that spell what they do not know byte by byte


def check_vocabulary(path: Path, header: GgufHeader) -> str | None:
    """What is wrong with it, in words; None where nothing is."""
    model = header.metadata.get("tokenizer.ggml.model")
    if not isinstance(model, str):
        return "the file does not say which tokenizer it wants (tokenizer.ggml.model)"
    tokens = header.arrays["tokenizer.ggml.tokens"]
    if tokens.kind != STRING:
        return "the vocabulary is no list of texts"
    # the library reads a text up to the first zero byte
    texts = [text.partition(b"\0")[0] for text in array_texts(path, tokens)]
    return (
        _texts(texts)
        or _scores(path, header, len(texts))
        or _types(path, header, texts)
        or _merges(path, header, model)
        or _special_ids(header, len(texts))
        or (_bytes(texts) if model in _WITH_BYTES else None)
    )


def _texts(texts: list[bytes]) -> str | None:
    # the library calls an empty token by its number; two of one text end the process
    named = [text or b"[EMPTY_%d]" % i for i, text in enumerate(texts)]
    if len(set(named)) != len(named):
        seen: set[bytes] = set()
        for i, text in enumerate(named):
            if text in seen:
                return f"the vocabulary has the token {text.decode('utf-8', 'replace')!r} twice (the second is {i})"
            seen.add(text)
    try:
        b"\n".join(texts).decode("utf-8")
    except UnicodeDecodeError:
        return "the vocabulary has a token that is not UTF-8"
    return None


def _scores(path: Path, header: GgufHeader, count: int) -> str | None:
    key = "tokenizer.ggml.scores"
    if key in header.kinds:
        return "the tokens' scores are no list"
    array = header.arrays.get(key)
    if array is None:
        return None
    if array.kind not in (FLOAT32, INT32) or array.length != count:
        return f"{array.length} scores of type {array.kind} for {count} tokens"
    if not np.isfinite(array_numbers(path, array)).all():
        return "a token's score is no number"
    return None


def _types(path: Path, header: GgufHeader, texts: list[bytes]) -> str | None:
    key = "tokenizer.ggml.token_type"
    if key in header.kinds:
        return "the tokens' types are no list"
    array = header.arrays.get(key)
    if array is None:
        return None
    if array.kind != INT32 or array.length != len(texts):
        return f"{array.length} token types of type {array.kind} for {len(texts)} tokens"
    types = array_numbers(path, array)
    strange = np.flatnonzero((types < _NORMAL_TYPES[0]) | (types > _NORMAL_TYPES[-1]))
    if strange.size:
        return f"token {strange[0]} is of the unknown type {types[strange[0]]}"
    for token in np.flatnonzero(types == _BYTE_TYPE):
        if not _BYTE.fullmatch(texts[token]):
            return f"token {token} stands for a byte, but reads {texts[token].decode('utf-8', 'replace')!r}"
    return None


def _merges(path: Path, header: GgufHeader, model: str) -> str | None:
    key = "tokenizer.ggml.merges"
    if key in header.kinds:
        return "the tokenizer's merges are no list"
    array = header.arrays.get(key)
    if array is None:
        # one family of the library's does without; it is told apart by its pre-tokenizer
        bare = header.metadata.get("tokenizer.ggml.pre") == "kimi-k2"
        return f"the tokenizer {model} wants merges" if model in _WITH_MERGES and not bare else None
    if array.kind != STRING:
        return "the tokenizer's merges are no texts"
    for at, merge in enumerate(array_texts(path, array)):
        if merge.find(b" ", 1) < 0:
            return f"merge {at} joins nothing: {merge.decode('utf-8', 'replace')[:40]!r}"
    return None


def _special_ids(header: GgufHeader, count: int) -> str | None:
    """The library passes over an id that is out of range and goes on with a default: it would stop elsewhere."""
    for key, value in header.metadata.items():
        if not (key.startswith("tokenizer.ggml.") and key.endswith("_token_id")):
            continue
        if header.kinds.get(key) != UINT32 or not 0 <= value < count:
            return f"{key} is {value!r}; the vocabulary has {count} tokens"
    return None


def _bytes(texts: list[bytes]) -> str | None:
    """Every byte can be spelled: a text with one that cannot would end the process."""
    known = set(texts)
    for byte in range(256):
        if b"<0x%02X>" % byte not in known and bytes([byte]) not in known:
            return f"the vocabulary has no token for the byte 0x{byte:02X}"
    return None
