"""A Gemma 4 as its makers publish it, only small: a checkpoint folder with the true architecture (5 sliding layers to a
full one, keys that serve as values, a mixture of experts beside a dense MLP, soft-capped tied logits, a vision
tower), the true vocabulary of 262,144 and template, random weights.

The embedding is scaled so that logits can exceed 1: with the usual initialisation no training could get a model of
this width below a loss of about 11.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from gemma4_shape import RATIOS, restore_config, whole_config
from made_once import CACHE, one_at_a_time

TOKENIZER = "gemma4-tokenizer-v1"
CHECKPOINT = "gemma4-checkpoint-v1"

SHAPE: dict[str, Any] = RATIOS | {
    "vocab_size": 262144,
    "hidden_size": 96,
    "intermediate_size": 160,
    "sliding_window": 64,
    "moe_intermediate_size": 48,
}
EMBEDDING_SCALE = 25.0
# Names under which the tokenizer's own configuration keeps its markers; without them a converter takes `<|turn>` for
# an ordinary piece of text and splits it.
NAMED = {
    "image_token": "<|image|>",
    "boi_token": "<|image>",
    "eoi_token": "<image|>",
    "audio_token": "<|audio|>",
    "boa_token": "<|audio>",
    "eoa_token": "<audio|>",
    "sot_token": "<|turn>",
    "eot_token": "<turn|>",
    "soc_token": "<|channel>",
    "eoc_token": "<channel|>",
    "think_token": "<|think|>",
    "escape_token": '<|"|>',
    "str_token": "<|tool_response>",
    "etr_token": "<tool_response|>",
    "stc_token": "<|tool_call>",
    "etc_token": "<tool_call|>",
    "std_token": "<|tool>",
    "etd_token": "<tool|>",
}


@cache
def gemma4_checkpoint() -> Path:
    """The shared one (bfloat16, two shards), made once a clone in about a minute. Read it, never write to it."""
    return folder_once(CACHE / CHECKPOINT, write_gemma4_checkpoint)


@cache
def gemma4_tokenizer() -> Path:
    """Folder of the tokenizer, rebuilt from the vocabulary that comes with llama.cpp (about 40 s, once a clone)."""
    from quantize.llama_source import llama_cpp_source

    vocabulary = llama_cpp_source() / "models" / "ggml-vocab-gemma-4.gguf"
    return folder_once(CACHE / TOKENIZER, lambda part: _write_tokenizer(vocabulary, part))


def folder_once(target: Path, make: Callable[[Path], None]) -> Path:
    """`target`, made beside and moved into place."""
    with one_at_a_time(target):
        if not target.is_dir():
            part = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=target.parent))
            try:
                make(part)
                part.rename(target)
            finally:
                shutil.rmtree(part, ignore_errors=True)
    return target


def write_gemma4_checkpoint(folder: Path, *, seed: int = 0, shard: str = "48MB", **shape: Any) -> None:
    """A checkpoint of random weights in `folder`; `shape` changes entries of SHAPE, such as num_hidden_layers=2."""
    import torch
    from transformers import Gemma4ForConditionalGeneration, Gemma4TextConfig

    text = SHAPE | shape
    config = whole_config(Gemma4TextConfig(**text))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Gemma4ForConditionalGeneration(config)
        _vary(model)
    model.to(torch.bfloat16).save_pretrained(folder, max_shard_size=shard)
    restore_config(folder / "config.json", text)
    generation = {"bos_token_id": 2, "eos_token_id": [1, 106, 50], "pad_token_id": 0, "do_sample": True}
    generation |= {"temperature": 1.0, "top_k": 64, "top_p": 0.95}
    (folder / "generation_config.json").write_text(json.dumps(generation, indent=2))
    for file in gemma4_tokenizer().iterdir():
        (folder / file.name).hardlink_to(file)


def _vary(model: Any) -> None:
    """Away from the values that hide mistakes: all norms and scales 1, logits near 0."""
    import torch

    with torch.no_grad():
        model.get_input_embeddings().weight.mul_(EMBEDDING_SCALE)
        for name, parameter in model.model.language_model.named_parameters():
            if name.endswith(("norm.weight", "scale")) or "layernorm" in name:
                parameter.add_(torch.randn_like(parameter), alpha=0.1)
        for layer in model.model.language_model.layers:
            layer.layer_scalar.fill_(0.9)


def _write_tokenizer(vocabulary: Path, folder: Path) -> None:
    from gguf import GGUFReader
    from tokenizers import AddedToken
    from transformers import GemmaTokenizer

    fields = GGUFReader(vocabulary).fields
    texts: list[str] = fields["tokenizer.ggml.tokens"].contents()
    kinds: list[int] = fields["tokenizer.ggml.token_type"].contents()
    ids = {text: i for i, text in enumerate(texts)}
    merges = [_pair(merge, ids) for merge in fields["tokenizer.ggml.merges"].contents()]
    tokenizer = GemmaTokenizer(
        vocab=ids, merges=merges, add_bos_token=False, padding_side="left", extra_special_tokens=NAMED
    )
    marks = [t for t, k in zip(texts, kinds, strict=True) if k in (3, 4)]  # control and user-defined
    tokenizer.add_special_tokens(
        {"extra_special_tokens": [AddedToken(t, special=True, normalized=False) for t in marks if "video" in t]},
        replace_extra_special_tokens=False,
    )
    missing = set(marks) - {str(t) for t in tokenizer.added_tokens_decoder.values()}
    assert not missing, f"markers that the tokenizer would split: {missing}"
    tokenizer.chat_template = fields["tokenizer.chat_template"].contents()
    tokenizer.save_pretrained(folder)


def _pair(merge: str, ids: dict[str, int]) -> tuple[str, str]:
    """A merge is written as two pieces with a blank between, and pieces can hold blanks: the split is where both
    sides are pieces."""
    for at, letter in enumerate(merge):
        if letter == " " and at and merge[:at] in ids and merge[at + 1 :] in ids:
            return merge[:at], merge[at + 1 :]
    raise ValueError(f"no two pieces: {merge!r}")
