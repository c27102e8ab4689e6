"""An MLX folder is proven and becomes a judge as a GGUF file does, and what refuses on the way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from mlx_folders import needs_mlx
from small_folder import write_small_folder

from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.errors import InputError, WeightsError
from aipsy_judge.file_hash import file_sha256
from aipsy_judge.judge import JudgeOptions
from aipsy_judge.manifest import Base, read_manifest
from aipsy_judge.opening import open_judge
from quantize.assemble import assemble
from quantize.description import Description
from quantize.to_mlx import to_mlx
from quantize.verify import main as verify

pytestmark = needs_mlx
TALK = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
LENIENT = "kl_mean: {most: 0.02, why: for tests}\ntemplate_differs: {most: 0, why: for tests}\n"
FEW = ("--budget", "8")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIPSY_JUDGE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    """A folder of random weights and another with the same, a talk, and limits that such weights can meet."""
    write_small_folder(tmp_path / "small", max_position_embeddings=32768)
    write_small_folder(tmp_path / "same", max_position_embeddings=32768, transformers_version="5.24.0")
    (tmp_path / "talk.json").write_text(json.dumps({"id": "t", "messages": TALK}))
    (tmp_path / "limits.yaml").write_text(LENIENT)
    return tmp_path


def verify_it(parts: Path, *more: object) -> Result:
    words = ["--full", parts / "same", "--candidate", parts / "small", "--bare", parts / "same", "--floor", 0]
    words += ["--conversations", parts / "talk.json", "--contract", "compact", "--limits", parts / "limits.yaml"]
    return CliRunner().invoke(verify, [str(w) for w in (*words, "--out", parts / "verify.json", *FEW, *more)])


def described(parts: Path, **changes: Any) -> Description:
    told: dict[str, Any] = {
        "name": "small",
        "about": "a judge for tests",
        "model": str(parts / "small"),
        "base": Base(name="nobody/small", licence="Apache-2.0"),
        "licence": "Apache-2.0",
        "contract": "compact",
        "legal_mass_floor": 0.0,
    }
    return Description(**{**told, **changes})


def test_a_folder_that_passed_is_blessed_and_judges_from_its_own_folder(parts: Path) -> None:
    done = verify_it(parts)
    assert done.exit_code == 0, done.output
    told = described(parts, verify=str(parts / "verify.json"), golden=(str(parts / "talk.json"),))
    manifest = assemble(told, parts / "models", limits=parts / "limits.yaml")
    folder = parts / "models" / "small"
    assert manifest.blessed
    assert manifest == read_manifest(folder)
    assert manifest.is_folder
    assert manifest.model_sha256 == file_sha256(parts / "small")
    assert (manifest.quantisation, manifest.context_tokens) == ("F32", 32768)
    assert len(manifest.golden_turns) == 1
    assert "library_name: mlx" in (folder / "README.md").read_text()
    with open_judge(folder, options=JudgeOptions(threads=1)) as judge:
        (verdict,) = judge.score(Conversation("t", tuple(Message(m["role"], m["content"]) for m in TALK)))
    assert verdict.provenance["settings"]["backend"] == "mlx"


def test_another_folder_is_not_blessed_by_that_verify(parts: Path) -> None:
    assert verify_it(parts).exit_code == 0
    (parts / "small" / "generation_config.json").write_text('{"eos_token_id": [257]}')
    with pytest.raises(InputError, match="the verify is of other files"):
        assemble(described(parts, verify=str(parts / "verify.json")), parts / "models", limits=parts / "limits.yaml")


def test_an_adapter_beside_a_folder_is_refused_by_both_before_anything_is_watched(parts: Path) -> None:
    (parts / "adapter.gguf").write_bytes(b"GGUF")
    done = verify_it(parts, "--candidate-adapter", parts / "adapter.gguf")
    assert done.exit_code == 3
    assert "is not applied here" in done.output
    assert "free answers" not in done.output
    with pytest.raises(WeightsError, match="is not applied here"):
        assemble(described(parts, adapter=str(parts / "adapter.gguf")), parts / "models")


def test_what_an_earlier_judge_left_in_the_folder_is_an_error_not_a_part_of_this_one(parts: Path) -> None:
    left = parts / "models" / "small"
    left.mkdir(parents=True)
    (left / "model-00002-of-00002.safetensors").write_bytes(b"")
    with pytest.raises(InputError, match=r"model-00002-of-00002\.safetensors is there and not of this model"):
        assemble(described(parts), parts / "models")
    assert not (left / "config.json").exists()


def test_a_damaged_folder_is_told_before_the_full_weights_are_watched(parts: Path) -> None:
    write_small_folder(parts / "cut", max_position_embeddings=32768)
    weights = parts / "cut" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    done = verify_it(parts, "--candidate", parts / "cut")
    assert done.exit_code == 3
    assert "model.safetensors" in done.output
    assert "free answers" not in done.output


def test_a_folder_of_eight_bits_is_near_the_one_it_was_made_from_and_spells_alike(parts: Path) -> None:
    write_small_folder(parts / "full", hidden_size=64, intermediate_size=64, head_dim=32, max_position_embeddings=32768)
    to_mlx(parts / "full", parts / "eight")
    verify_it(parts, "--full", parts / "full", "--candidate", parts / "eight", "--bare", parts / "full")
    figures = json.loads((parts / "verify.json").read_text())["detail"]["figures"]
    tokens = {name: value for name, value in figures.items() if name.endswith(("_differs", "_differ", "_otherwise"))}
    tokens |= {name: figures[name] for name in ("texts_not_round_trip", "markers_split", "prompts_without_one_begin")}
    assert len(tokens) == 8
    assert set(tokens.values()) == {0.0}
    assert 0 < figures["kl_mean"] < 0.2  # random weights with logits far apart: eight bits of them are felt
    assert 0 < figures["expected_drift"] < 0.2
    manifest = assemble(described(parts, model=str(parts / "eight"), verify=None), parts / "models")
    assert (manifest.quantisation, manifest.blessed) == ("8 bit", False)
