"""Text to tokens by the tokenizer.json of a model's folder, through the library that wrote it, without transformers.

The ids must be those that llama.cpp gives over the same vocabulary, and those of training: the tests hold them against
each other.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from ..errors import WeightsError
from ..model_folder import TOKENIZER, ModelFolder
from ..token_bytes import decoder_of, token_bytes, writing_of

_NAMED = ("bos_token", "eos_token")


class FolderTokens:
    """See backends.protocol.Tokens. `size`: how many logits the model gives; ids past the tokenizer's own stand for
    nothing."""

    def __init__(self, folder: ModelFolder, size: int) -> None:
        from tokenizers import Tokenizer

        self._path = folder.path / TOKENIZER
        try:
            self._tokenizer: Any = Tokenizer.from_file(str(self._path))
        except Exception as error:  # the library raises Exception itself
            raise WeightsError(f"the tokenizer cannot be read: {error}", where=str(self._path)) from error
        # what was set for training has no business here
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._added = {int(i): (t.content, t.special) for i, t in self._tokenizer.get_added_tokens_decoder().items()}
        self._folder, self._size = folder, size
        self._one_at_a_time = threading.Lock()  # how a text is cut is a setting of the whole tokenizer
        self.name = folder.path.name

    @cached_property
    def vocabulary(self) -> Sequence[bytes]:
        writing = writing_of(decoder_of(self._tokenizer), str(self._path))
        pieces = [b""] * self._size
        for text, token in self._tokenizer.get_vocab(with_added_tokens=True).items():
            if token >= self._size:
                raise WeightsError(
                    f"the tokenizer knows token {token}, the model has {self._size}",
                    where=str(self._path),
                    hint="Tokenizer and weights are of different models.",
                )
            added, special = self._added.get(token, ("", False))
            pieces[token] = b"" if special else added.encode() or token_bytes(text, writing)
        return pieces

    @cached_property
    def marker_texts(self) -> tuple[str, ...]:
        """Control tokens, and other added ones that look like markers, as backends/llamacpp.py names them."""
        return tuple(t for _, (t, special) in sorted(self._added.items()) if len(t) > 2 and (special or "|" in t))

    @property
    def chat_template(self) -> str | None:
        return self._folder.chat_template

    @cached_property
    def special_tokens(self) -> Mapping[str, str]:
        return {name: _text(self._folder.tokenizer_config.get(name)) for name in _NAMED}

    @cached_property
    def begin_token(self) -> int | None:
        """The BOS id, where the tokenizer puts one before a text by itself."""
        bos = self._tokenizer.token_to_id(self.special_tokens["bos_token"])
        ids = self._tokenizer.encode("a").ids
        return bos if bos is not None and ids and ids[0] == bos else None

    @cached_property
    def end_tokens(self) -> frozenset[int]:
        own = self._tokenizer.token_to_id(self.special_tokens["eos_token"])
        ends = self._folder.end_tokens | ({own} if own is not None else frozenset())
        strange = sorted(t for t in ends if not 0 <= t < self._size)
        if strange:
            raise WeightsError(
                f"token {strange[0]} is said to end an answer, the model has {self._size}",
                where=str(self._folder.path),
                hint="Settings and weights are of different models.",
            )
        return ends

    def tokenize(self, text: str, *, special: bool) -> list[int]:
        with self._one_at_a_time:
            # Where control tokens are not wanted, one that stands in a text is cut like any other text.
            self._tokenizer.encode_special_tokens = not special
            return list(self._tokenizer.encode(text, add_special_tokens=False).ids)


def _text(named: Any) -> str:
    """A token as it is named in settings: its text, or an object that holds it."""
    if isinstance(named, Mapping):
        named = named.get("content")
    return named if isinstance(named, str) else ""
