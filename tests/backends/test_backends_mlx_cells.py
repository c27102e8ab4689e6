"""The cells that an MLX model writes and reads: what a branch sees is what its path alone would show."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

if importlib.util.find_spec("mlx") is None:
    pytest.skip("mlx is not installed: pip install 'mlx[cpu]' mlx-lm", allow_module_level=True)

import mlx.core as mx

from aipsy_judge.backends.mlx_cells import CellCache, Layer, Places, look_at
from aipsy_judge.errors import CapacityError, WeightsError

CELLS = 40


def layer(window: int | None = None) -> Layer:
    return Layer((1, 1), (1, 1), mx.float32, window)


def test_cells_are_shared_by_forks_and_used_again_when_no_sequence_holds_them() -> None:
    places = Places(6)
    places.extend(0, 4)
    places.fork(0, 1, 3)
    places.trim(0, 0)
    assert list(places.extend(0, 3)) == [3, 4, 5]  # cell 3 held position 3, which only sequence 0 had
    with pytest.raises(CapacityError):
        places.extend(0, 1)
    places.fork(1, 1, 1)  # onto itself
    assert list(places.of(1)) == [0]
    assert list(places.extend(0, 2)) == [1, 2]


class Written:
    """One layer driven as a model does, its keys the token ids; a plain list of tokens a sequence beside it."""

    def __init__(self, window: int | None) -> None:
        self.places, self.cache, self.window = Places(CELLS), CellCache(layer(window), CELLS), window
        self.paths: dict[int, list[int]] = {}
        self.next = 1

    def extend(self, sequence: int, count: int) -> None:
        new = list(range(self.next, self.next + count))
        self.next += count
        try:
            self.places.extend(sequence, count)
        except CapacityError:
            return
        path = self.paths.setdefault(sequence, [])
        path += new
        self.cache.begin(self.places.of(sequence), count)
        mask = self.cache.make_mask(count, window_size=self.window)
        array = mx.array(new, dtype=mx.float32).reshape(1, 1, count, 1)
        keys, values = self.cache.update_and_fetch(array, -array)
        shown = np.array(keys).ravel()
        np.testing.assert_array_equal(np.array(values).ravel(), -shown)
        for row in range(count):
            seen = shown[self._row(mask, row, count, len(shown))]
            at = len(path) - count + row
            wanted = path[: at + 1] if self.window is None else path[max(0, at - self.window + 1) : at + 1]
            assert list(seen) == wanted

    @staticmethod
    def _row(mask: object, row: int, count: int, shown: int) -> object:
        if mask is None:
            return np.ones(shown, dtype=bool)
        if isinstance(mask, str):
            assert mask == "causal"
            return np.arange(shown) <= shown - count + row
        return np.array(mask)[row]


STEPS = st.lists(
    st.tuples(st.sampled_from(["extend", "fork", "trim"]), st.integers(0, 3), st.integers(0, 3), st.integers(1, 9)),
    min_size=1,
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(STEPS, st.sampled_from([None, 1, 4, 7]))
def test_every_token_sees_its_own_path_and_of_it_what_its_window_reaches(steps: list, window: int | None) -> None:
    written = Written(window)
    for what, sequence, other, number in steps:
        if what == "extend":
            written.extend(sequence, number)
        elif what == "fork":
            written.places.fork(sequence, other, number)
            written.paths[other] = list(written.paths.get(sequence, [])[:number])
        else:
            written.places.trim(sequence, number)
            written.paths[sequence] = written.paths.get(sequence, [])[:number]


@pytest.mark.parametrize(("kind", "keep"), [("ArraysCache", 0), ("RotatingKVCache", 4), ("ChunkedKVCache", 0)])
def test_a_model_whose_layers_keep_something_else_than_keys_and_values_is_refused(kind: str, keep: int) -> None:
    cache = type(kind, (), {"keep": keep, "max_size": 8})()
    with pytest.raises(WeightsError, match=kind):
        look_at(lambda tokens, cache: None, [cache], "here")


class KVCache:
    """What mlx-lm would use: only its name is looked at."""


def test_layers_are_seen_with_the_wider_type_of_keys_and_values():
    def model(tokens, cache):
        cache[0].update_and_fetch(mx.zeros((1, 2, 1, 4), mx.bfloat16), mx.zeros((1, 2, 1, 3), mx.float32))
        return mx.zeros((1, 1, 7))

    (found,), size = look_at(model, [KVCache()], "here")
    assert found == Layer((2, 4), (2, 3), mx.float32, None)
    assert (found.cell_bytes, size) == ((8 + 6) * 4, 7)


@pytest.mark.parametrize("times", [0, 2])
def test_a_layer_that_keeps_keys_and_values_other_than_once_a_pass_is_refused(times):
    """Twice, the second would be written over the first without a word."""

    def model(tokens, cache):
        for _ in range(times):
            cache[0].update_and_fetch(mx.zeros((1, 1, 1, 1)), mx.zeros((1, 1, 1, 1)))
        return mx.zeros((1, 1, 7))

    with pytest.raises(WeightsError, match=f"{times} times a pass"):
        look_at(model, [KVCache()], "here")


def test_a_model_that_asks_a_cache_for_something_else_is_refused_with_what_it_asked():
    with pytest.raises(WeightsError, match="no attribute 'state'"):
        look_at(lambda tokens, cache: cache[0].state, [KVCache()], "here")
