"""A folder of safetensors as weights: what refuses to open before anything is loaded, and what its judge is called."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from judge_manifests import manifest_data, verified, write_judge
from small_folder import CONFIG, TEMPLATE, write_small_folder

from aipsy_judge.errors import InputError, ManifestError, MissingExtraError, WeightsError
from aipsy_judge.file_hash import file_sha256
from aipsy_judge.judge import JudgeOptions
from aipsy_judge.model_folder import model_files, open_model_folder
from aipsy_judge.named_weights import name_weights
from aipsy_judge.open_backend import open_backend
from aipsy_judge.rope_settings import older_rope_keys
from aipsy_judge.weights import Weights, find_weights
from aipsy_judge.weights_check import verify_weights


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIPSY_JUDGE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_small_folder(tmp_path / "small")


def test_settings_template_and_ends_are_read(folder: Path) -> None:
    found = open_model_folder(folder)
    assert (found.context_tokens, found.chat_template) == (4096, TEMPLATE)
    assert found.end_tokens == {257, 259}
    assert sum(len(f.tensors) for f in found.files) == 20


def _pickled(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def _cut(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def _stray(folder: Path) -> None:
    (folder / "model-old.safetensors").write_bytes((folder / "model.safetensors").read_bytes())


def _with_config(**changes: object) -> object:
    return lambda folder: (folder / "config.json").write_text(json.dumps(CONFIG | changes))


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_pickled, "pytorch_model.bin is not read"),
        (_cut, "cut off or damaged"),
        (_stray, "model-old.safetensors"),
        (_with_config(model_file="evil.py"), "code of its own"),
        (_with_config(model_type=None), "model_type"),
        (_with_config(max_position_embeddings=None), "max_position_embeddings"),
        (lambda f: (f / "config.json").write_text("[1]"), "a JSON object"),
        (lambda f: (f / "tokenizer.json").unlink(), "tokenizer.json"),
        (lambda f: (f / "chat_template.jinja").write_text("{% for"), "cannot be parsed"),
        (lambda f: (f / "chat_template.jinja").write_bytes(b"\xff\xfe"), "UTF-8"),
    ],
)
def test_what_is_damaged_or_would_run_code_is_refused_before_loading(folder: Path, spoil: object, words: str) -> None:
    spoil(folder)  # type: ignore[operator]
    with pytest.raises(WeightsError, match=words) as caught:
        open_model_folder(folder)
    assert str(folder) in str(caught.value.where)


def test_a_folder_named_by_its_path_is_weights_of_unknown_origin(folder: Path) -> None:
    found = find_weights(folder)
    assert (found.name, found.model, found.blessed) == ("small", folder, None)
    assert "given as a folder" in found.remarks[0]
    assert found.size_bytes == sum(p.stat().st_size for p in model_files(folder))


def test_the_hash_of_a_folder_is_of_what_has_a_part_in_what_it_says(folder: Path) -> None:
    by_hand = "".join(
        f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n"
        for name in (
            "chat_template.jinja",
            "config.json",
            "generation_config.json",
            "model.safetensors",
            "tokenizer.json",
            "tokenizer_config.json",
        )
    )
    before = file_sha256(folder)
    assert before == hashlib.sha256(by_hand.encode()).hexdigest()
    (folder / "README.md").write_text("about")
    assert file_sha256(folder) == before
    (folder / "chat_template.jinja").write_text(TEMPLATE + " ")
    changed = file_sha256(folder)
    assert changed != before
    (folder / "hf_quant_config.json").write_text("{}")  # mlx-lm reads how weights are packed from it
    assert file_sha256(folder) != changed


@pytest.fixture
def judge(folder: Path) -> Path:
    rows = [
        {
            "role": "model" if path.name == "config.json" else "part",
            "name": path.name,
            "bytes": path.stat().st_size,
            "sha256": file_sha256(path),
        }
        for path in model_files(folder)
    ]
    template = hashlib.sha256(TEMPLATE.encode()).hexdigest()
    write_judge(folder, manifest_data(files=rows, verify=verified(file_sha256(folder)), template_sha256=template))
    return folder


def test_a_folder_with_a_manifest_is_that_judge_and_its_model_the_whole_folder(judge: Path) -> None:
    found = find_weights(judge)
    assert (found.name, found.model, found.blessed, found.context_tokens) == ("tried", judge, True, 8192)
    assert all(f.ok for f in verify_weights(name_weights(str(judge))))


def _altered(folder: Path) -> None:
    text = (folder / "tokenizer_config.json").read_text()
    (folder / "tokenizer_config.json").write_text(text.replace("<|e|>", "<|s|>"))


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_altered, "another sha256"),
        (lambda f: (f / "generation_config.json").unlink(), "is not in"),
        (_stray, "not in the judge's manifest"),
    ],
)
def test_a_judge_with_a_file_changed_missing_or_more_is_refused(judge: Path, spoil: object, words: str) -> None:
    spoil(judge)  # type: ignore[operator]
    with pytest.raises(ManifestError, match=words):
        find_weights(judge)


def test_a_blessing_is_of_the_whole_folder(judge: Path, folder: Path) -> None:
    rows = [{"role": "model", "name": "config.json", "bytes": 1, "sha256": "0" * 64}]
    write_judge(folder, manifest_data(files=rows, verify=verified("0" * 64)))
    with pytest.raises(ManifestError, match="of other files than these"):
        find_weights(folder)


@pytest.mark.parametrize(
    "files",
    [
        [{"role": "model", "name": "a.gguf"}, {"role": "part", "name": "tokenizer.json"}],
        [{"role": "model", "name": "config.json"}, {"role": "adapter", "name": "a.gguf"}],
    ],
)
def test_parts_belong_to_a_folder_and_adapters_to_a_file(tmp_path: Path, files: list[dict[str, object]]) -> None:
    write_judge(tmp_path, manifest_data(files=[{**f, "bytes": 1, "sha256": "0" * 64} for f in files]))
    with pytest.raises(ManifestError, match="folder"):
        find_weights(tmp_path)


@pytest.mark.parametrize("wanted", ["mlx", "llamacpp"])
def test_a_backend_that_cannot_read_the_weights_is_an_error_that_names_the_other(tmp_path: Path, wanted: str) -> None:
    path = tmp_path / "m.gguf" if wanted == "mlx" else write_small_folder(tmp_path / "f")
    with pytest.raises(InputError, match=wanted) as caught:
        open_backend(Weights("m", path), JudgeOptions(backend=wanted))  # type: ignore[arg-type]
    assert "--backend" in str(caught.value.hint)


def test_a_folder_without_mlx_says_how_to_get_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "mlx.core", None)
    with pytest.raises(MissingExtraError, match="mlx-lm"):
        open_backend(find_weights(folder), JudgeOptions())


def test_an_adapter_on_a_folder_is_refused_not_left_out(folder: Path) -> None:
    with pytest.raises(WeightsError, match="adapter"):
        open_backend(Weights("m", folder, adapter=folder / "a.gguf"), JudgeOptions())


@pytest.mark.parametrize(
    ("config", "added"),
    [
        ({"rope_theta": 7.0, "rope_parameters": {"rope_theta": 9.0, "rope_type": "default"}}, {}),
        ({"rope_parameters": {"full_attention": {"rope_theta": 9.0}}}, {}),
        (
            {"rope_parameters": {"rope_theta": 9.0, "rope_type": "linear", "factor": 2.0}},
            {"rope_theta": 9.0, "rope_scaling": {"rope_theta": 9.0, "rope_type": "linear", "factor": 2.0}},
        ),
        (
            {"text_config": {"a": 1, "rope_parameters": {"rope_theta": 9.0}}},
            {"text_config": {"a": 1, "rope_parameters": {"rope_theta": 9.0}, "rope_theta": 9.0}},
        ),
        ({"text_config": {"rope_theta": 1.0}}, {}),
    ],
)
def test_rotary_settings_are_added_where_only_the_newer_name_has_them(config: dict, added: dict) -> None:
    assert older_rope_keys(config) == added
