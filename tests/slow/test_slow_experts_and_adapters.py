"""Experts in RAM and LoRA adapters, with real files through llama.cpp."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from noise_adapter import write_noise_adapter
from real_models import gemma4_tiny, smollm2

from aipsy_judge.backends.llamacpp import LlamaCpp, LlamaCppOptions
from aipsy_judge.contract import COMPACT
from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.errors import WeightsError
from aipsy_judge.gguf_header import read_gguf_header
from aipsy_judge.local_judge import LocalJudge
from aipsy_judge.rubric import load_rubric
from aipsy_judge.weights import Weights

pytestmark = pytest.mark.slow
OPTIONS = LlamaCppOptions(threads=1, extra_bufts=False)
TALK = Conversation(
    "c",
    (
        Message("user", "I failed the exam and cannot tell them at home."),
        Message("assistant", "That is a heavy thing to carry home. What would you like them to know?"),
        Message("user", "That I tried."),
        Message("assistant", "Cheer up, it is only an exam."),
    ),
)


def judged(model, options=OPTIONS, adapter=None):
    weights = Weights("m", model, adapter=adapter)
    with LocalJudge(LlamaCpp(model, options, adapter), weights, load_rubric(), COMPACT) as judge:
        return judge.lane, judge.settings, judge.score(TALK, rationale="never")


@cache
def plain(model):
    """As `judged` says without anything beside the model, once a file."""
    return judged(model)


def distributions(verdicts):
    return np.array(
        [p for v in verdicts for s in v.scores.values() if s.reading for p in (s.reading.distribution or {}).values()]
    )


@pytest.mark.parametrize("layers", [2, 6, 99])
def test_experts_kept_in_ram_give_the_same_figures_and_stand_in_the_settings(layers):
    _, _, usual = plain(gemma4_tiny())
    _, settings, kept = judged(gemma4_tiny(), replace(OPTIONS, cpu_moe=layers))
    assert settings["cpu_moe"] == layers
    assert distributions(usual).size > 50
    np.testing.assert_allclose(distributions(kept), distributions(usual), atol=1e-5)


def test_an_adapter_changes_the_values_and_the_judges_name(tmp_path):
    lane, _, usual = plain(smollm2())
    seen = []
    for seed in (0, 1):
        adapter = tmp_path / f"noise-{seed}.gguf"
        write_noise_adapter(smollm2(), adapter, 0.5, seed)
        other, settings, changed = judged(smollm2(), adapter=adapter)
        assert other.judge.startswith(f"{lane.judge}@")
        assert settings["adapter"] == adapter.name
        assert np.abs(distributions(changed) - distributions(usual)).max() > 0.05
        seen.append(other.judge)
    assert len(set(seen)) == 2


def test_an_adapter_next_to_nothing_changes_nothing(tmp_path):
    """One of zeros is refused: it is a judge that nobody trained."""
    adapter = tmp_path / "silent.gguf"
    write_noise_adapter(smollm2(), adapter, 1e-20)
    _, _, usual = plain(smollm2())
    _, _, silent = judged(smollm2(), adapter=adapter)
    np.testing.assert_allclose(distributions(silent), distributions(usual), atol=1e-5)


@pytest.mark.parametrize("kind", ["missing", "web page", "other architecture", "a model", "cut off"])
def test_an_unfit_adapter_is_refused_before_the_base_is_loaded(tmp_path, monkeypatch, kind):
    file = tmp_path / "adapter.gguf"
    if kind == "web page":
        file.write_text("<!doctype html><html>sign in to download</html>")
    elif kind == "other architecture":
        write_noise_adapter(smollm2(), file, 0.5)
        data = file.read_bytes()
        assert read_gguf_header(file).metadata["general.architecture"] == "llama"
        file.write_bytes(data.replace(b"llama", b"gemma", 1))
    elif kind == "a model":
        file = smollm2()
    elif kind == "cut off":
        write_noise_adapter(smollm2(), file, 0.5)
        file.write_bytes(file.read_bytes()[:-1000])
    monkeypatch.setattr("aipsy_judge.backends.llamacpp._load_model", lambda *_: pytest.fail("the base was loaded"))
    said = {
        "missing": "cannot be read",
        "web page": "web page",
        "other architecture": "for the architecture 'gemma'",
        "a model": "not a LoRA adapter",
        "cut off": "does not lie within the file",
    }[kind]
    with pytest.raises(WeightsError, match=said):
        LlamaCpp(smollm2(), OPTIONS, file)


def test_what_only_the_library_sees_is_an_error_in_its_words(tmp_path, monkeypatch):
    """As if half a pair of tensors had passed the first look."""
    from gguf import GGUFWriter

    file = tmp_path / "half.gguf"
    writer = GGUFWriter(file, "llama")
    writer.add_string("general.type", "adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", 8.0)
    writer.add_tensor("blk.0.attn_output.weight.lora_a", np.zeros((8, 576), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    monkeypatch.setattr("aipsy_judge.backends.llamacpp.check_adapter", lambda *_: None)
    with pytest.raises(WeightsError, match=r"cannot use this adapter with this base: .*missing one component"):
        LlamaCpp(smollm2(), OPTIONS, file)
