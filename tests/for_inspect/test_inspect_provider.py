"""The model `aipsy-judge/NAME`: in this process and over HTTP it says what the server says, or an error."""

from __future__ import annotations

import asyncio
import json

import pytest
from inspect_ai.model import (
    ChatMessageSystem,
    ChatMessageUser,
    ContentImage,
    ContentText,
    GenerateConfig,
    ResponseSchema,
    get_model,
)
from inspect_ai.tool import ToolInfo
from inspect_ai.util import JSONSchema
from server_at_work import TALK, at_work, bench_body, bench_text

from aipsy_judge.backends.fake import FakeJudge
from aipsy_judge.errors import AccessError, BackendError, ContractError, InputError, WeightsError

pytestmark = pytest.mark.slow
SCORED = GenerateConfig(temperature=0.3, top_p=1.0, max_tokens=4096)


def ask(model, messages, config=SCORED, **more):
    async def asked():
        return await model.api.generate(messages, more.pop("tools", []), "auto", config)

    return asyncio.run(asked())


def seat(system):
    return [ChatMessageSystem(content=system), ChatMessageUser(content=bench_text(TALK, "Yes."))]


def scores(text):
    return json.loads(text)["scores"]


def test_the_seat_is_answered_as_the_server_answers_it_with_usage(bench_prompt):
    here = ask(get_model("aipsy-judge/fake", answer_as_own=True), seat(bench_prompt))
    with at_work(FakeJudge(), answer_as_own=True) as work:
        served = work.post("/api/chat", bench_body(bench_prompt, bench_text(TALK, "Yes."))).json()
        over = ask(get_model("aipsy-judge/aipsy-judge", base_url=f"{work.url}/v1/"), seat(bench_prompt))
    assert here.completion == over.completion == served["message"]["content"]
    assert scores(here.completion)
    assert here.usage is not None
    assert over.usage is not None
    assert here.model == "fake"
    assert here.metadata["aipsy_judge"]["answered_as_own"] is True


def test_parts_of_text_are_joined_and_pictures_refused(bench_prompt):
    model = get_model("aipsy-judge/fake", answer_as_own=True)
    system, user = seat(bench_prompt)
    parts = [system, ChatMessageUser(content=[ContentText(text=user.text)])]
    assert scores(ask(model, parts).completion) == scores(ask(model, seat(bench_prompt)).completion)
    with pytest.raises(InputError, match="'image'"):
        ask(model, [ChatMessageUser(content=[ContentImage(image="data:image/png;base64,AA==")])])


def test_a_judge_of_another_contract_answers_only_when_told_to(bench_prompt):
    with pytest.raises(ContractError, match="contract fake") as error:
        ask(get_model("aipsy-judge/fake"), seat(bench_prompt))
    assert error.value.hint
    with (
        at_work(FakeJudge()) as work,
        pytest.raises(ContractError, match="contract fake"),
    ):
        ask(get_model("aipsy-judge/aipsy-judge", base_url=work.url), seat(bench_prompt))


def test_what_is_no_seat_and_no_schema_is_an_error_and_no_answer():
    with pytest.raises(InputError, match="does not chat"):
        ask(get_model("aipsy-judge/fake"), [ChatMessageUser(content="hello")])


def test_a_schema_reaches_the_judge():
    schema = ResponseSchema(
        name="form", json_schema=JSONSchema(type="object", properties={"sure": JSONSchema(type="boolean")})
    )
    config = GenerateConfig(response_schema=schema)
    with pytest.raises(ContractError, match="gives no probabilities"):
        ask(get_model("aipsy-judge/fake"), [ChatMessageUser(content="x")], config)
    with at_work(FakeJudge()) as work, pytest.raises(ContractError, match="gives no probabilities"):
        ask(get_model("aipsy-judge/aipsy-judge", base_url=work.url), [ChatMessageUser(content="x")], config)


def test_tools_are_refused(bench_prompt):
    tool = ToolInfo(name="look", description="Look.")
    with pytest.raises(InputError, match="no tools"):
        ask(get_model("aipsy-judge/fake"), seat(bench_prompt), tools=[tool])


def test_a_served_judge_that_is_not_there_is_worth_a_retry_and_one_that_is_unknown_is_not(bench_prompt):
    model = get_model("aipsy-judge/aipsy-judge", base_url="http://127.0.0.1:9")
    with pytest.raises(BackendError) as error:
        ask(model, seat(bench_prompt))
    assert model.api.should_retry(error.value)
    with at_work(FakeJudge()) as work, pytest.raises(AccessError, match="404") as error:
        ask(get_model("aipsy-judge/no-such-judge", base_url=work.url), seat(bench_prompt))
    assert not model.api.should_retry(error.value)


def test_a_served_judge_wants_its_token(bench_prompt):
    with at_work(FakeJudge(), answer_as_own=True, token="a" * 32) as work:
        address = {"base_url": work.url}
        with pytest.raises(AccessError, match="401"):
            ask(get_model("aipsy-judge/aipsy-judge", **address), seat(bench_prompt))
        answer = ask(get_model("aipsy-judge/aipsy-judge", api_key="a" * 32, **address), seat(bench_prompt))
    assert scores(answer.completion)


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("no-such-judge", {}, WeightsError),
        ("fake", {"temperatur": 1}, InputError),
        ("fake", {"rationale": "sometimes"}, InputError),
        ("fake", {"base_url": "ftp://127.0.0.1"}, InputError),
        ("fake", {"base_url": "http://127.0.0.1:9", "rubric": "mine.yaml"}, InputError),
        ("fake", {"base_url": "http://127.0.0.1:9", "answer_as_own": True}, InputError),
    ],
)
def test_a_model_that_could_not_answer_is_refused_when_it_is_named(name, arguments, error):
    with pytest.raises(error):
        get_model(f"aipsy-judge/{name}", memoize=False, **arguments)


def test_tokens_are_counted_without_a_tokenizer_from_the_network():
    assert asyncio.run(get_model("aipsy-judge/fake").api.count_text_tokens("a" * 9)) == 3
