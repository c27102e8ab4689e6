"""The scorer in real Inspect tasks: what it puts into the log is what `score` says of the log, and nothing else."""

from __future__ import annotations

import gc
import json
from dataclasses import replace

import pytest
from inspect_ai import Epochs, Task
from inspect_ai import eval as inspect_eval
from inspect_ai.dataset import Sample
from inspect_ai.log import read_eval_log
from inspect_ai.model import ChatMessageAssistant, ChatMessageUser, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Metric, aggregate, mean, metric
from inspect_ai.solver import generate, system_message

from aipsy_judge.backends.fake import FakeJudge, drawn_answer
from aipsy_judge.errors import ContractError, InputError, RubricError, WeightsError
from aipsy_judge.for_inspect.scorer import psychological_safety
from aipsy_judge.rubric import load_rubric
from aipsy_judge.transcripts import read
from aipsy_judge.verdict import NotApplicable, Scored, Unscored, verdict_from_dict, verdict_to_dict

NAME = "psychological_safety"
# Of libraries that Inspect calls, and of streams that it leaves open: none of ours.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:The .initial. parameter is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Exception ignored in.*MemoryObject:pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:Unclosed <MemoryObject:ResourceWarning"),
]


def target(reply=lambda messages: f"I hear you. {len(messages)}"):
    def output(messages, tools, choice, config):
        said = ModelOutput.from_content("mockllm/model", reply(messages))
        said.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return said

    return get_model("mockllm/model", custom_outputs=output, memoize=False)


def talk(name):
    said = [ChatMessageUser(content=f"I am {name}."), ChatMessageAssistant(content="Tell me more.")]
    return Sample(id=name, input=[*said, ChatMessageUser(content="I feel lost.")], target="")


def run(tmp_path, samples, *, solver=None, **more):
    task = Task(dataset=samples, solver=solver or generate(), scorer=psychological_safety("fake"), **more)
    (log,) = inspect_eval(task, model=target(), display="none", log_dir=str(tmp_path / "logs"))
    gc.collect()  # what it left open is told here, where it is known whose it is
    assert log.status == "success", log.error
    return log


def figures(log):
    (scores,) = log.results.scores
    return {name: metric.value for name, metric in scores.metrics.items()}


@metric(scores="unreduced")
def advice() -> Metric:
    return aggregate("advice_safety", mean(), on_missing="skip")


def said_of(monkeypatch, change):
    """A judge whose answers are drawn, then changed by `change(scores, flags)`."""
    rubric = load_rubric()

    def answer(conversation, turn):
        drawn = drawn_answer(rubric, conversation.turn_hash(turn))
        scores, flags = dict(drawn.scores), dict(drawn.flags)
        change(scores, flags)
        return replace(drawn, scores=scores, flags=flags)

    monkeypatch.setattr("aipsy_judge.for_inspect.at_work.open_judge", lambda *a, **k: FakeJudge(rubric, answer=answer))


def test_the_log_holds_the_verdicts_that_score_gives_of_the_log(tmp_path):
    log = run(tmp_path, [talk("Ann"), talk("Bo")])
    with FakeJudge() as judge:
        expected = {c.id: judge.score(c) for c in read(log.location)}
    assert len(expected) == 2
    json.loads(log.model_dump_json(), parse_constant=lambda name: pytest.fail(f"the log holds {name}"))
    for sample in read_eval_log(log.location).samples:
        told = sample.scores[NAME].metadata
        verdicts = [verdict_from_dict({k: v for k, v in t.items() if k != "composite"}) for t in told["turns"]]
        assert [verdict_to_dict(v) for v in verdicts] == [verdict_to_dict(v) for v in expected[told["conversation"]]]
        assert [v.turn for v in verdicts] == [1, 2]
        assert told["judge"]["judge"] == "fake"


def test_the_value_holds_the_means_of_what_applies_and_whether_any_turn_failed(tmp_path):
    log = run(tmp_path, [talk("Ann")])
    (sample,) = log.samples
    value, turns = sample.scores[NAME].value, sample.scores[NAME].metadata["turns"]
    for name in load_rubric().metric_names:
        numbers = [t["scores"][name]["value"] for t in turns if t["scores"][name]["status"] == "scored"]
        assert value.get(name) == (sum(numbers) / len(numbers) if numbers else None)
    assert value["failure"] is any(t["composite"]["failure"] for t in turns)
    assert value["crisis_detected"] is any(t["flags"]["crisis_detected"]["value"] for t in turns)


def test_not_applicable_never_becomes_a_number_whatever_the_tasks_reducer(tmp_path, monkeypatch):
    said_of(monkeypatch, lambda scores, flags: scores.update(advice_safety=NotApplicable()))
    for epochs in (Epochs(1), Epochs(2, ["mean", "max"])):
        log = run(tmp_path, [talk("Ann"), talk("Bo")], epochs=epochs)
        found = figures(log)
        assert not [name for name in found if name in ("advice_safety", "advice_safety_n", "advice_safety_stderr")]
        assert found["advice_safety_not_applicable"] == found["judged"] == 4 * epochs.epochs
        assert found["empathy_n"] == 2  # samples, not epochs
        assert all("advice_safety" not in s.scores[NAME].value for s in log.samples)


def test_unscored_turns_leave_failure_unknown_rather_than_denied(tmp_path, monkeypatch):
    def change(scores, flags):
        scores.update({name: Scored(5.0) for name in scores} | {"empathy": Unscored("timeout")})
        flags.update({n: replace(f, value=None, severity=None) for n, f in flags.items()})

    said_of(monkeypatch, change)
    log = run(tmp_path, [talk("Ann")])
    score = log.samples[0].scores[NAME]
    assert not {"empathy", "composite", "failure", "crisis_detected"} & set(score.value)
    assert set(score.value) == set(load_rubric().metric_names) - {"empathy"}
    assert score.metadata["missing"]["empathy"] == "unscored 2"
    assert "empathy unscored (timeout)" in score.explanation
    assert figures(log)["empathy_unscored"] == 2
    assert "failure_rate" not in figures(log)


def test_a_metric_of_somebody_elses_skips_what_has_no_value(tmp_path, monkeypatch):
    seen = iter([NotApplicable(), NotApplicable(), Scored(4.0), Scored(4.0)])
    said_of(monkeypatch, lambda scores, flags: scores.update(advice_safety=next(seen)))
    metrics = [aggregate("advice_safety", mean(), on_missing="skip")]
    log = run(tmp_path, [talk("Ann"), talk("Bo")], metrics=metrics, max_samples=1)
    assert figures(log) == {"aggregate": 4.0}


def test_a_metric_of_somebody_elses_reads_epochs_of_which_one_has_no_value(tmp_path, monkeypatch):
    seen = iter([NotApplicable(), NotApplicable(), Scored(4.0), Scored(4.0)])  # two turns in each of two epochs
    said_of(monkeypatch, lambda scores, flags: scores.update(advice_safety=next(seen)))
    log = run(tmp_path, [talk("Ann")], metrics=[advice()], epochs=2, max_samples=1)
    assert list(figures(log).values()) == [4.0]


def test_a_sample_with_nothing_to_judge_has_no_value_and_is_counted_as_such(tmp_path):
    log = run(tmp_path, [Sample(id="silent", input="hello", target="")], solver=system_message("Be kind."))
    assert figures(log)["judged"] == 0
    assert "composite_n" not in figures(log)
    score = log.samples[0].scores[NAME]
    assert score.value == {}
    assert score.metadata["missing"]["empathy"] == "nothing was judged"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"judge": "no-such-judge"}, WeightsError),
        ({"rubric": "no-such-rubric.yaml"}, RubricError),
        ({"judge": "fake", "rationale": "sometimes"}, InputError),
        ({"judge": "fake", "adapter": "a.gguf"}, InputError),
        ({"judge": "openai:model"}, InputError),
        ({"judge": "openai:model@http://127.0.0.1:9", "contract": "no-such-contract"}, ContractError),
        ({"contract": "no-such-contract"}, ContractError),
    ],
)
def test_what_could_not_be_judged_is_refused_before_the_target_is_asked(arguments, error):
    with pytest.raises(error):
        psychological_safety(**arguments)
