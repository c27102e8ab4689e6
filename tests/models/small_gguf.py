"""A model of the llama architecture small enough to be made and loaded a hundred times in a test: random weights, a
vocabulary that spells every byte, a chat template. And LoRA adapters for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter, quants

EMBEDDING, LAYERS, HEADS, KV_HEADS, FF, CONTEXT = 32, 2, 2, 1, 64, 512
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
CONTROL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")


def byte_letters() -> list[str]:
    """The letter that byte-level BPE writes for each byte 0 to 255 (Radford et al. 2019: printable ones themselves)."""
    own = [*range(33, 127), *range(161, 173), *range(174, 256)]
    extra = iter(range(256, 512))
    return [chr(b if b in own else next(extra)) for b in range(256)]


def bpe_vocabulary() -> dict[str, Any]:
    words = ["th", "he", "an", "in", "er"]
    return {
        "model": "gpt2",
        "pre": "smollm",
        "tokens": [*CONTROL, *byte_letters(), *words],
        "types": [3] * len(CONTROL) + [1] * (256 + len(words)),
        "merges": [f"{w[0]} {w[1]}" for w in words],
        "ids": {"bos": 1, "eos": 2, "unknown": 0, "padding": 2},
    }


def spm_vocabulary() -> dict[str, Any]:
    letters = ["\u2581", *"abcdefghijklmnopqrstuvwxyz"]
    special = ["<unk>", "<s>", "</s>", *CONTROL[1:]]
    return {
        "model": "llama",
        "pre": "default",
        "tokens": [*special, *(f"<0x{b:02X}>" for b in range(256)), *letters],
        "types": [2, 3, 3, 3, 3] + [6] * 256 + [1] * len(letters),
        "scores": [0.0] * (5 + 256) + [-float(i) for i in range(len(letters))],
        "ids": {"bos": 1, "eos": 2, "unknown": 0},
    }


def write_small_gguf(
    target: Path,
    *,
    vocabulary: dict[str, Any] | None = None,
    numbers: dict[str, Any] | None = None,
    texts: dict[str, str] | None = None,
    template: str | None = TEMPLATE,
    tensors: dict[str, Any] | None = None,
    quantised: bool = False,
    arch: str = "llama",
    parts: int = 1,
) -> Path:
    """Write it. `numbers` (of the architecture), `texts` (any key) and `tensors` replace or add; None leaves out."""
    words = vocabulary or bpe_vocabulary()
    writer = GGUFWriter(target, arch)
    _add_vocabulary(writer, words)
    if template is not None:
        writer.add_chat_template(template)
    for key, text in (texts or {}).items():
        writer.add_string(key, text)
    if parts > 1:
        writer.add_uint16("split.count", parts)
    shape = {
        "block_count": LAYERS,
        "embedding_length": EMBEDDING,
        "context_length": CONTEXT,
        "feed_forward_length": FF,
        "attention.head_count": HEADS,
        "attention.head_count_kv": KV_HEADS,
        "attention.layer_norm_rms_epsilon": 1e-5,
        "rope.freq_base": 1e4,
    }
    for key, number in (shape | (numbers or {})).items():
        _add_number(writer, f"{arch}.{key}", number)
    for name, tensor in (_tensors(len(words["tokens"])) | (tensors or {})).items():
        if tensor is not None and quantised and tensor.ndim == 2:
            kind = GGMLQuantizationType.Q8_0
            writer.add_tensor(name, quants.quantize(tensor, kind), raw_dtype=kind)
        elif tensor is not None:
            writer.add_tensor(name, tensor)
    _close(writer)
    return target


def write_small_adapter(
    target: Path,
    *,
    names: tuple[str, ...] = ("blk.0.attn_q.weight",),
    rank: int = 4,
    alpha: float | None = 8.0,
    strength: float = 0.5,
    tensors: dict[str, Any] | None = None,
    arch: str = "llama",
    kind: str = "lora",
    quantised: bool = False,
) -> Path:
    """A LoRA adapter for square matrices of the small model; `tensors` replace or add, None leaves out. quantised: its
    rows, which must then be a multiple of 32 long, at 8 bits."""
    rng = np.random.default_rng(1)
    made: dict[str, Any] = {}
    for name in names:
        made[f"{name}.lora_a"] = rng.normal(0, EMBEDDING**-0.5, (rank, EMBEDDING)).astype(np.float32)
        made[f"{name}.lora_b"] = rng.normal(0, strength, (EMBEDDING, rank)).astype(np.float32)
    writer = GGUFWriter(target, arch)
    writer.add_string("general.type", "adapter")
    writer.add_string("adapter.type", kind)
    if alpha is not None:
        writer.add_float32("adapter.lora.alpha", alpha)
    for name, tensor in (made | (tensors or {})).items():
        if tensor is not None and quantised:
            eight_bits = GGMLQuantizationType.Q8_0
            writer.add_tensor(name, quants.quantize(tensor, eight_bits), raw_dtype=eight_bits)
        elif tensor is not None:
            writer.add_tensor(name, tensor)
    _close(writer)
    return target


def _add_vocabulary(writer: GGUFWriter, words: dict[str, Any]) -> None:
    writer.add_tokenizer_model(words["model"])
    writer.add_tokenizer_pre(words["pre"])
    if words["tokens"]:
        writer.add_token_list(words["tokens"])
    if words.get("types"):
        writer.add_token_types(words["types"])
    if words.get("scores"):
        writer.add_token_scores(words["scores"])
    if words.get("merges"):
        writer.add_token_merges(words["merges"])
    for name, token in words["ids"].items():
        writer.add_uint32(f"tokenizer.ggml.{name}_token_id", token)


def _add_number(writer: GGUFWriter, key: str, number: Any) -> None:
    if isinstance(number, bool):
        writer.add_bool(key, number)
    elif isinstance(number, float):
        writer.add_float32(key, number)
    elif isinstance(number, int):
        writer.add_uint32(key, number)
    elif isinstance(number, str):
        writer.add_string(key, number)
    elif number is not None:
        writer.add_array(key, number)


def _tensors(tokens: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)

    def matrix(rows: int, columns: int) -> Any:
        return rng.normal(0.0, columns**-0.5, (rows, columns)).astype(np.float32)

    ones = np.ones(EMBEDDING, np.float32)
    head = EMBEDDING // HEADS
    tensors = {"token_embd.weight": matrix(tokens, EMBEDDING), "output_norm.weight": ones}
    for layer in range(LAYERS):
        block = {
            "attn_norm.weight": ones,
            "attn_q.weight": matrix(EMBEDDING, EMBEDDING),
            "attn_k.weight": matrix(KV_HEADS * head, EMBEDDING),
            "attn_v.weight": matrix(KV_HEADS * head, EMBEDDING),
            "attn_output.weight": matrix(EMBEDDING, EMBEDDING),
            "ffn_norm.weight": ones,
            "ffn_gate.weight": matrix(FF, EMBEDDING),
            "ffn_up.weight": matrix(FF, EMBEDDING),
            "ffn_down.weight": matrix(EMBEDDING, FF),
        }
        tensors |= {f"blk.{layer}.{name}": tensor for name, tensor in block.items()}
    return tensors


def _close(writer: GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
