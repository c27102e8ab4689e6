"""MLX as a backend: branches give the logits of their path alone, and what goes wrong is an error, never a number."""

from __future__ import annotations

import os
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mlx_backends import alone
from mlx_folders import needs_mlx
from small_folder import CONFIG, write_small_folder

from aipsy_judge import open_judge
from aipsy_judge.backends.protocol import Feed
from aipsy_judge.errors import BackendError, WeightsError
from aipsy_judge.judge import JudgeOptions
from aipsy_judge.model_folder import open_model_folder

pytestmark = [pytest.mark.slow, needs_mlx]


@pytest.mark.parametrize(("name", "long"), [("llama", 590), ("gemma", 150)])
def test_branches_and_reused_cells_give_the_logits_of_each_path_alone(name: str, long: int, request: Any) -> None:
    """Forks at several depths, a trim, cells used again, a copy out and back, feeds of several sequences; of one model
    beyond a pass, of the other beyond its window."""
    backend = request.getfixturevalue(name)
    rng = np.random.default_rng(5)
    draw = lambda n: rng.integers(0, 250, n).tolist()  # noqa: E731
    backend._on_thread(backend._open, 0)
    backend.reserve(1000)
    trunk, rest = draw(long), draw(20)
    backend.evaluate([Feed(0, 0, trunk)])
    backend.fork(0, 1, long)
    backend.fork(0, 2, 90)
    first = {1: draw(9), 2: draw(70)}
    got = backend.evaluate([Feed(1, long, first[1], True), Feed(2, 90, first[2], True), Feed(0, long, rest, True)])
    backend.trim(2, 95)
    again = draw(60)
    got += backend.evaluate([Feed(2, 95, again, True)])
    saved = backend.save_sequence(2)
    backend.trim(2, 0)
    backend.evaluate([Feed(3, 0, draw(30))])  # where sequence 2 lay
    assert backend.load_sequence(4, saved)
    got += backend.evaluate([Feed(4, 155, rest, True)])
    branch = trunk[:90] + first[2][:5] + again
    paths = [trunk + first[1], trunk[:90] + first[2], trunk + rest, branch, branch + rest]
    for logits, path in zip(got, paths, strict=True):
        assert np.abs(logits).max() > 5
        np.testing.assert_allclose(logits, alone(backend, path), atol=2e-3)


def test_a_state_of_another_model_or_cut_off_is_not_taken(llama: Any) -> None:
    llama.reserve(100)
    llama.trim(5, 0)
    llama.evaluate([Feed(5, 0, [1, 2, 3])])
    state = llama.save_sequence(5)
    llama.trim(5, 0)
    assert not llama.load_sequence(5, state[:-1])
    assert not llama.load_sequence(5, b"x" + state[1:])
    assert llama.load_sequence(5, state)
    llama.trim(5, 0)


def test_a_feed_that_does_not_follow_its_sequence_is_refused_not_misplaced(llama: Any) -> None:
    llama.reserve(100)
    llama.trim(6, 0)
    with pytest.raises(BackendError, match="has 0 tokens, not 3"):
        llama.evaluate([Feed(6, 3, [1])])


def test_rotary_settings_under_their_newer_name_are_not_lost(llama: Any, small: Path, tmp_path: Path) -> None:
    from mlx_lm.utils import load_model

    from aipsy_judge.backends.mlxlm import MlxLm

    path = list(range(40, 90))
    older = MlxLm(write_small_folder(tmp_path / "older", rope_theta=CONFIG["rope_parameters"]["rope_theta"]))
    np.testing.assert_array_equal(alone(older, path), alone(llama, path))
    # what the library makes of the folder by itself, which is why it is told
    older._model = older._on_thread(load_model, small)[0]
    assert np.abs(alone(older, path) - alone(llama, path)).max() > 0.1


def test_a_type_that_the_device_does_not_compute_in_is_one_clear_error() -> None:
    import mlx.core as mx
    from gemma4_checkpoint import gemma4_checkpoint

    if mx.default_device().type != mx.DeviceType.cpu:
        pytest.skip("a GPU computes experts at 16 bits")
    with pytest.raises(WeightsError, match="MLX could not evaluate the model"):
        open_judge(gemma4_checkpoint(), options=JudgeOptions(backend="mlx"))


def test_after_a_pass_that_failed_the_cache_is_made_anew_and_says_the_same(llama: Any) -> None:
    """What the pass had begun to write would fail whatever reads it."""
    import mlx.core as mx

    path = list(range(40, 60))
    llama.reserve(100)
    llama.trim(0, 0)
    before = llama.evaluate([Feed(0, 0, path, True)])[0]
    model = llama._model

    def fails(tokens: Any, cache: Any) -> Any:
        logits = model(tokens, cache=cache)
        return logits @ mx.zeros((3, 3))

    llama._model = fails
    try:
        llama.trim(0, 0)
        with pytest.raises(BackendError, match="could not evaluate"):
            llama.evaluate([Feed(0, 0, path, True)])
    finally:
        llama._model = model
    assert llama.reserve(100)  # nothing of what was evaluated is left
    np.testing.assert_array_equal(llama.evaluate([Feed(0, 0, path, True)])[0], before)


def test_closing_twice_is_harmless(tmp_path: Path) -> None:
    from aipsy_judge.backends.mlxlm import MlxLm

    backend = MlxLm(write_small_folder(tmp_path / "small"))
    backend.close()
    backend.close()


def test_opening_and_judging_ask_no_network_and_leave_the_process_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from aipsy_judge.backends.mlxlm import MlxLm

    def refused(*words: Any, **more: Any) -> Any:
        pytest.fail(f"asked for {words}")

    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)
    backend = MlxLm(write_small_folder(tmp_path / "small"))
    backend.reserve(10)
    backend.evaluate([Feed(0, 0, [1, 2, 3], True)])
    backend.close()
    assert "HF_HUB_OFFLINE" not in os.environ


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"quantization": {"bits": 4, "group_size": 32}, "text_config": {"max_position_embeddings": 9}}, "4 bit"),
        ({}, "F32"),
    ],
)
def test_how_most_weights_are_stored_is_told(small: Path, config: dict[str, Any], words: str) -> None:
    """Of a model with a part for text too, where mlx-lm writes the bits beside that part."""
    found = open_model_folder(small)
    folder = replace(found, whole={**found.whole, **config}, config=config.get("text_config", found.config))
    assert folder.stored == words
