"""One path worked out by hand: every quantity on the way from levels to EPM-Q."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from aipsy_judge.epm.evaluate import Evaluation, evaluate
from aipsy_judge.epm.indices import NAMES
from aipsy_judge.epm.pack import load_pack
from aipsy_judge.epm.parameters import Parameters, profile

START = (-10, -20, -5)
GOOD = (1, 0, 2, 0, 1, 0)
LEVELS = [
    (1, 0, 1, 0, 0, 0),
    GOOD,
    (0, -1, 0, -1, 0, -1),
    GOOD,
    (1, 0, 2, 0, 0, 0),
    (0, 0, 0, 0, 0, 0),
    (2, 0, 2, 0, 1, 0),
    (1, 0, 1, -1, 1, 0),
    *[GOOD] * 4,
]


def run(parameters: Parameters) -> Evaluation:
    return evaluate(load_pack().space, np.array([START], float), [LEVELS], [12], parameters)


AS_RUN = run(profile())


def test_steps_follow_the_score_table() -> None:
    # turn 1: C +1, A +1; turn 3: -2 each; turn 7: +3, +3, +1; turn 8: A is +1 - 2
    assert AS_RUN.paths.steps[0, [0, 2, 6, 7]].tolist() == [[1, 1, 0], [-2, -2, -2], [3, 3, 1], [1, -1, 1]]


def test_radius_and_distance_of_the_start() -> None:
    assert AS_RUN.paths.radius[0, 0] == pytest.approx(np.sqrt(525))  # 100 + 400 + 25
    assert AS_RUN.paths.distance[0, 0] == pytest.approx(np.sqrt(81 + 361 + 16))


def test_gains_are_the_steps_along_the_first_direction() -> None:
    # e.g. turn 1: (1, 1, 0) . (10, 20, 5) / sqrt(525) = 30 / 22.9129
    want = [0, 1.3093, 3.2733, -3.0551, 3.2733, 3.0551, 0, 4.1461, -0.2182, *[3.2733] * 4]
    np.testing.assert_allclose(AS_RUN.paths.gain[0], want, atol=5e-5)


def test_the_end_of_the_path() -> None:
    assert AS_RUN.paths.position[0, -1].tolist() == [0, 2, 1]
    assert AS_RUN.paths.distance[0, -1] == 0
    assert AS_RUN.paths.energy[0, -1] == pytest.approx(24.8768, abs=5e-5)


def test_raw_metrics() -> None:
    raw = dict(zip(NAMES, AS_RUN.raw[0], strict=True))
    assert raw["S_net"] == 33  # levels; the components of the steps add up to 38
    assert raw["Pen"] == pytest.approx(4 / 13)
    assert raw["tau"] == pytest.approx(34.0313 / np.sqrt(100 + 484 + 36), abs=5e-5)


def test_indices_and_scores() -> None:
    want = [100, 96.8682, 102.7992, 82.9228, 76.5441, 81.6635, 69.2308, 79.8337, 89.7436]
    np.testing.assert_allclose(AS_RUN.indices[0], want, atol=5e-5)
    np.testing.assert_allclose(AS_RUN.scores[0], [99.8891, 80.3768, 79.6027, 87.8721], atol=5e-5)


@pytest.mark.parametrize(("tolerance", "kind"), [(0.10, "success_geometric"), (0.05, "success_positional")])
def test_the_tolerance_decides_the_kind_of_success(tolerance: float, kind: str) -> None:
    # |P_12| = sqrt(5) = 2.236, between 0.05 and 0.10 of 22.913
    stops = run(replace(profile(), tolerance=tolerance)).stops
    assert (stops.rating[0], stops.kind[0]) == (12, kind)


def test_paper_profile_uses_its_own_formulas() -> None:
    paper = run(profile("paper-v1", tau_align=0.5))
    raw = dict(zip(NAMES, paper.raw[0], strict=True))
    index = dict(zip(NAMES, paper.indices[0], strict=True))
    r0 = np.sqrt(525)
    assert raw["S_net"] == 38  # components of the steps
    assert raw["Pen"] == pytest.approx(4 / 12)  # over T steps
    assert raw["RDI"] == pytest.approx((r0 - np.sqrt(5)) / r0, abs=1e-6)
    assert index["S_net"] == pytest.approx(100 * 38 / (1.2 * (r0 + 1e-6)), rel=1e-12)
    # The second step is seen from P_1 = (-9, -19, -5): (1, 3, 1) . (9, 19, 5) / sqrt(467)
    assert paper.paths.gain[0, 2] == pytest.approx(71 / np.sqrt(467))


@pytest.mark.parametrize(
    ("parameters", "raw", "index"), [(profile(), 0, 100), (profile("paper-v1", tau_align=0.5), 3, 0)]
)
def test_a_path_that_returns_is_the_best_as_run_and_the_worst_on_paper(
    parameters: Parameters, raw: float, index: float
) -> None:
    # C goes one up and one down: the published runs count such a path as straight, a quirk kept for their sake.
    levels = [[(1, 0, 0, 0, 0, 0), (1, -1, 0, 0, 0, 0)] * 3]
    result = evaluate(load_pack().space, np.array([START], float), levels, [6], parameters)
    tau = NAMES.index("tau")
    assert (result.raw[0, tau], result.indices[0, tau]) == (raw, index)


def test_an_imputed_starting_distance_of_one_makes_the_end_a_loss() -> None:
    # Without a deficit d_0 = 0; three turns of -2 an axis end at distance 5 * sqrt(3).
    levels = [[(0, -1, 0, -1, 0, -1)] * 3]
    result = evaluate(load_pack().space, np.zeros((1, 3)), levels, [3], profile(), imputed_scale=1.0)
    assert result.raw[0, NAMES.index("RDI")] == pytest.approx(-5 * np.sqrt(3))
    assert result.indices[0, NAMES.index("RDI")] == 0
