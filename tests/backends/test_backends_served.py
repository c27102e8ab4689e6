"""Judges on servers, opened by name, over a real connection."""

import pytest
from loopback_server import completion, error, serving
from served_samples import RUBRIC, answer, chat, reasons

from aipsy_judge.backends.fake import FakeJudge
from aipsy_judge.backends.remote import OpenAIBackend
from aipsy_judge.backends.server_name import parse_server_name
from aipsy_judge.contract import FULL
from aipsy_judge.errors import InputError
from aipsy_judge.judge import JudgeOptions
from aipsy_judge.opening import open_judge
from aipsy_judge.served_judge import ServedJudge, open_served
from aipsy_judge.verdict import Scored


def test_a_server_is_opened_by_name_and_judges():
    with serving(completion(answer())) as (server, url), open_judge(f"openai:m@{url}") as served:
        assert not served.is_remote
        (verdict,) = served.score(chat())
    assert verdict.scores["empathy"] == Scored(4.0)
    assert "reply" in verdict.provenance
    assert verdict.provenance["judge"] == f"openai:m@{url}/v1"
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ([completion("Sure! I think this is a four.")], "no_verdict"),
        ([completion(None)], "empty_reply"),
        ([completion(answer(), None)], "truncated"),
        ([error(400, "filtered", code="content_filter")], "blocked"),
        ([error(500, "output does not match the expected format")], "server_error"),
        ([(200, {"error": {"message": "boom"}})], "server_error"),
    ],
)
def test_what_a_server_does_wrong_is_unscored(script, reason):
    with serving(*script) as (_, url):
        backend = OpenAIBackend(parse_server_name(f"openai:m@{url}"), sleep=lambda seconds: None)
        with ServedJudge(backend, RUBRIC, FULL) as served:
            (verdict,) = served.score(chat())
    assert reasons(verdict) == {reason}


def test_an_address_elsewhere_is_remote_and_says_so():
    with open_judge("openai:m@https://judge.example/v1") as served:
        assert served.is_remote
        assert "judge.example" in served.remarks[0]


def test_the_stand_in_is_opened_by_its_name():
    assert isinstance(open_judge("fake"), FakeJudge)
    with pytest.raises(InputError):
        open_served("fake:x", RUBRIC, "full", JudgeOptions())


@pytest.mark.parametrize("name", ["fake", "openai:m@http://127.0.0.1:9/v1", "ollama:m"])
def test_adapter_beside_a_judge_without_weights_here_is_refused_not_left_out(name):
    with pytest.raises(InputError, match="adapter"):
        open_judge(name, adapter="lora.gguf")
