"""From a name to a judge: what a trained judge may not be asked."""

from __future__ import annotations

import pytest

from aipsy_judge import JudgeOptions, open_local
from aipsy_judge.errors import ContractError, InputError, RubricError, WeightsError
from aipsy_judge.opening import open_judge
from aipsy_judge.rubric import load_rubric
from aipsy_judge.weights import Weights


@pytest.mark.parametrize("contract", ["full", "compact"])
def test_a_trained_judge_is_asked_by_no_contract_but_its_own(tmp_path, monkeypatch, contract):
    trained = Weights("trained", tmp_path / "none.gguf", contract="aipsy-bench-v1", own_contract=True)
    monkeypatch.setattr(open_local, "find_weights", lambda name, unblessed: trained)
    with pytest.raises(ContractError, match=f"trained to be asked by the contract aipsy-bench-v1, not {contract}"):
        open_local.open_local("trained", load_rubric(), contract, None, JudgeOptions())


def test_a_known_judge_of_a_contract_of_its_own_keeps_it(monkeypatch, tmp_path):
    from aipsy_judge import weights
    from aipsy_judge.known_judges import known_judges

    for known in known_judges():
        found = weights._of_known(known, tmp_path / "x.gguf", check=False)
        assert found.own_contract == (known.contract != "full")


@pytest.mark.parametrize(
    ("named", "error"),
    [({"name": "no-such-judge"}, WeightsError), ({"name": "fake", "rubric": "no-such-rubric"}, RubricError),
     ({"name": "fake", "adapter": "x.gguf"}, InputError)],
)  # fmt: skip
def test_what_is_not_there_is_one_error_of_its_kind(named, error):
    with pytest.raises(error):
        open_judge(**named)
