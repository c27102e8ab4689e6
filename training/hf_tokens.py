"""The token part of a backend over a transformers tokenizer, so that the engine's own `encode` writes the prompts.

What a judge is trained on must be by token ids what it is asked with, and it is asked through llama.cpp or MLX: the
tests hold this against llama.cpp's tokenizer on the same vocabulary.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from aipsy_judge.errors import WeightsError
from aipsy_judge.token_bytes import decoder_of, token_bytes, writing_of

from .base_folder import checkpoint_folder
from .recipe import Base

_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "tokenizer.model",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.jinja",
    "chat_template.json",
    "generation_config.json",
)


class HFTokens:
    """See backends.protocol.TokenBackend; `evaluate` and what belongs to it is another module's."""

    def __init__(self, tokenizer: Any, name: str, ends: Collection[int] = ()) -> None:
        """`ends`: ids that end a generation beside the tokenizer's own, from generation_config.json."""
        self.tokenizer = tokenizer
        self.name = name
        self._ends = frozenset(ends)

    @cached_property
    def vocabulary(self) -> Sequence[bytes]:
        """The bytes each token id stands for (b"" for control tokens and unused ids)."""
        added = self.tokenizer.added_tokens_decoder
        texts = self.tokenizer.convert_ids_to_tokens(range(len(self.tokenizer)))
        writing = writing_of(decoder_of(self.tokenizer.backend_tokenizer), self.name)
        pieces: list[bytes] = []
        for token, text in enumerate(texts):
            if token in added:
                pieces.append(b"" if added[token].special else str(added[token]).encode())
            else:
                pieces.append(token_bytes(text, writing) if text is not None else b"")
        return pieces

    @cached_property
    def marker_texts(self) -> tuple[str, ...]:
        """Control tokens, and other added ones that look like markers, as backends/llamacpp.py names them."""
        added = self.tokenizer.added_tokens_decoder.values()
        return tuple(str(t) for t in added if len(str(t)) > 2 and (t.special or "|" in str(t)))

    @property
    def chat_template(self) -> str | None:
        template = self.tokenizer.chat_template
        return template.get("default") if isinstance(template, dict) else template

    @cached_property
    def special_tokens(self) -> Mapping[str, str]:
        named = ("bos_token", "eos_token")
        return {name: str(getattr(self.tokenizer, name) or "") for name in named}

    @cached_property
    def begin_token(self) -> int | None:
        """The BOS id, where the tokenizer puts one before a text by itself."""
        ids: list[int] = self.tokenizer("a").input_ids
        bos: int | None = self.tokenizer.bos_token_id
        return bos if bos is not None and ids[0] == bos else None

    @cached_property
    def end_tokens(self) -> frozenset[int]:
        own = self.tokenizer.eos_token_id
        return self._ends | ({own} if own is not None else frozenset())

    def tokenize(self, text: str, *, special: bool) -> list[int]:
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False, split_special_tokens=not special)
        return ids


def base_tokens(base: Base) -> HFTokens:
    """The tokenizer of a recipe's base, without its weights. Raises WeightsError or InputError."""
    if base.gguf is not None:
        from .dequantised import gguf_path
        from .gguf_tokenizer import tokenizer_from_gguf

        path = gguf_path(base.gguf)
        return HFTokens(tokenizer_from_gguf(path), path.name)
    return folder_tokens(checkpoint_folder(base))


def tokenizer_files(base: Base) -> dict[str, Path]:
    """label -> every file that the base's tokenizer and template are read from."""
    if base.gguf is not None:
        from .dequantised import gguf_path

        return {"base.gguf": gguf_path(base.gguf)}
    found = [p for name in _FILES if (p := checkpoint_folder(base) / name).is_file()]
    return {f"base/{p.name}": p for p in found}


def folder_tokens(folder: Path) -> HFTokens:
    """The tokenizer of a checkpoint folder. Raises WeightsError."""
    from transformers import AutoTokenizer, GenerationConfig

    if not (folder / "tokenizer_config.json").is_file():
        raise WeightsError(
            "no tokenizer here",
            where=str(folder),
            hint="A checkpoint folder has config.json, *.safetensors, tokenizer.json and tokenizer_config.json.",
        )
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        ends: Any = None
        if (folder / "generation_config.json").is_file():
            ends = GenerationConfig.from_pretrained(folder, local_files_only=True).eos_token_id
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise WeightsError(f"the tokenizer cannot be read: {error}", where=str(folder)) from error
    return HFTokens(tokenizer, folder.name, [] if ends is None else [ends] if isinstance(ends, int) else ends)
