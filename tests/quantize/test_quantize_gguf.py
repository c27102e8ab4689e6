"""What a converted file must have kept, and what is refused before a converter is started."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from small_checkpoints import IN, OUT, Q0, base_tensors, pair, write_adapter, write_base
from small_gguf import CONTROL, TEMPLATE, bpe_vocabulary, write_small_gguf

import quantize.converter
import quantize.disk_space
import quantize.gguf_checks
from aipsy_judge.errors import BackendError, CapacityError, InputError, WeightsError
from aipsy_judge.gguf_header import read_gguf_header
from quantize.converter import run_converter
from quantize.gguf_checks import check_converted, check_finite, end_tokens
from quantize.lora_gguf import lora_gguf
from quantize.to_gguf import TYPES, main, to_gguf

ARCHITECTURE = {"architectures": ["LlamaForCausalLM"]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What the small GGUF could have been made from, without its weights."""
    made = tmp_path / "model"
    made.mkdir()
    tokens = [{"id": i, "content": text, "special": True} for i, text in enumerate(CONTROL)]
    (made / "tokenizer.json").write_text(json.dumps({"added_tokens": tokens}))
    (made / "chat_template.jinja").write_text(TEMPLATE)
    (made / "config.json").write_text('{"eos_token_id": 0}')
    (made / "generation_config.json").write_text('{"eos_token_id": [2, 0]}')
    return made


def words(**types: int) -> dict[str, Any]:
    """The vocabulary with other types for the tokens of these names (im_start, im_end)."""
    made = bpe_vocabulary()
    for name, kind in types.items():
        made["types"][CONTROL.index(f"<|{name}|>")] = kind
    return made


def test_a_file_that_kept_everything_passes(folder: Path, tmp_path: Path) -> None:
    file = write_small_gguf(tmp_path / "good.gguf")
    assert check_converted(file, folder).metadata["tokenizer.chat_template"] == TEMPLATE


def test_another_template_or_none_is_an_error(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="another in"):
        check_converted(write_small_gguf(tmp_path / "a.gguf", template=TEMPLATE + "\n"), folder)
    with pytest.raises(WeightsError, match="missing from"):
        check_converted(write_small_gguf(tmp_path / "b.gguf", template=None), folder)


@pytest.mark.parametrize("told", ["by the tokenizer", "by the template alone"])
def test_a_marker_that_became_ordinary_text_is_an_error(folder: Path, tmp_path: Path, told: str) -> None:
    if told == "by the template alone":  # a tokenizer that lost its markers does not know them as special either
        (folder / "tokenizer.json").write_text('{"added_tokens": []}')
    file = write_small_gguf(tmp_path / "split.gguf", vocabulary=words(im_start=1))
    with pytest.raises(WeightsError, match=r"<\|im_start\|>.*ordinary text"):
        check_converted(file, folder)


def test_a_marker_at_another_id_is_an_error(folder: Path, tmp_path: Path) -> None:
    tokens = [{"id": 7, "content": "<|im_end|>", "special": True}]
    (folder / "tokenizer.json").write_text(json.dumps({"added_tokens": tokens}))
    with pytest.raises(WeightsError, match="has the id 2, not 7"):
        check_converted(write_small_gguf(tmp_path / "moved.gguf"), folder)


def test_another_end_token_is_an_error(folder: Path, tmp_path: Path) -> None:
    made = bpe_vocabulary()
    made["ids"]["eos"] = 1
    with pytest.raises(WeightsError, match=r"token 1; the model with \[2, 0\]"):
        check_converted(write_small_gguf(tmp_path / "eos.gguf", vocabulary=made), folder)


def test_an_end_token_that_the_library_would_run_past_is_an_error(folder: Path, tmp_path: Path) -> None:
    (folder / "generation_config.json").write_text('{"eos_token_id": [2, 50]}')
    with pytest.raises(WeightsError, match=r"\[50\] for the end"):
        check_converted(write_small_gguf(tmp_path / "eog.gguf"), folder)


def test_the_converted_vocabulary_is_loaded_once_however_many_tokens_end_a_reply(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads: list[Path] = []

    def counted(file: Path, ids: Iterable[int]) -> set[int]:
        loads.append(file)
        return set(ids)

    monkeypatch.setattr(quantize.gguf_checks, "_ends_of_generation", counted)
    (folder / "generation_config.json").write_text('{"eos_token_id": [2, 0, 50]}')
    check_converted(write_small_gguf(tmp_path / "good.gguf"), folder)
    assert len(loads) == 1


def test_end_tokens_come_from_generation_settings_first(folder: Path) -> None:
    assert end_tokens(folder) == (2, 0)
    (folder / "generation_config.json").unlink()
    assert end_tokens(folder) == (0,)
    (folder / "config.json").write_text('{"text_config": {"eos_token_id": 5}}')
    assert end_tokens(folder) == (5,)
    (folder / "config.json").write_text("{}")
    with pytest.raises(WeightsError, match="names the end token"):
        end_tokens(folder)


def test_a_value_that_became_infinite_at_16_bits_is_an_error(tmp_path: Path) -> None:
    shape = read_gguf_header(write_small_gguf(tmp_path / "good.gguf")).shapes()["blk.0.ffn_up.weight"]
    values = np.ones(shape[::-1], dtype=np.float16)
    file = write_small_gguf(tmp_path / "whole.gguf", tensors={"blk.0.ffn_up.weight": values})
    check_finite(file, read_gguf_header(file))
    values[-1, -1] = np.inf
    file = write_small_gguf(tmp_path / "infinite.gguf", tensors={"blk.0.ffn_up.weight": values})
    with pytest.raises(WeightsError, match=r"blk\.0\.ffn_up\.weight"):
        check_finite(file, read_gguf_header(file))


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json"])
def test_a_folder_that_brings_code_is_refused(tmp_path: Path, name: str) -> None:
    base = write_base(tmp_path / "base", **ARCHITECTURE)
    data = json.loads((base / name).read_text()) if (base / name).exists() else {}
    (base / name).write_text(json.dumps(data | {"auto_map": {"AutoConfig": "modeling.Config"}}))
    with pytest.raises(WeightsError, match="code of its own"):
        to_gguf(base, tmp_path / "out.gguf")


@pytest.mark.parametrize("config", [{}, {"architectures": None}, {"architectures": [], "text_config": {}}])
def test_a_folder_that_names_no_architecture_is_told_so(tmp_path: Path, config: dict[str, Any]) -> None:
    base = write_base(tmp_path / "base", **config)
    with pytest.raises(WeightsError, match="names no architecture") as caught:
        to_gguf(base, tmp_path / "out.gguf")
    assert "as published" in str(caught.value.hint)
    adapter = write_adapter(tmp_path / "adapter", base, {Q0: pair(OUT, IN)})
    with pytest.raises(WeightsError, match="names no architecture"):
        lora_gguf(adapter, base, tmp_path / "adapter.gguf")


def test_weights_that_are_quantised_already_are_refused(tmp_path: Path) -> None:
    mlx = write_base(tmp_path / "mlx", **ARCHITECTURE, quantization={"bits": 4, "group_size": 64})
    with pytest.raises(WeightsError, match="quantised"):
        to_gguf(mlx, tmp_path / "out.gguf")
    packed = write_base(
        tmp_path / "packed", base_tensors() | {"x.weight": torch.zeros(4, 4, dtype=torch.uint8)}, **ARCHITECTURE
    )
    with pytest.raises(WeightsError, match="stored as U8"):
        to_gguf(packed, tmp_path / "out.gguf")


def test_no_file_is_overwritten_and_no_disk_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = write_base(tmp_path / "base", **ARCHITECTURE)
    (tmp_path / "out.gguf").write_text("mine")
    with pytest.raises(InputError, match="already"):
        to_gguf(base, tmp_path / "out.gguf")
    assert (tmp_path / "out.gguf").read_text() == "mine"
    with pytest.raises(InputError, match="folder does not exist"):
        to_gguf(base, tmp_path / "nowhere" / "out.gguf")
    usage = shutil._ntuple_diskusage(10**9, 10**9, 0)  # type: ignore[attr-defined]
    monkeypatch.setattr(quantize.disk_space.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(CapacityError, match="are free"):
        to_gguf(base, tmp_path / "new.gguf")


def converter_that(monkeypatch: pytest.MonkeyPatch, folder: Path, does: str) -> None:
    """A converter of our own in the place of llama.cpp's."""
    folder.mkdir()
    (folder / "convert_hf_to_gguf.py").write_text(does)
    monkeypatch.setattr(quantize.converter, "llama_cpp_source", lambda: folder)


def test_a_failing_converter_is_one_error_with_its_last_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = write_base(tmp_path / "base", **ARCHITECTURE)
    does = "import sys\nopen(sys.argv[5], 'w').write('half')\nraise ValueError('Can not map tensor X')"
    converter_that(monkeypatch, tmp_path / "source", does)
    with pytest.raises(BackendError, match="Can not map tensor X") as caught:
        to_gguf(base, tmp_path / "out.gguf")
    assert "by hand" in str(caught.value.hint)
    assert not list(tmp_path.glob("*out.gguf*")), "something was left behind"


def test_a_converter_is_run_without_the_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    converter_that(monkeypatch, tmp_path / "source", "import os\nopen('env', 'w').write(repr(dict(os.environ)))")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_LOCAL_GGUF", "1")
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    run_converter("convert_hf_to_gguf.py", [])
    seen = (tmp_path / "env").read_text()
    assert "'HF_HUB_OFFLINE': '1'" in seen
    assert "'TRANSFORMERS_OFFLINE': '1'" in seen
    assert "NO_LOCAL_GGUF" not in seen


def test_a_result_that_is_no_model_does_not_get_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = write_base(tmp_path / "base", **ARCHITECTURE)
    converter_that(monkeypatch, tmp_path / "source", "import sys\nopen(sys.argv[5], 'wb').write(b'GGUF' + bytes(60))")
    with pytest.raises(WeightsError):
        to_gguf(base, tmp_path / "out.gguf")
    assert not list(tmp_path.glob("*out.gguf*"))


def test_the_program_knows_the_types_in_either_case(tmp_path: Path) -> None:
    assert {"Q8_0", "F16", "F32", "Q6_K", "Q4_K_M", "Q2_K"} <= set(TYPES)
    done = CliRunner().invoke(main, [str(tmp_path / "none"), "--out", str(tmp_path / "x.gguf"), "--type", "q4_k_m"])
    assert done.exit_code == 3
    assert "no such folder" in done.output


def test_a_folder_without_a_tokenizer_is_told_so_before_anything_is_written(tmp_path: Path) -> None:
    base = write_base(tmp_path / "base", **ARCHITECTURE)
    (base / "tokenizer.json").unlink()
    with pytest.raises(WeightsError, match="holds no tokenizer"):
        to_gguf(base, tmp_path / "out.gguf")


def test_an_adapter_that_changes_nothing_becomes_no_file(tmp_path: Path) -> None:
    base = write_base(tmp_path / "base", **ARCHITECTURE)
    a, b = pair(OUT, IN)
    adapter = write_adapter(tmp_path / "adapter", base, {Q0: (a, 0 * b)})
    with pytest.raises(WeightsError, match="changes nothing"):
        lora_gguf(adapter, base, tmp_path / "adapter.gguf")
    assert not (tmp_path / "adapter.gguf").exists()


@pytest.mark.parametrize("told", ["a", [], [1, "b"], {"id": 1}])
def test_an_end_token_that_is_no_id_is_told_before_converting(tmp_path: Path, told: object) -> None:
    base = write_base(tmp_path / "base", **ARCHITECTURE)
    (base / "generation_config.json").write_text(json.dumps({"eos_token_id": told}))
    with pytest.raises(WeightsError, match="eos_token_id is"):
        to_gguf(base, tmp_path / "out.gguf")
