"""What a manifest says must be of things that the judge has; and a rubric must be the one it was trained on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aipsy_judge.contract import COMPACT, FULL
from aipsy_judge.errors import ContractError, ManifestError
from aipsy_judge.rubric import load_rubric
from aipsy_judge.weights import Weights
from aipsy_judge.weights_fit import check_weights

RUBRIC = load_rubric()


@pytest.fixture
def weights(tmp_path):
    return Weights(name="toy", model=tmp_path / "toy.gguf")


@pytest.mark.parametrize(
    ("contract", "slot"), [(FULL, "crisis_severity"), (FULL, "empathy"), (COMPACT, "crisis_detected")]
)
def test_a_temperature_of_a_slot_that_the_answer_has_is_taken(weights, contract, slot):
    check_weights(replace(weights, temperatures={slot: 1.3}), RUBRIC, contract)


@pytest.mark.parametrize(("contract", "slot"), [(FULL, "empthy"), (COMPACT, "crisis_severity")])
def test_a_temperature_of_another_slot_is_an_error_that_names_those_there_are(weights, contract, slot):
    with pytest.raises(ManifestError, match=f"a temperature for {slot}") as error:
        check_weights(replace(weights, temperatures={"empathy": 1.1, slot: 1.3}), RUBRIC, contract)
    assert error.value.hint is not None
    assert "crisis_detected, " in error.value.hint
    assert "empathy" in error.value.hint


def test_another_rubric_than_the_trained_one_is_refused(weights):
    with pytest.raises(ContractError, match="was trained on the rubric 000000000000"):
        check_weights(replace(weights, rubric_hash="0" * 64), RUBRIC, FULL)
