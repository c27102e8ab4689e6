"""The half of a TokenBackend that concerns tokens, of a backend whose tokenizer is a thing of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .protocol import Tokens


class TokenHalf:
    """See backends.protocol.Tokens. Everything is handed on to `_tokens`, which the backend sets."""

    _tokens: Tokens

    @property
    def vocabulary(self) -> Sequence[bytes]:
        return self._tokens.vocabulary

    @property
    def marker_texts(self) -> tuple[str, ...]:
        return self._tokens.marker_texts

    @property
    def chat_template(self) -> str | None:
        return self._tokens.chat_template

    @property
    def special_tokens(self) -> Mapping[str, str]:
        return self._tokens.special_tokens

    @property
    def end_tokens(self) -> frozenset[int]:
        return self._tokens.end_tokens

    @property
    def begin_token(self) -> int | None:
        return self._tokens.begin_token

    def tokenize(self, text: str, *, special: bool) -> list[int]:
        return self._tokens.tokenize(text, special=special)
