"""Which folder a recipe's base is, and whether it is of the revision that the recipe names."""

from __future__ import annotations

from pathlib import Path

import pytest
from recipe_setup import make_project, read_recipe, talk
from small_folder import write_small_folder

from aipsy_judge.errors import InputError
from training.base_folder import base_folder
from training.hf_tokens import base_tokens, tokenizer_files
from training.memory import sizes_of

COMMIT, OTHER = "a" * 40, "b" * 40


def folder_of(tmp_path: Path, *overrides: str) -> Path:
    path = make_project(tmp_path, [talk("c1", 1)], lambda n, judge: ({"empathy": 3.0}, False))
    return base_folder(read_recipe(path, *overrides))


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    """As the model hub's cache keeps a commit."""
    folder = tmp_path / "snapshots" / COMMIT
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    return folder


def test_another_revision_than_the_folders_own_is_refused_before_anything_is_trained(
    tmp_path: Path, snapshot: Path
) -> None:
    with pytest.raises(InputError, match=f"holds the revision {COMMIT}, the recipe names {OTHER}"):
        folder_of(tmp_path, f"base.checkpoint={snapshot}", f"base.revision={OTHER}")
    assert folder_of(tmp_path, f"base.checkpoint={snapshot}", f"base.revision={COMMIT}") == snapshot
    assert folder_of(tmp_path, f"base.checkpoint={snapshot}") == snapshot


def test_a_folder_that_does_not_say_its_revision_is_taken_at_the_recipes_word(tmp_path: Path) -> None:
    folder = tmp_path / "base"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    assert folder_of(tmp_path, f"base.checkpoint={folder}", f"base.revision={OTHER}") == folder


def test_a_folder_without_settings_is_no_base(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder"):
        folder_of(tmp_path, f"base.checkpoint={tmp_path / 'nowhere'}")


@pytest.mark.slow
def test_the_home_folders_sign_is_understood_by_all_that_read_the_base(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The weights, the tokenizer, the files that rows rest on, and the prediction of memory."""
    folder = write_small_folder(tmp_path / "home" / "base")
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    path = make_project(tmp_path, [talk("c1", 1)], lambda n, judge: ({"empathy": 3.0}, False))
    recipe = read_recipe(path, "base.checkpoint=~/base")
    assert base_folder(recipe) == folder
    assert base_tokens(recipe.base).name == "base"
    assert tokenizer_files(recipe.base)["base/tokenizer.json"] == folder / "tokenizer.json"
    source, sizes = sizes_of(recipe)
    assert source == str(folder / "config.json")
    named = read_recipe(path, "base.checkpoint=/nowhere", "base.config=~/base/config.json")
    assert sizes_of(named)[1] == sizes
