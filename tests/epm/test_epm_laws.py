"""Laws that hold for every path, whatever its levels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from aipsy_judge.epm.evaluate import evaluate
from aipsy_judge.epm.indices import NAMES
from aipsy_judge.epm.pack import load_pack
from aipsy_judge.epm.parameters import Parameters, profile
from aipsy_judge.epm.space import Axis, Indicator, Space
from aipsy_judge.epm.trajectory import Trajectories, trace
from aipsy_judge.epm.vectors import deficits, steps
from aipsy_judge.errors import InputError

SPACE = load_pack().space
AS_RUN, PAPER = profile(), profile("paper-v1", tau_align=0.3)
# A machine under load must not fail a law for being slow.
law = settings(max_examples=40, deadline=None)
BOTH = pytest.mark.parametrize("parameters", [AS_RUN, PAPER], ids=lambda p: p.profile)

starts = arrays(np.int64, (1, 9), elements=st.integers(0, 3))
turn_forms = st.integers(1, 45).flatmap(
    lambda t: st.tuples(
        arrays(np.int64, (1, t, 3), elements=st.integers(0, 2)),
        arrays(np.int64, (1, t, 3), elements=st.integers(-2, 0)),
    ).map(lambda pair: np.stack(pair, axis=-1).reshape(1, t, 6))
)


def follow(start: np.ndarray, levels: np.ndarray, parameters: Parameters = AS_RUN) -> Trajectories:
    return trace(deficits(SPACE, start), steps(SPACE, levels), parameters)


@law
@given(starts, turn_forms)
def test_with_a_fixed_direction_energy_is_projection_plus_starting_radius(
    start: np.ndarray, levels: np.ndarray
) -> None:
    paths = follow(start, levels)
    np.testing.assert_allclose(paths.energy, paths.projection + paths.radius[:, :1], atol=1e-9)


@law
@given(starts, turn_forms)
def test_with_a_fixed_direction_the_energy_gate_implies_the_positional_one(
    start: np.ndarray, levels: np.ndarray
) -> None:
    paths = follow(start, levels)
    passed = paths.energy >= paths.radius[:, :1] + 1e-9
    assert (paths.projection[passed] >= -1e-9).all()


@BOTH
@law
@given(start=starts, levels=turn_forms, factor=st.floats(0.1, 10))
def test_scaling_space_scales_lengths_and_keeps_angles(
    start: np.ndarray, levels: np.ndarray, factor: float, parameters: Parameters
) -> None:
    one = follow(start, levels, parameters)
    # The moving direction is undefined at the origin itself, which rounding can miss by a hair.
    assume(parameters is AS_RUN or (one.radius > 0).all())
    other = trace(one.start * factor, one.steps * factor, parameters)
    np.testing.assert_allclose(other.cosine, one.cosine, atol=1e-7)
    for name in ("gain", "energy", "projection", "radius", "position"):
        np.testing.assert_allclose(getattr(other, name), factor * getattr(one, name), atol=1e-6)


@BOTH
@law
@given(start=starts, levels=turn_forms, order=st.permutations(range(3)))
def test_the_order_of_the_axes_changes_no_score(
    start: np.ndarray, levels: np.ndarray, order: list[int], parameters: Parameters
) -> None:
    # Three alike axes, so that only the order can matter.
    axes = tuple(
        Axis(k, k, (Indicator(f"{k}.1", -3.0),), {0: 0, 1: 1, 2: 3}, {0: 0, -1: -2, -2: -5}) for k in ("X", "Y", "Z")
    )
    space = Space(axes, top_level=3)
    levels_there = levels.reshape(1, -1, 3, 2)[:, :, order].reshape(levels.shape)
    here = evaluate(space, deficits(space, start[:, :3]), levels, [levels.shape[1]], parameters)
    there = evaluate(space, deficits(space, start[:, :3][:, order]), levels_there, [levels.shape[1]], parameters)
    assert here.stops.kind == there.stops.kind
    np.testing.assert_allclose(here.indices, there.indices, atol=1e-7)


@BOTH
@law
@given(levels=turn_forms)
def test_a_zero_deficit_leaves_what_divides_by_it_undefined(levels: np.ndarray, parameters: Parameters) -> None:
    result = evaluate(SPACE, np.zeros((1, 3)), levels, [levels.shape[1]], parameters)
    index = dict(zip(NAMES, result.indices[0], strict=True))
    assert all(np.isnan(index[n]) for n in ("RDI", "E_tot", "S_net"))
    assert not any(np.isnan(index[n]) for n in NAMES[3:])
    outcome, efficiency, stability, epm_q = result.scores[0]
    assert np.isnan([outcome, epm_q]).all()
    assert np.isfinite([efficiency, stability]).all()


@law
@given(starts, st.integers(12, 45), st.sampled_from([-1, -2]))
def test_a_dialogue_that_only_deteriorates_collapses_and_earns_nothing_but_straightness(
    start: np.ndarray, turns: int, harm: int
) -> None:
    assume((deficits(SPACE, start) < 0).any())
    result = evaluate(SPACE, deficits(SPACE, start), [[[0, harm] * 3] * turns], [turns], AS_RUN)
    assert (result.stops.rating[0], result.stops.kind[0]) == (12, "collapse")
    index = dict(zip(NAMES, result.indices[0], strict=True))
    assert [index[n] for n in ("E_tot", "S_net", "rho", "S_proj", "R_pos")] == [0] * 5
    assert index["tau"] == pytest.approx(100)  # a straight line, if the wrong way
    assert index["RDI"] < 50
    assert index["Align"] < 50


@BOTH
@law
@given(start=starts, levels=turn_forms)
def test_indices_keep_their_ranges(start: np.ndarray, levels: np.ndarray, parameters: Parameters) -> None:
    assume((deficits(SPACE, start) < 0).any())
    result = evaluate(SPACE, deficits(SPACE, start), levels, [levels.shape[1]], parameters)
    index = dict(zip(NAMES, result.indices[0], strict=True))
    assert all(v >= 0 for v in index.values())
    assert all(index[n] <= 100 + 1e-9 for n in ("RDI", "tau", "R_pos", "Align", "Pen"))
    raw = dict(zip(NAMES, result.raw[0], strict=True))
    assert raw["tau"] >= 1 - 1e-5 or raw["tau"] == parameters.tau_of_return


@law
@given(starts, turn_forms, st.integers(0, 20))
def test_padding_changes_nothing(start: np.ndarray, levels: np.ndarray, padding: int) -> None:
    turns = levels.shape[1]
    longer = np.pad(levels, ((0, 0), (0, padding), (0, 0)), constant_values=1)  # rubbish after the end
    one = evaluate(SPACE, deficits(SPACE, start), levels, [turns], AS_RUN)
    other = evaluate(SPACE, deficits(SPACE, start), longer, [turns], AS_RUN)
    np.testing.assert_array_equal(one.indices, other.indices)
    assert one.stops.kind == other.stops.kind


@law
@given(starts, turn_forms)
def test_turns_after_the_stop_change_nothing(start: np.ndarray, levels: np.ndarray) -> None:
    one = evaluate(SPACE, deficits(SPACE, start), levels, [levels.shape[1]], AS_RUN)
    end = int(one.stops.rating[0])
    cut = evaluate(SPACE, deficits(SPACE, start), levels[:, :end], [end], AS_RUN)
    np.testing.assert_array_equal(one.indices, cut.indices)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 3, -1, 0.5])
@law
@given(turn=st.integers(0, 8))
def test_a_level_that_is_not_legal_names_its_turn_and_channel(wrong: float, turn: int) -> None:
    levels = np.zeros((2, 9, 6))
    levels[1, turn, 4] = wrong
    with pytest.raises(InputError, match=rf"^b, turn {turn + 1}: level .* of P\.prog"):
        evaluate(SPACE, -np.ones((2, 3)), levels, [9, 9], AS_RUN, names=["a", "b"])


def test_a_rating_of_several_turns_is_named_by_them() -> None:
    levels = np.zeros((1, 4, 6))
    levels[0, 2, 1] = 1
    with pytest.raises(InputError, match=r"turns 7 to 9: level 1 of C\.neg is none of -2, -1, 0"):
        evaluate(SPACE, -np.ones((1, 3)), levels, [4], AS_RUN, every=3)


@pytest.mark.parametrize("wrong", [np.nan, 4, -1, 1.5])
def test_a_starting_level_that_is_not_legal_names_its_indicator(wrong: float) -> None:
    from aipsy_judge.epm.vectors import check_start_levels

    with pytest.raises(InputError, match=r"start: level .* of A\.2 is not a whole number in 0\.\.3"):
        check_start_levels(SPACE, [[0, 0, 0, 0, wrong, 0, 0, 0, 0]])


def test_a_positive_start_is_no_deficit() -> None:
    with pytest.raises(InputError, match="dialogue 1, start: P_0 holds 1"):
        evaluate(SPACE, np.array([[-1.0, 1.0, 0.0]]), np.zeros((1, 1, 6)), [1], AS_RUN)


def test_a_space_of_two_other_axes_works() -> None:
    axes = (
        Axis("Trust", "trust", (Indicator("T1", -2.0), Indicator("T2", -1.0)), {0: 0, 1: 2}, {0: 0, -1: -1}),
        Axis("Hope", "hope", (Indicator("H1", -4.0),), {0: 0, 1: 1, 2: 2, 3: 6}, {0: 0, -1: -3}),
    )
    space = Space(axes, top_level=5)
    start = deficits(space, np.array([[5, 5, 1]]))
    assert start.tolist() == [[-15, -4]]
    result = evaluate(space, start, [[[1, 0, 3, -1]] * 12], [12], AS_RUN)
    # Each step (2, 3): after 12 of them (9, 32), long past the target.
    assert result.paths.position[0, -1].tolist() == [9, 32]
    assert result.stops.kind == ("success_positional",)
    assert np.isfinite(result.scores).all()


def test_profiles_do_not_mix() -> None:
    with pytest.raises(InputError, match="needs tau_align, whose value was never published"):
        profile("paper-v1")
    with pytest.raises(InputError, match="has no tau_align"):
        profile("empa-2026-02", tau_align=0.5)
    with pytest.raises(InputError, match="is no cosine"):
        profile("paper-v1", tau_align=1.5)
    with pytest.raises(InputError, match="no profile is called 'v2'"):
        profile("v2")
