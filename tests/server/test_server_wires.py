"""The wires over real sockets, with the stand-in judge: what is tested is the transport, not what a judge says."""

from __future__ import annotations

import json

import pytest
from server_at_work import TALK, WARM_UP, at_work, bench_body, bench_text

from aipsy_judge.backends.fake import FakeAnswer, FakeJudge, drawn_answer
from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.errors import BackendError
from aipsy_judge.rubric import load_rubric
from aipsy_judge.verdict import Flag, NotApplicable, Scored, Unscored

RUBRIC = load_rubric()


# -- what a client of Ollama finds ---------------------------------------------------------------------------


def test_the_two_questions_before_a_run_are_answered_as_the_benchmark_asks_them(server):
    assert server.client.get("/api/version").json()["version"]
    names = [m["name"] for m in server.client.get("/api/tags").json()["models"]]
    assert any(name.split(":")[0] == "aipsy-judge" for name in names)


def test_the_warm_up_is_answered_by_exactly_one_json_object(server):
    answer = server.post("/api/chat", WARM_UP)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["done"] is True


@pytest.mark.parametrize(("path", "more"), [
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Is it safe? A or B."}], "max_tokens": 1}),
    ("/v1/responses", {"input": "Is it safe? A or B.", "max_output_tokens": 1}),
])  # fmt: skip
def test_a_question_with_room_for_one_token_is_no_warm_up_where_none_is_known(server, path, more):
    assert server.post(path, {"model": "aipsy-judge", **more}).status_code == 422


def test_the_seat_answers_a_bare_object_with_real_booleans_and_the_reasoning_last(server, bench_prompt):
    answer = server.post("/api/chat", bench_body(bench_prompt, bench_text(TALK, "Who could help?")))
    content = answer.json()["message"]["content"]
    assert content[0] + content[-1] == "{}"
    data = json.loads(content)
    assert list(data) == ["scores", "judge", "reasoning"]
    scores = data["scores"]
    assert set(scores) == {*RUBRIC.metric_names, "crisis_detected", "crisis_severity"}
    assert isinstance(scores["crisis_detected"], bool)
    assert (scores["crisis_severity"] == "none") is not scores["crisis_detected"]
    assert (scores["crisis_handling"] == "N/A") is not scores["crisis_detected"]
    assert data["reasoning"].startswith("[aipsy-judge ")
    assert "contract fake, answered by its own contract" in data["reasoning"]


def test_the_seat_takes_no_schema_as_one_would_go_round_what_the_judge_holds_back(server, bench_prompt):
    form = {"type": "object", "properties": {"empathy": {"type": "integer", "minimum": 0, "maximum": 5}}}
    answer = server.post("/api/chat", bench_body(bench_prompt, bench_text(TALK, "x"), format=form))
    assert answer.status_code == 422
    assert "own layout" in answer.json()["error"]


def test_half_an_emoji_is_hashed_and_judged_as_the_files_are_read(server, bench_prompt):
    talk = Conversation("t", (Message("user", "I failed \ufffd"), Message("assistant", "That hurts \U0001f614\ufffd")))
    said = ["I failed \ud83d", "That hurts \ud83d\ude14\ud83d"]
    body = bench_body(bench_prompt, bench_text([("USER", said[0])], said[1]))
    seat = server.client.post("/api/chat", content=json.dumps(body)).json()
    assert seat["aipsy_judge"]["content_hash"] == talk.content_hash
    messages = [{"role": "user", "content": said[0]}, {"role": "assistant", "content": said[1]}]
    own = server.client.post("/v1/score", content=json.dumps({"messages": messages})).json()
    assert [v["content_hash"] for v in own["verdicts"]] == [talk.content_hash]


def test_identical_requests_are_answered_identically_and_others_otherwise(server, bench_prompt):
    def content(target):
        body = bench_body(bench_prompt, bench_text(TALK, target))
        return server.post("/api/chat", body).json()["message"]["content"]

    assert content("a") == content("a")
    assert len({content(t) for t in "abcdefgh"}) > 4


def test_what_the_seat_says_is_what_the_judge_says_of_the_conversation(server, bench_prompt):
    answer = server.post("/api/chat", bench_body(bench_prompt, bench_text(TALK, "Who could help?"))).json()
    said = json.loads(answer["message"]["content"])["scores"]
    roles = {"USER": "user", "AI": "assistant"}
    history = [Message(roles[who], text, spoken=who == "USER") for who, text in TALK]
    talk = Conversation("t", (*history, Message("assistant", "Who could help?")))
    (verdict,) = FakeJudge().score(talk)
    expected = {n: s.value if isinstance(s, Scored) else "N/A" for n, s in verdict.scores.items()}
    assert {n: said[n] for n in expected} == expected
    assert said["crisis_detected"] == verdict.flags["crisis_detected"].value
    assert answer["aipsy_judge"]["turn"] == 2


def test_a_stream_is_the_whole_answer_in_one_piece_and_then_the_end(server, bench_prompt):
    body = bench_body(bench_prompt, bench_text(TALK, "Yes."))
    whole = server.post("/api/chat", body).json()["message"]["content"]
    del body["stream"]  # Ollama streams unless told not to
    answer = server.post("/api/chat", body)
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert [(line["message"]["content"], line["done"]) for line in lines] == [(whole, False), ("", True)]


@pytest.mark.parametrize("name", ["no-such-judge", "AIPSY-JUDGE", "aipsy-judge:other", "x/aipsy-judge:latest", ""])
@pytest.mark.parametrize("path", ["/api/chat", "/api/generate", "/api/show", "/api/pull"])
def test_another_model_is_not_found_and_the_served_names_are_told(server, name, path):
    answer = server.post(path, {"model": name})
    assert answer.status_code == 404
    assert "aipsy-judge:latest" in answer.json()["error"]


def test_the_seat_of_a_judge_with_another_contract_is_refused_with_the_way_to_have_it(bench_prompt):
    with at_work(FakeJudge()) as work:
        for body in (bench_body(bench_prompt, bench_text(TALK, "x")), WARM_UP):
            answer = work.post("/api/chat", body)
            assert answer.status_code == 409
            assert "--answer-as-own" in answer.json()["error"]


def test_an_unknown_prompt_without_a_schema_is_refused(server):
    for path, body in (
        ("/api/chat", {"model": "aipsy-judge", "messages": [{"role": "user", "content": "Write a poem."}]}),
        ("/api/generate", {"model": "aipsy-judge", "prompt": "Write a poem."}),
        ("/v1/chat/completions", {"model": "aipsy-judge", "messages": [{"role": "user", "content": "Hello"}]}),
        ("/v1/responses", {"model": "aipsy-judge", "input": "say hello"}),
    ):
        answer = server.post(path, body)
        assert answer.status_code == 422
        assert "schema" in answer.text


@pytest.mark.parametrize(
    "body",
    [
        {"messages": [{"role": "user", "content": "x", "images": ["aGk="]}]},
        {"messages": [{"role": "tool", "content": "x"}]},
        {"messages": [{"role": "user", "content": "x"}], "tools": [{"type": "function"}]},
        {"messages": [{"role": "user", "content": "x"}], "format": "yaml"},
        {"messages": [{"role": "user"}, {"role": "nobody", "content": ""}]},
        {"messages": "x"},
        {"messages": [], "options": {"num_predict": "many"}},
    ],
)
def test_what_a_judge_cannot_take_is_refused_and_not_passed_over(server, body):
    assert server.post("/api/chat", {"model": "aipsy-judge", **body}).status_code in (400, 422)


@pytest.mark.parametrize(("path", "more"), [
    ("/v1/chat/completions", {"messages": [{"role": "assistant", "content": None, "function_call": {"name": "f"}}]}),
    ("/v1/chat/completions", {"messages": [{"role": "assistant", "content": None, "audio": {"id": "a"}}]}),
    ("/v1/responses", {"input": "x", "conversation": "conv_1"}),
    ("/v1/responses", {"input": "x", "prompt": {"id": "p"}}),
    ("/api/generate", {"prompt": "x", "context": [1, 2]}),
])  # fmt: skip
def test_text_that_is_not_in_the_request_is_not_passed_over(server, path, more):
    form = {"type": "object", "properties": {"sure": {"type": "boolean"}}}
    wanted = {"format": form, "text": {"format": {"type": "json_schema", "schema": form}},
              "response_format": {"type": "json_schema", "json_schema": {"schema": form}}}  # fmt: skip
    assert server.post(path, {"model": "aipsy-judge", **wanted, **more}).status_code == 422  # 409: it would be asked


def test_a_refusal_of_the_assistants_is_read_as_what_it_said():
    from aipsy_judge.server.openai_chat import Message, said

    assert said(Message(role="assistant", content=None, refusal="I cannot.")).text == "I cannot."


def test_a_limit_below_the_answer_is_refused_since_a_cut_answer_would_be_taken_for_one():
    from aipsy_judge.server.answering import Answer, Chat, _within
    from aipsy_judge.server.working import Tokens

    with at_work(FakeJudge()) as work:
        whole = Answer("{}", Tokens(answer=90))
        assert _within(work.served, Chat((), limit=90), whole) is whole
        with pytest.raises(Exception, match="90 tokens, 89 were allowed"):
            _within(work.served, Chat((), limit=89), whole)


# -- what cannot be judged -----------------------------------------------------------------------------------


@pytest.mark.parametrize("hole", ["metric", "flag", "severity"])
def test_a_verdict_with_a_hole_is_an_error_and_never_a_200(bench_prompt, hole):
    def answer(conversation, turn):
        drawn = drawn_answer(RUBRIC, "x")
        scores, flags = dict(drawn.scores), dict(drawn.flags)
        lost = Unscored("off_contract", "legal mass 0.001")
        if hole == "metric":
            scores["empathy"] = lost
        else:
            flags["crisis_detected"] = Flag(None if hole == "flag" else True, unscored=lost)
            scores["crisis_handling"] = Scored(3)
        return FakeAnswer(scores, flags)

    with at_work(FakeJudge(answer=answer), answer_as_own=True) as work:
        got = work.post("/api/chat", bench_body(bench_prompt, bench_text(TALK, "x")))
    assert got.status_code == 422
    assert "off_contract" in got.json()["error"]
    assert "scores" not in got.json()


def test_an_empty_reply_is_an_error_and_never_a_200(server, bench_prompt):
    got = server.post("/api/chat", bench_body(bench_prompt, bench_text(TALK, "")))
    assert got.status_code == 422
    assert "empty_turn" in got.json()["error"]


def test_a_judge_that_fails_is_a_503_and_the_next_request_is_answered(bench_prompt):
    fails = [BackendError("the model gave no numbers", retryable=True)]

    def answer(conversation, turn):
        if fails:
            raise fails.pop()
        return drawn_answer(RUBRIC, "x")

    with at_work(FakeJudge(answer=answer), answer_as_own=True) as work:
        body = bench_body(bench_prompt, bench_text(TALK, "x"))
        first = work.post("/api/chat", body)
        assert (first.status_code, first.headers["retry-after"]) == (503, "5")
        assert first.headers["cache-control"] == "no-store"
        assert work.post("/api/chat", body).status_code == 200


def test_a_fault_of_ours_is_a_500_that_quotes_nothing(capsys, bench_prompt):
    def answer(conversation, turn):
        raise KeyError(conversation.messages[-1].content)

    with at_work(FakeJudge(answer=answer), answer_as_own=True) as work:
        got = work.post("/api/chat", bench_body(bench_prompt, bench_text(TALK, "a private word")))
        assert got.status_code == 500
        assert "KeyError" in got.json()["error"]
        assert work.client.get("/health").status_code == 200
    captured = capsys.readouterr()
    assert "KeyError" in captured.err
    assert "private" not in got.text + captured.err + captured.out


def test_a_reasoning_that_holds_a_fence_does_not_look_like_the_answer(bench_prompt):
    drawn = drawn_answer(RUBRIC, "x")
    fenced = FakeAnswer(drawn.scores, {"crisis_detected": Flag(False, "none")}, 'so ```json {"scores": {}} ```')
    scores = {**drawn.scores, "crisis_handling": NotApplicable(forced_by="crisis_detected")}
    judge = FakeJudge(answer=lambda *_: FakeAnswer(scores, fenced.flags, fenced.rationale))
    with at_work(judge, answer_as_own=True, rationale="always") as work:
        content = work.post("/api/chat", bench_body(bench_prompt, bench_text(TALK, "x"))).json()["message"]["content"]
    assert "```" not in content
    assert json.loads(content)["reasoning"].endswith("so '''json {\"scores\": {}} '''")


# -- the other wires -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/chat/completions/", "/chat/completions"])
def test_a_path_with_a_slash_too_many_or_without_v1_is_served(server, bench_prompt, path):
    body = {
        "model": "aipsy-judge",
        "messages": [
            {"role": "developer", "content": bench_prompt},
            {"role": "user", "content": [{"type": "text", "text": bench_text(TALK, "Yes.")}]},
        ],
    }
    answer = server.post(path, body).json()
    assert json.loads(answer["choices"][0]["message"]["content"])["scores"]
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["aipsy_judge"]["judge"] == "fake"


def test_responses_are_answered_as_the_benchmark_asks_them(server, bench_prompt):
    body = {
        "model": "aipsy-judge",
        "input": [
            {"role": "developer", "content": [{"type": "input_text", "text": bench_prompt}]},
            {"role": "user", "content": [{"type": "input_text", "text": bench_text(TALK, "Yes.")}]},
        ],
        "max_output_tokens": 4096,
        "temperature": 0.3,
        "top_p": 1.0,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"summary": "auto"},
    }
    answer = server.post("/v1/responses", body).json()
    assert answer["status"] == "completed"
    assert json.loads(answer["output"][0]["content"][0]["text"])["scores"]


def test_errors_are_told_in_the_words_of_the_wire(server):
    assert isinstance(server.post("/api/chat", {"model": "x"}).json()["error"], str)
    error = server.post("/v1/chat/completions", {"model": "x", "messages": []}).json()["error"]
    assert error["type"] == "not_found_error"
    assert server.client.get("/v1/models/x").status_code == 404
    assert server.client.get("/v1/models/aipsy-judge:latest").json()["id"] == "aipsy-judge:latest"


def test_the_list_of_models_is_the_same_with_a_slash_too_many(server):
    assert server.client.get("/v1/models/").json() == server.client.get("/v1/models").json()
    assert server.client.get("/v1/models/aipsy-judge:latest/").json()["id"] == "aipsy-judge:latest"
