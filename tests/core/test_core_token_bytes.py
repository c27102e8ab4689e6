"""How a vocabulary writes bytes is said by its decoder, which is read alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models

from aipsy_judge.errors import WeightsError
from aipsy_judge.token_bytes import decoder_of, writing_of

KINDS = {
    "ByteLevel": decoders.ByteLevel(),
    "ByteFallback": decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]),
    "neither": decoders.WordPiece(),
}


def decoding(decoder: Any) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    if decoder is not None:
        tokenizer.decoder = decoder
    return tokenizer


@pytest.mark.parametrize("kind", KINDS)
def test_the_decoder_alone_is_what_the_whole_tokenizer_says_of_it(kind: str) -> None:
    tokenizer = decoding(KINDS[kind])
    assert json.loads(decoder_of(tokenizer) or b"") == json.loads(tokenizer.to_str())["decoder"]


@pytest.mark.parametrize("kind", ["ByteLevel", "ByteFallback"])
def test_both_ways_to_write_bytes_are_told_apart(kind: str) -> None:
    assert writing_of(decoder_of(decoding(KINDS[kind])), "here") == kind


@pytest.mark.parametrize(("decoder", "named"), [(KINDS["neither"], "WordPiece"), (None, "nothing")])
def test_another_way_is_refused_by_its_name(decoder: Any, named: str) -> None:
    with pytest.raises(WeightsError, match=f"decodes with {named} is not understood"):
        writing_of(decoder_of(decoding(decoder)), "here")
