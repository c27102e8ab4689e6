"""The tiny Gemma 4 that training is tried on is like the published one where code can go wrong."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from gemma4_checkpoint import gemma4_checkpoint
from real_models import gemma4_tiny

from aipsy_judge.backends.llamacpp import LlamaCpp, LlamaCppOptions

pytestmark = pytest.mark.slow


def varied_texts(count: int = 200, seed: int = 3) -> list[str]:
    """Words, numbers, blanks in runs, line ends, other scripts, emoji, bytes that are no letters, code, JSON."""
    rng = random.Random(seed)
    parts = [
        "I", " feel", " nothing", "don't", "  ", "   ", "\t", "\n", "\n\n\n", "\r\n", "3.14", "2026-11-30", "N/A",
        "NA", '{"empathy": 4, "crisis": "no"}', "<td>", "</td>", "…", "—", "é", "e\u0301", "日本語", "한국어",
        "русский", "\u05e2\u05d1", "🙂", "\U0001f469\u200d\U0001f467", "\u200b", "\x00", "\ufeff", "a" * 40, "_",
        "▁", "empathy:", "\u00a0", "ﬁ", "𝒳", "C++", "<|", "|>",
    ]  # fmt: skip
    return ["", " ", *parts, *("".join(rng.choices(parts, k=rng.randint(2, 12))) for _ in range(count))]


def test_the_rebuilt_tokenizer_gives_the_ids_of_llama_cpp(gemma_tokenizer):
    with_llama = LlamaCpp(gemma4_tiny(), LlamaCppOptions(threads=1, extra_bufts=False))
    try:
        for text in varied_texts():
            ids = gemma_tokenizer(text, add_special_tokens=False)["input_ids"]
            assert ids == with_llama.tokenize(text, special=True), repr(text)
    finally:
        with_llama.close()


def test_its_markers_are_single_tokens_and_the_template_is_the_large_familys(gemma_tokenizer):
    marks = {"<bos>": 2, "<|turn>": 105, "<turn|>": 106, "<|channel>": 100, "<|think|>": 98, "<|tool_response>": 50}
    assert {m: gemma_tokenizer(m, add_special_tokens=False)["input_ids"] for m in marks} == {
        m: [i] for m, i in marks.items()
    }
    prompt = gemma_tokenizer.apply_chat_template(
        [{"role": "user", "content": "hi"}], add_generation_prompt=True, enable_thinking=False, tokenize=False
    )
    assert prompt == "<bos><|turn>user\nhi<turn|>\n<|turn>model\n<|channel>thought\n<channel|>"


def test_its_folder_has_the_published_keys_and_two_shards():
    folder = gemma4_checkpoint()
    text = json.loads((folder / "config.json").read_text())["text_config"]
    assert (text["global_head_dim"], text["num_global_key_value_heads"]) == (64, 1)
    assert "per_layer_config" not in text
    assert len(list(folder.glob("*.safetensors"))) == 2
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    names = set(index["weight_map"])
    assert "model.language_model.layers.5.experts.gate_up_proj" in names
    assert "model.language_model.layers.5.self_attn.v_proj.weight" not in names  # keys serve as values there
    assert any("vision_tower" in n for n in names)
    assert json.loads(Path(folder / "generation_config.json").read_text())["eos_token_id"] == [1, 106, 50]
