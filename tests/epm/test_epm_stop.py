"""Each rule ends a dialogue where it should, and the order of the rules is kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from aipsy_judge.epm.evaluate import Evaluation, evaluate
from aipsy_judge.epm.pack import load_pack
from aipsy_judge.epm.parameters import Parameters, profile
from aipsy_judge.epm.stop import rules

FAR = (-21, -27, -27)
GOOD, STRONG, BAD, NIL = (1, 0, 1, 0, 1, 0), (2, 0, 2, 0, 2, 0), (0, -1, 0, -1, 0, -1), (0,) * 6


def run(
    levels: list[tuple[int, ...]],
    start: tuple[int, ...] = FAR,
    parameters: Parameters | None = None,
    every: int = 1,
) -> Evaluation:
    return evaluate(
        load_pack().space, np.array([start], float), [levels], [len(levels)], parameters or profile(), every=every
    )


def stop(*args: object, **kwargs: object) -> tuple[int, str]:
    stops = run(*args, **kwargs).stops  # type: ignore[arg-type]
    return int(stops.rating[0]), stops.kind[0]


def test_no_success_before_the_twelfth_turn() -> None:
    # A turn of (1, 1, 1) gains 75 / |P_0|, and |P_0|^2 = 441 + 729 + 729 = 1899: the gate opens at 1899 / 75 = 25.3
    assert stop([GOOD] * 30) == (26, "success_positional")
    assert stop([STRONG] * 20, start=(-2, -2, -2)) == (12, "success_positional")


def test_a_short_dialogue_is_unfinished() -> None:
    assert stop([STRONG] * 11, start=(-2, -2, -2)) == (11, "unfinished")


def test_five_losses_in_a_row_collapse_from_the_twelfth_turn_on() -> None:
    assert stop([BAD] * 20) == (12, "collapse")
    assert stop([GOOD] * 12 + [BAD] * 5) == (17, "collapse")
    assert stop([GOOD] * 12 + [BAD] * 4 + [GOOD] * 2) == (18, "unfinished")


def test_a_collapse_that_regresses_too_is_a_collapse() -> None:
    levels = [BAD] * 12
    holds = rules(run(levels).paths, profile())
    assert holds["regressing"][0, 12]
    assert stop(levels) == (12, "collapse")


def test_stagnation_with_regression_ends_a_dialogue_that_does_not_collapse() -> None:
    # At turn 13 the last eight gains are + - - - - + - -: six losses, more than 70 %, but never five in a row. The
    # radius then moves by more than the published 0.5.
    axis = (0, 0, 0, -1, 0, 0)
    parameters = replace(profile(), stagnation_deviation=3.0)
    levels = [GOOD] * 6 + [axis] * 4 + [(0, 0, 1, 0, 0, 0)] + [axis] * 4
    assert stop(levels, parameters=parameters) == (13, "regression")
    assert stop(levels) == (15, "unfinished")


def test_regression_alone_does_not_end_a_dialogue() -> None:
    levels = [GOOD] * 6 + [BAD] * 4 + [GOOD] + [BAD] * 4
    path = run(levels).paths
    holds = rules(path, profile())
    assert holds["regressing"][0, 15]
    assert not holds["stagnant"][0, 15]
    assert stop(levels) == (15, "unfinished")


def test_little_movement_over_twelve_turns_is_an_oscillation() -> None:
    assert stop([NIL] * 20) == (12, "oscillation")
    # One strong turn keeps the window alive until it is the step *into* the window's first point.
    assert stop([NIL] * 11 + [STRONG] + [NIL] * 20) == (23, "oscillation")


def test_movement_that_cancels_out_is_an_oscillation() -> None:
    # C goes +3, -1, -1, -1 and so on: 18 points of change and a range of 3, but P_2 -> P_13 is one point apart.
    back_and_forth = [(2, 0, 0, 0, 0, 0), *[(1, -1, 0, 0, 0, 0)] * 3] * 6
    assert stop(back_and_forth, start=(-21, 0, 0)) == (13, "oscillation")


def test_no_oscillation_within_the_target_zone() -> None:
    # All axes at -1 or above at once, but E_total = 2.9 < |P_0| = 3.46: neither success nor oscillation, to the end
    assert stop([(1, 0, 1, 0, 1, 0), *[NIL] * 50], start=(-2, -2, -2)) == (45, "timeout")


def test_timeout_at_the_forty_fifth_turn() -> None:
    up_and_down = ([GOOD] * 6 + [BAD] * 3) * 6
    assert stop(up_and_down) == (45, "timeout")


def test_ratings_of_several_turns_count_their_turns() -> None:
    assert stop([STRONG] * 20, start=(-2, -2, -2), every=3) == (4, "success_positional")
    assert stop([GOOD] * 20, every=3) == (15, "timeout")


def test_the_paper_profile_has_no_oscillation() -> None:
    assert stop([NIL] * 20, parameters=profile("paper-v1", tau_align=0.5)) == (20, "unfinished")


@pytest.mark.parametrize(("tau_align", "want"), [(0.9, (12, "success_aligned")), (1.0, (17, "collapse"))])
def test_the_paper_profile_asks_for_the_mean_cosine(tau_align: float, want: tuple[int, str]) -> None:
    # Twelve straight steps end one point past the origin: cosine 1, energy 62.4 > 60.6. Whoever is not content with
    # that moves away from the origin from then on, and the moving direction turns every step into a loss.
    parameters = replace(profile("paper-v1", tau_align=tau_align), tolerance=0.01)
    assert stop([STRONG] * 50, start=(-35, -35, -35), parameters=parameters) == want


@pytest.mark.parametrize("turns", range(12, 27))
def test_the_gate_is_passed_where_it_is_just_reached(turns: int) -> None:
    # n steps of (1, 1, 1) from (-n, -n, -n): energy and |P_0| are both n * sqrt(3), but not to the last digit.
    assert stop([GOOD] * 40, start=(-turns,) * 3) == (turns, "success_geometric")


@pytest.mark.parametrize(
    ("losses", "stagnant"),
    [
        # radii 20 20 20 20 21: squares about the mean add up to 0.8, deviation sqrt(0.8 / 4) = 0.45
        ([4], True),
        # radii 20 20 20 21 21: 1.2, sqrt(1.2 / 4) = 0.55 (over 5 it would be 0.49)
        ([3], False),
    ],
)
def test_stagnation_is_a_sample_deviation_below_one_half(losses: list[int], stagnant: bool) -> None:
    levels = [(1, -1, 0, 0, 0, 0) if t in losses else NIL for t in range(5)]
    assert rules(run(levels, start=(-20, 0, 0)).paths, profile())["stagnant"][0, 5] == stagnant


@pytest.mark.parametrize(
    ("start", "regressing"),
    [
        ((-20, -12, 0), True),  # six losses of (20 - 24) / 23.3 add up to -1.03
        ((-20, -11, 0), False),  # six losses of (20 - 22) / 22.8 add up to -0.53
    ],
)
def test_regression_needs_a_loss_beyond_one_beside_six_losses_of_eight(
    start: tuple[int, ...], regressing: bool
) -> None:
    loss = (1, 0, 0, -1, 0, 0)
    paths = run([loss] * 3 + [NIL] * 2 + [loss] * 3, start=start).paths
    assert (paths.gain[0, 1:] < 0).sum() == 6
    assert rules(paths, profile())["regressing"][0, 8] == regressing


def test_a_distance_that_hardly_changes_is_an_oscillation_however_much_moves() -> None:
    # C rises as A falls: from (-30, -30, -30) the distance goes from 50.2 to 50.9 while the path is 12 points long.
    sideways = (1, 0, 1, -1, 0, 0)
    assert stop([sideways, NIL] * 10, start=(-30, -30, -30)) == (12, "oscillation")
    # Twice as fast the distance changes by 2.8, more than 2.
    assert stop([sideways] * 12, start=(-30, -30, -30)) == (12, "unfinished")


def test_three_points_of_movement_that_last_are_enough() -> None:
    assert stop([NIL] * 5 + [(2, 0, 0, 0, 0, 0)] + [NIL] * 6, start=(-21, 0, 0)) == (12, "unfinished")


def test_a_small_distance_may_stay_as_it_is() -> None:
    # One point short of the zone all along (mean distance 1, not above 1), while the other axes go on rising.
    levels = [(1, 0, 0, 0, 0, 0)] + [(0, 0, 1, 0, 0, 0)] * 20
    assert stop(levels, start=(-3, 0, 0)) == (21, "unfinished")


@pytest.mark.parametrize(("every", "window"), [(1, 12), (2, 10), (4, 10)])
def test_the_oscillation_window_is_never_below_ten_ratings(every: int, window: int) -> None:
    assert stop([NIL] * 20, every=every) == (window, "oscillation")


def test_no_rule_holds_in_the_padding() -> None:
    # After eleven turns all is won but for the twelfth turn, which only the other dialogue has.
    start, lengths = np.array([(-2.0, -2.0, -2.0), FAR]), [11, 20]
    stops = evaluate(load_pack().space, start, [[STRONG] * 20, [GOOD] * 20], lengths, profile()).stops
    assert (stops.rating.tolist(), stops.kind) == ([11, 20], ("unfinished", "unfinished"))


def test_the_paper_profile_reaches_less_far() -> None:
    # Twelve straight steps from 58.9 away end 3.46 past the origin: beyond a twentieth, within a tenth.
    levels, start = [STRONG] * 12, (-34, -34, -34)
    paper = profile("paper-v1", tau_align=0.9)
    assert stop(levels, start=start, parameters=paper) == (12, "success_aligned")
    assert stop(levels, start=start, parameters=replace(paper, tolerance=0.1)) == (12, "success_geometric")
