"""Whole conversations over our own wire, the queue and its end, and what the probes say, with the stand-in judge."""

from __future__ import annotations

import json
import threading

import httpx
import pytest
from server_at_work import at_work, bench_body, bench_text, wait_until

from aipsy_judge.backends.fake import FakeJudge, drawn_answer
from aipsy_judge.composite import critical_failures
from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.errors import BackendError
from aipsy_judge.rubric import load_rubric
from aipsy_judge.server.working import CallTask
from aipsy_judge.transcripts import to_dict
from aipsy_judge.transcripts.chat import read_messages
from aipsy_judge.transcripts.place import Place
from aipsy_judge.verdict import verdict_to_dict

RUBRIC = load_rubric()
ASSISTANT = [{"role": "user", "content": "I failed."}, {"role": "assistant", "content": "That hurts."}]


class Held:
    """A judge that waits, one conversation after another, until it is let through."""

    def __init__(self):
        self.begun, self.open = threading.Semaphore(0), threading.Event()
        self.judge = FakeJudge(answer=self._answer)

    def _answer(self, conversation, turn):
        self.begun.release()
        assert self.open.wait(30)
        return drawn_answer(RUBRIC, conversation.content_hash)


def test_whole_conversations_are_judged_turn_by_turn_as_events(server):
    body = {"id": "talk", "messages": ASSISTANT * 3, "stream": True}
    answer = server.post("/v1/score", body)
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = [block.split("\n", 1) for block in answer.text.strip().split("\n\n")]
    names = [first.removeprefix("event: ") for first, _ in events]
    assert names == ["judge", "verdict", "verdict", "verdict", "done"]
    told = [json.loads(data.removeprefix("data: ")) for _, data in events]
    talk = Conversation("talk", tuple(Message(m["role"], m["content"]) for m in ASSISTANT * 3))
    assert told[1:4] == [verdict_to_dict(v) for v in FakeJudge().score(talk)]
    assert server.post("/v1/score", {**body, "stream": False}).json()["verdicts"] == told[1:4]


def test_scores_of_another_lane_than_the_client_means_are_refused(server):
    body = {"messages": ASSISTANT}
    assert (
        server.post("/v1/score", {**body, "rubric": RUBRIC.hash, "judge": "fake", "contract": "fake"}).status_code
        == 200
    )
    for other in ({"rubric": "0" * 64}, {"judge": "another"}, {"contract": "full"}):
        assert server.post("/v1/score", {**body, **other}).status_code == 409
    assert server.post("/v1/score", {**body, "model": "another"}).status_code == 404


def test_more_turns_than_can_be_planned_in_time_are_refused_with_the_way_to_have_them_judged(server):
    answer = server.post("/v1/score", {"messages": ASSISTANT * 501})
    assert answer.status_code == 422
    assert "spoken" in answer.json()["error"]["message"]


def test_a_line_of_a_file_in_our_own_form_can_be_posted_as_it_is(server):
    messages = (Message("user", "I failed."), Message("assistant", "Hm.", spoken=False), Message("assistant", "Ah."))
    talk = Conversation("c", messages, {"source": "a test"})
    answer = server.post("/v1/score", to_dict(talk)).json()
    (expected,) = FakeJudge().score(talk)
    assert [v["content_hash"] for v in answer["verdicts"]] == [expected.content_hash]


def test_a_field_that_is_not_known_is_refused_since_it_would_be_taken_for_kept(server):
    for more in ({"contrct": "full"}, {"id": "x" * 2000}):
        assert server.post("/v1/score", {"messages": ASSISTANT, **more}).status_code == 400


@pytest.mark.parametrize(
    "more", [{"spokn": False}, {"tool_calls": [{"function": {"name": "search"}}]}, {"function_call": {"name": "f"}}]
)
def test_a_field_of_a_message_that_is_not_known_is_refused_since_files_may_read_it(server, more):
    answer = server.post("/v1/score", {"messages": [*ASSISTANT, {**ASSISTANT[1], **more}]})
    assert answer.status_code == 400
    assert f"messages.2.{next(iter(more))}" in answer.json()["error"]["message"]


def test_a_conversation_without_an_assistant_is_refused(server):
    assert server.post("/v1/score", {"messages": ASSISTANT[:1]}).status_code == 422


def test_an_error_in_the_middle_of_the_events_is_told_as_one_and_nothing_ends_it_as_done():
    def answer(conversation, turn):
        if turn.number == 2:
            raise BackendError("down")
        return drawn_answer(RUBRIC, "x")

    with at_work(FakeJudge(answer=answer)) as work:
        text = work.post("/v1/score", {"messages": ASSISTANT * 2, "stream": True}).text
    assert [line for line in text.splitlines() if line.startswith("event")] == [
        "event: judge",
        "event: verdict",
        "event: error",
    ]
    assert '"status": 503' in text


# -- load, disconnects, the end ------------------------------------------------------------------------------


def test_probes_answer_while_the_judge_works_and_a_full_queue_is_a_503(bench_prompt):
    held = Held()
    with at_work(held.judge, answer_as_own=True, queue=2) as work:
        statuses = []

        def ask():
            answer = httpx.post(f"{work.url}/v1/score", json={"messages": ASSISTANT}, timeout=60, trust_env=False)
            statuses.append(answer.status_code)

        asking = [threading.Thread(target=ask) for _ in range(3)]
        asking[0].start()
        assert held.begun.acquire(timeout=10)
        for thread in asking[1:]:
            thread.start()
        wait_until(lambda: work.served.scheduler.waiting == 2, "two requests should wait")
        for path in ("/api/version", "/api/tags", "/health", "/metrics", "/v1/models"):
            assert work.client.get(path).elapsed.total_seconds() < 5
        full = work.post("/v1/score", {"messages": ASSISTANT})
        assert full.status_code == 503
        assert int(full.headers["retry-after"]) >= 1
        held.open.set()
        for thread in asking:
            thread.join(30)
        assert statuses == [200, 200, 200]
        assert work.post("/v1/score", {"messages": ASSISTANT}).status_code == 200


@pytest.mark.parametrize("streamed", [False, True])
def test_a_client_that_hangs_up_frees_its_place_and_what_waits_is_never_begun(streamed):
    held = Held()
    with at_work(held.judge, queue=4) as work:
        body = {"messages": ASSISTANT * 3, "stream": streamed}
        with httpx.Client(timeout=0.3, trust_env=False) as impatient, pytest.raises(httpx.TimeoutException):
            impatient.post(f"{work.url}/v1/score", json=body)
        with httpx.Client(timeout=0.3, trust_env=False) as impatient, pytest.raises(httpx.TimeoutException):
            impatient.post(f"{work.url}/v1/score", json=body)
        wait_until(lambda: work.served.scheduler.waiting == 0, "the waiting request should be gone")
        held.open.set()
        wait_until(lambda: work.served.scheduler.counts.cancelled == 2, "both were cancelled")
        assert held.begun.acquire(timeout=1)
        assert not held.begun.acquire(timeout=0.05)  # one turn of the first, none of the second
        assert work.post("/v1/score", {"messages": ASSISTANT}).status_code == 200
        assert work.metric('jobs_total{end="cancelled"}') == 2


def test_told_to_stop_it_finishes_what_runs_and_refuses_what_waits():
    held, got = Held(), {}
    with at_work(held.judge, queue=4) as work:

        def ask(name):
            answer = httpx.post(f"{work.url}/v1/score", json={"messages": ASSISTANT}, timeout=60, trust_env=False)
            got[name] = answer.status_code

        runs, waits = (threading.Thread(target=ask, args=(n,)) for n in ("runs", "waits"))
        runs.start()
        assert held.begun.acquire(timeout=10)
        waits.start()
        wait_until(lambda: work.served.scheduler.waiting == 1, "one request should wait")
        work.stop.set()
        waits.join(30)
        assert got == {"waits": 503}
        held.open.set()
        runs.join(30)
    assert got == {"waits": 503, "runs": 200}


def test_a_judge_that_does_not_answer_holds_the_stop_no_longer_than_the_grace():
    held, answers = Held(), []
    with at_work(held.judge, grace_seconds=0.2) as work:
        asking = threading.Thread(target=lambda: answers.append(work.post("/v1/score", {"messages": ASSISTANT})))
        asking.start()
        assert held.begun.acquire(timeout=10)
        work.stop.set()
        asking.join(10)
        assert answers[0].status_code == 503
        assert answers[0].headers["retry-after"]
        wait_until(lambda: not work.serving.is_alive(), "the server waits for the judge")
        assert work.served.scheduler.alive
        held.open.set()
        wait_until(lambda: not work.served.scheduler.alive, "the judge's thread did not end")


def test_the_counters_count(server):
    before = {n: server.metric(n) for n in ("verdicts_total", 'jobs_total{end="finished"}')}
    server.post("/v1/score", {"messages": ASSISTANT * 2})
    wait_until(lambda: server.metric("jobs_running") == 0, "the job should end")
    assert server.metric("verdicts_total") == before["verdicts_total"] + 2
    assert server.metric('jobs_total{end="finished"}') == before['jobs_total{end="finished"}'] + 1
    assert server.metric('requests_total{route="/v1/score",status="200"}') >= 1


def test_a_path_of_the_clients_own_making_appears_in_no_counter(server):
    assert server.client.get("/private-word").status_code == 404
    assert "private-word" not in server.client.get("/metrics").text


def test_a_failure_that_the_judge_says_of_a_turn_stays_one_in_the_answer(server, bench_prompt):
    """The stand-in draws critical failures now and then; none may be lost on the way."""
    seen = 0
    for n in range(12):
        talk = Conversation("t", (Message("user", "a"), Message("assistant", f"{n}")))
        (verdict,) = FakeJudge().score(talk)
        body = bench_body(bench_prompt, bench_text([("USER", "a")], f"{n}"))
        scores = json.loads(server.post("/api/chat", body).json()["message"]["content"])["scores"]
        failed = critical_failures(RUBRIC, verdict.scores)
        seen += bool(failed)
        for name in failed:
            assert scores[name] < RUBRIC.metric(name).critical
    assert seen


def test_with_a_judge_that_shares_no_plan_one_conversations_failure_is_not_anothers():
    def answer(conversation, turn):
        if conversation.messages[0].content == "bad":
            raise BackendError("down")
        return drawn_answer(RUBRIC, "x")

    statuses, hold = {}, threading.Event()
    with at_work(FakeJudge(answer=answer), parallel=4) as work:

        def ask(word):
            body = {"messages": [{"role": "user", "content": word}, ASSISTANT[1]]}
            statuses[word] = httpx.post(f"{work.url}/v1/score", json=body, timeout=60, trust_env=False).status_code

        work.served.scheduler.submit(CallTask(lambda _: hold.wait(30)))
        wait_until(lambda: work.served.scheduler.running == 1, "the first should run")
        asking = []
        for number, word in enumerate(("bad", "good"), start=1):
            asking.append(threading.Thread(target=ask, args=(word,)))
            asking[-1].start()
            wait_until(lambda n=number: work.served.scheduler.waiting == n, "the request should wait")
        hold.set()
        for thread in asking:
            thread.join(30)
    assert statuses == {"bad": 503, "good": 200}


def test_a_tools_message_is_hashed_as_the_files_are_read(server):
    messages = [ASSISTANT[0], {"role": "tool", "content": "{}"}, ASSISTANT[1]]
    answer = server.post("/v1/score", {"messages": messages}).json()
    assert [v["content_hash"] for v in answer["verdicts"]] == [read_messages(messages, Place("a file")).content_hash]


@pytest.mark.parametrize(("retryable", "seconds"), [(True, 5), (False, None)])
def test_an_error_among_the_events_says_whether_it_may_pass(retryable, seconds):
    def answer(conversation, turn):
        raise BackendError("down", retryable=retryable)

    with at_work(FakeJudge(answer=answer)) as work:
        text = work.post("/v1/score", {"messages": ASSISTANT, "stream": True}).text
    told = json.loads(text.partition("event: error\ndata: ")[2])
    assert (told["status"], told["retry_after"]) == (503, seconds)
