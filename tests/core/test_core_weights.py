"""Which file a judge's name or path means, what is said of a file that nobody knows, and what opening one settles."""

from __future__ import annotations

import pytest

from aipsy_judge import open_backend
from aipsy_judge import open_local as opening
from aipsy_judge.errors import WeightsError
from aipsy_judge.judge import JudgeOptions
from aipsy_judge.rubric import load_rubric
from aipsy_judge.weights import UNTRAINED_FLOOR, find_weights


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AIPSY_JUDGE_CACHE", str(tmp_path / "cache"))


def test_a_file_that_nobody_knows_is_asked_with_a_floor_and_says_so(tmp_path):
    path = tmp_path / "somebodys.gguf"
    path.write_bytes(b"GGUF")
    found = find_weights(path)
    assert (found.name, found.model, found.contract) == ("somebodys", path, "full")
    assert found.legal_mass_floor == UNTRAINED_FLOOR > 0
    assert "nothing shows" in found.remarks[0]


@pytest.mark.parametrize("name", ["no-such-judge", "./no-such.gguf", "~/no-such.gguf", ""])
def test_a_name_that_means_nothing_here_is_one_error_with_a_way_on(name):
    with pytest.raises(WeightsError, match="on this machine") as caught:
        find_weights(name)
    assert "models list" in caught.value.hint


@pytest.mark.parametrize("content", [b"", b"<html>sign in</html>", b"GGUF" + bytes(60)])
def test_a_file_that_is_no_model_is_refused_by_the_opening_with_its_path(tmp_path, content):
    path = tmp_path / "x.gguf"
    path.write_bytes(content)
    with pytest.raises(WeightsError) as caught:
        opening.open_local(path, load_rubric(), None, None, JudgeOptions(threads=1))
    assert caught.value.where == str(path)


@pytest.mark.parametrize(("wanted", "layers"), [(0, 0), (7, 7), (None, 3)])
def test_experts_stay_in_ram_as_told_or_as_the_machine_asks_for(tmp_path, monkeypatch, wanted, layers):
    monkeypatch.setattr("aipsy_judge.expert_layers.expert_layers_in_ram", lambda model, cache_gb: 3)
    assert open_backend._layers_in_ram(wanted, tmp_path / "m.gguf", 4.0) == layers
