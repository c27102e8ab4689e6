"""What is written beside an adapter to know its base again."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from aipsy_judge.base_record import base_record
from aipsy_judge.errors import WeightsError

TEMPLATE = "{{ é }}"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def a_base(folder: Path, template: Any = None) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"model_type":  "gemma4"}')
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}))
    return folder


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    ("template", "wanted"),
    [
        (None, None),
        (TEMPLATE, sha256(TEMPLATE)),
        ([{"name": "tools", "template": "x"}, {"name": "default", "template": TEMPLATE}], sha256(TEMPLATE)),
    ],
    ids=["none", "in the settings", "the default of several"],
)
def test_settings_and_template_are_recorded_as_they_stand(tmp_path: Path, template: Any, wanted: str | None) -> None:
    found = base_record(a_base(tmp_path / "base", template))
    assert found.to_dict() == {
        "revision": None,
        "config_sha256": sha256('{"model_type":  "gemma4"}'),
        "template_sha256": wanted,
        "weights_sha256": sha256(f"{sha256('weights')}  model.safetensors\n"),
    }


def test_the_weights_are_those_that_the_index_names_each_by_its_own_hash(tmp_path: Path) -> None:
    folder = a_base(tmp_path / "base")
    one = base_record(folder).weights_sha256
    (folder / "consolidated.safetensors").write_bytes(b"not loaded")
    assert base_record(folder).weights_sha256 == one
    names = ["model-1.safetensors", "model-2.safetensors"]
    for name in names:
        (folder / name).write_bytes(name.encode())
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": dict(zip("ba", names, strict=True))})
    )
    assert base_record(folder).weights_sha256 == sha256("".join(f"{sha256(n)}  {n}\n" for n in names))


def test_a_base_without_weights_has_no_record(tmp_path: Path) -> None:
    folder = a_base(tmp_path / "base")
    (folder / "model.safetensors").unlink()
    with pytest.raises(WeightsError, match=r"model\.safetensors"):
        base_record(folder)


def test_a_template_in_a_file_of_its_own_goes_before_that_of_the_settings(tmp_path: Path) -> None:
    folder = a_base(tmp_path / "base", "another")
    (folder / "chat_template.jinja").write_bytes(TEMPLATE.encode())
    assert base_record(folder).template_sha256 == sha256(TEMPLATE)


def test_the_revision_is_the_one_named_else_the_dequantised_files_else_the_hubs_commit(tmp_path: Path) -> None:
    cached = a_base(tmp_path / "snapshots" / COMMIT)
    assert base_record(cached).revision == COMMIT
    (cached / "dequantised.json").write_text('{"source_sha256": "ab"}')
    assert base_record(cached).revision == "ab"
    assert base_record(cached, "v2").revision == "v2"
    assert base_record(a_base(tmp_path / "main")).revision is None
