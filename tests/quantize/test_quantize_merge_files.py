"""Merging as a piece of work: whose base it is, what a stopped merge left, what is there before and after."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from small_checkpoints import IN, OUT, Q0, TARGETS, all_matrices, base_tensors, pair, write_adapter, write_base

import quantize.disk_space
import quantize.merge_shard
from aipsy_judge.errors import CapacityError, InputError, WeightsError
from quantize.checkpoint import open_checkpoint
from quantize.lora import open_adapter
from quantize.merge import main, merge
from quantize.merge_state import alone, merge_key


def test_a_dequantised_base_is_recorded_as_such(tmp_path: Path, base: Path) -> None:
    origin = {"source_sha256": "ab" * 32, "source_type": "Q4_1"}
    (base / "dequantised.json").write_text(json.dumps(origin))
    adapter = write_adapter(tmp_path / "adapter", base, {Q0: pair(OUT, IN)})
    merge(base, adapter, tmp_path / "out")
    record = json.loads((tmp_path / "out" / "merged.json").read_text())
    assert record["base"]["dequantised"] == origin
    assert record["base"]["revision"] == "ab" * 32


@pytest.mark.parametrize("what", ["config.json", "chat_template.jinja", "dequantised.json", "base.json"])
def test_another_base_than_the_adapters_is_an_error_unless_said_so(tmp_path: Path, base: Path, what: str) -> None:
    (base / "dequantised.json").write_text('{"source_sha256": "1"}')
    adapter = write_adapter(tmp_path / "adapter", base, {Q0: pair(OUT, IN)})
    if what == "base.json":
        (adapter / what).unlink()
    elif what == "dequantised.json":
        (base / what).write_text('{"source_sha256": "2"}')
    else:
        (base / what).write_bytes((base / what).read_bytes() + b" ")
    with pytest.raises(WeightsError, match="not the base"):
        merge(base, adapter, tmp_path / "out")
    record = merge(base, adapter, tmp_path / "out", any_base=True)
    assert len(record["unlike_the_adapters_base"]) == 1


def test_a_base_with_other_weights_under_the_same_config_is_another_base(tmp_path: Path, base: Path) -> None:
    adapter = write_adapter(tmp_path / "adapter", base, {Q0: pair(OUT, IN)})
    other = write_base(tmp_path / "other", {name: t + 1 for name, t in base_tensors().items()})
    with pytest.raises(WeightsError, match=r"weights_sha256 is .*; the adapter was trained on"):
        merge(other, adapter, tmp_path / "out")
    record = merge(other, adapter, tmp_path / "out", any_base=True)
    assert [d.split()[0] for d in record["unlike_the_adapters_base"]] == ["weights_sha256"]


def test_a_record_made_before_weights_were_recorded_is_accepted_with_a_note(tmp_path: Path, base: Path) -> None:
    adapter = write_adapter(tmp_path / "adapter", base, {Q0: pair(OUT, IN)})
    told: list[str] = []
    merge(base, adapter, tmp_path / "one", tell=told.append)
    assert not any("note" in line for line in told)
    record = json.loads((adapter / "base.json").read_text())
    del record["weights_sha256"]
    (adapter / "base.json").write_text(json.dumps(record))
    assert merge(base, adapter, tmp_path / "two", tell=told.append)["unlike_the_adapters_base"] == []
    assert sum("says nothing of the base's weights" in line for line in told) == 1


def test_a_stopped_merge_goes_on_after_the_files_that_are_done(
    tmp_path: Path, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = write_adapter(tmp_path / "adapter", base, all_matrices(), target_parameters=TARGETS)
    merge(base, adapter, tmp_path / "whole")
    real, calls = quantize.merge_shard.merge_file, []

    def stopped(*given: object) -> object:
        calls.append(given[0].path.name)  # type: ignore[attr-defined]
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(quantize.merge_shard, "merge_file", stopped)
    with pytest.raises(KeyboardInterrupt):
        merge(base, adapter, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    merge(base, adapter, tmp_path / "out")
    first, second = sorted(p.name for p in base.glob("*.safetensors"))
    assert calls == [first, second, second]
    for path in (tmp_path / "whole").iterdir():
        assert path.read_bytes() == (tmp_path / "out" / path.name).read_bytes(), path.name
    assert not (tmp_path / "out.part").exists()


@pytest.mark.parametrize("harm", ["cut", "flipped", "other adapter"])
def test_files_of_a_stopped_merge_are_not_trusted_unseen(
    tmp_path: Path, base: Path, monkeypatch: pytest.MonkeyPatch, harm: str
) -> None:
    adapter = write_adapter(tmp_path / "adapter", base, all_matrices(), target_parameters=TARGETS)
    merge(base, adapter, tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr("quantize.merge._place", lambda *a: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            merge(base, adapter, tmp_path / "out")
    part = sorted((tmp_path / "out.part").glob("*.safetensors"))[0]
    if harm == "cut":
        part.write_bytes(part.read_bytes()[:-3])
    elif harm == "flipped":
        data = bytearray(part.read_bytes())
        data[-1] ^= 1
        part.write_bytes(data)
    else:
        other = {m: (a, 2 * b) for m, (a, b) in all_matrices().items()}
        shutil.rmtree(adapter)
        write_adapter(adapter, base, other, target_parameters=TARGETS)
        merge(base, adapter, tmp_path / "whole2")
    merge(base, adapter, tmp_path / "out")
    wanted = tmp_path / ("whole2" if harm == "other adapter" else "whole")
    for path in wanted.iterdir():
        assert path.read_bytes() == (tmp_path / "out" / path.name).read_bytes(), path.name


def test_a_disk_that_is_too_small_is_said_before_writing(
    tmp_path: Path, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = write_adapter(tmp_path / "adapter", base, {Q0: pair(OUT, IN)})
    usage = shutil._ntuple_diskusage(10**9, 10**9, 0)  # type: ignore[attr-defined]
    monkeypatch.setattr(quantize.disk_space.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(CapacityError, match="are free"):
        merge(base, adapter, tmp_path / "out")
    assert not list(tmp_path.glob("out*/*.safetensors"))


def test_an_output_that_is_there_is_not_overwritten(tmp_path: Path, base: Path) -> None:
    adapter = write_adapter(tmp_path / "adapter", base, {Q0: pair(OUT, IN)})
    (tmp_path / "out").mkdir()
    with pytest.raises(InputError, match="already"):
        merge(base, adapter, tmp_path / "out")
    (tmp_path / "new.part").mkdir()
    (tmp_path / "new.part" / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="no unfinished merge"):
        merge(base, adapter, tmp_path / "new")


def test_a_cut_file_of_the_base_is_named(tmp_path: Path, base: Path) -> None:
    adapter = write_adapter(tmp_path / "adapter", base, {Q0: pair(OUT, IN)})
    file = sorted(base.glob("*.safetensors"))[1]
    file.write_bytes(file.read_bytes()[:-2])
    with pytest.raises(WeightsError, match=r"00002-of-00002.*cut off"):
        merge(base, adapter, tmp_path / "out")


def test_an_index_of_another_version_is_an_error(tmp_path: Path, base: Path) -> None:
    adapter = write_adapter(tmp_path / "adapter", base, {Q0: pair(OUT, IN)})
    path = base / "model.safetensors.index.json"
    index = json.loads(path.read_text())
    index["weight_map"]["model.more.weight"] = "model-00001-of-00002.safetensors"
    path.write_text(json.dumps(index))
    with pytest.raises(WeightsError, match=r"model\.more\.weight"):
        merge(base, adapter, tmp_path / "out")


def test_the_program_tells_an_error_once_and_says_what_to_do(tmp_path: Path, base: Path) -> None:
    adapter = write_adapter(tmp_path / "adapter", base, {Q0: pair(OUT, IN)})
    arguments = ["--base", str(base), "--adapter", str(adapter), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    assert f"of {OUT * IN} values changed" in done.output
    again = CliRunner().invoke(main, arguments)
    assert again.exit_code == 0, again.output
    assert "merged before, and whole" in again.output
    (tmp_path / "out" / "tokenizer.json").write_text("{}")
    changed = CliRunner().invoke(main, arguments)
    assert changed.exit_code == 2
    assert "next:" in changed.output


def test_two_merges_into_one_folder_do_not_write_at_once(tmp_path: Path, base: Path) -> None:
    adapter = write_adapter(tmp_path / "adapter", base, {Q0: pair(OUT, IN)})
    with alone(tmp_path / "out.part"), pytest.raises(InputError, match="another program is merging"):
        merge(base, adapter, tmp_path / "out")
    assert not list((tmp_path / "out.part").iterdir())
    merge(base, adapter, tmp_path / "out")
    assert not (tmp_path / "out.part").exists()


@pytest.mark.parametrize("done", [None, 3, [3], [{"name": "x"}], [{"name": "x", "effects": {"w": 3}}]])
def test_a_damaged_record_of_a_stopped_merge_is_told(tmp_path: Path, base: Path, done: object) -> None:
    adapter = write_adapter(tmp_path / "adapter", base, {Q0: pair(OUT, IN)})
    key = merge_key(open_checkpoint(base), open_adapter(adapter))
    (tmp_path / "out.part").mkdir()
    (tmp_path / "out.part" / "merge-state.json").write_text(json.dumps({"key": key, "done": done}))
    with pytest.raises(InputError, match="not what an unfinished merge writes"):
        merge(base, adapter, tmp_path / "out")
