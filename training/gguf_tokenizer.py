"""A transformers tokenizer from the vocabulary inside a GGUF file, equal by token ids to llama.cpp's.

Only byte-level vocabularies (tokenizer.ggml.model "gpt2") whose way of cutting text into words is known here; a
guessed one gives other ids than the judge will be asked with, and nothing would show it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from aipsy_judge.errors import WeightsError

CONTROL, USER_DEFINED = 3, 4  # llama.cpp's token types


def _smollm() -> Any:
    from tokenizers import pre_tokenizers

    digits = pre_tokenizers.Digits(individual_digits=True)
    return pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])


def _gpt2() -> Any:
    from tokenizers import pre_tokenizers

    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)


# tokenizer.ggml.pre -> how words are cut. Source: llama.cpp's llama-vocab.cpp, the pattern of each name.
_WORDS: dict[str, Callable[[], Any]] = {"smollm": _smollm, "gpt-2": _gpt2}


def tokenizer_from_gguf(path: Path) -> Any:
    """A PreTrainedTokenizerFast with the file's chat template. WeightsError where it would only be a guess."""
    from gguf import GGUFReader
    from tokenizers import AddedToken, Tokenizer, decoders, models
    from transformers import PreTrainedTokenizerFast

    fields = {key: field for key, field in GGUFReader(path).fields.items() if key.startswith("tokenizer.")}

    def of(key: str) -> Any:
        field = fields.get(f"tokenizer.{key}")
        return None if field is None else field.contents()

    _check(of("ggml.model"), of("ggml.pre"), path)
    texts: list[str] = of("ggml.tokens")
    merges = [tuple(merge.split(" ", 1)) for merge in of("ggml.merges")]
    bare = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(texts)}, merges=merges))
    bare.pre_tokenizer = _WORDS[of("ggml.pre")]()
    bare.decoder = decoders.ByteLevel()
    for text, kind in zip(texts, of("ggml.token_type"), strict=True):
        if kind in (CONTROL, USER_DEFINED):
            bare.add_special_tokens([AddedToken(text, special=kind == CONTROL, normalized=False)])
    named = {"bos_token": "bos", "eos_token": "eos", "unk_token": "unknown", "pad_token": "padding"}
    ids = {name: of(f"ggml.{key}_token_id") for name, key in named.items()}
    special = {name: texts[i] for name, i in ids.items() if i is not None}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bare, clean_up_tokenization_spaces=False, **special)
    tokenizer.chat_template = of("chat_template")
    return tokenizer


def _check(model: object, words: object, path: Path) -> None:
    if model == "gpt2" and words in _WORDS:
        return
    raise WeightsError(
        f"a tokenizer of the kind {model!r}, words cut as {words!r}, is not rebuilt from a GGUF here",
        where=str(path),
        hint="Name the checkpoint folder that the file was made from as base.checkpoint; it brings its own tokenizer.",
    )
