"""The queue before the judge's thread. Tasks here are plain functions; no judge is involved."""

from __future__ import annotations

import threading
import time

import pytest
from server_at_work import wait_until

from aipsy_judge.server.scheduler import Busy, Cancelled, Scheduler


class Gate:
    """A task that waits to be let through, asking on the way whether it should go on."""

    def __init__(self):
        self.begun, self.open = threading.Event(), threading.Event()

    def __call__(self, check):
        self.begun.set()
        while not self.open.wait(0.002):
            check()
        return "through"


def handle(jobs, check):
    for job in jobs:
        job.done.set_result(job.task(check))


@pytest.fixture
def scheduler():
    made = Scheduler(handle, limit=2)
    made.start()
    yield made
    made.stop(0)
    assert not made.alive


def test_jobs_are_done_one_after_another_in_their_order(scheduler):
    seen = []
    first = Gate()
    jobs = [scheduler.submit(first)]
    assert first.begun.wait(5)
    jobs += [scheduler.submit(lambda _, n=n: seen.append(n)) for n in (1, 2)]
    assert seen == []
    first.open.set()
    assert jobs[0].done.result(5) == "through"
    jobs[2].done.result(5)
    assert seen == [1, 2]


def test_a_full_queue_refuses_and_says_when_to_come_again(scheduler):
    gate = Gate()
    scheduler.submit(gate)
    assert gate.begun.wait(5)
    waiting = [scheduler.submit(lambda _: None) for _ in range(2)]
    with pytest.raises(Busy) as busy:
        scheduler.submit(lambda _: None)
    assert 1 <= busy.value.retry_after <= 600
    gate.open.set()
    for job in waiting:
        job.done.result(5)
    scheduler.submit(lambda _: None).done.result(5)  # there is room again
    wait_until(lambda: scheduler.counts.finished == 4, "four jobs were done")
    assert scheduler.counts.refused == 1


def test_a_cancelled_job_that_waits_leaves_the_queue_and_is_never_begun(scheduler):
    gate, begun = Gate(), []
    scheduler.submit(gate)
    assert gate.begun.wait(5)
    job = scheduler.submit(lambda _: begun.append(1))
    scheduler.cancel(job)
    assert scheduler.waiting == 0
    with pytest.raises(Cancelled):
        job.done.result(5)
    gate.open.set()
    scheduler.submit(lambda _: None).done.result(5)
    assert begun == []


def test_a_cancelled_job_that_runs_ends_at_its_next_check(scheduler):
    gate = Gate()
    job = scheduler.submit(gate)
    assert gate.begun.wait(5)
    scheduler.cancel(job)
    with pytest.raises(Cancelled):
        job.done.result(5)
    assert scheduler.submit(lambda _: "next").done.result(5) == "next"


def test_a_task_that_fails_takes_neither_the_thread_nor_the_next_task_with_it(scheduler):
    def fail(_):
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        scheduler.submit(fail).done.result(5)
    assert scheduler.submit(lambda _: 1).done.result(5) == 1


def test_a_handler_that_forgets_a_job_leaves_nobody_waiting():
    forgetful = Scheduler(lambda jobs, check: None, limit=1)
    forgetful.start()
    with pytest.raises(RuntimeError, match="without a result"):
        forgetful.submit(None).done.result(5)
    forgetful.stop(0)


def test_stopping_refuses_what_waits_and_lets_what_runs_finish():
    scheduler, gate = Scheduler(handle, limit=4), Gate()
    scheduler.start()
    running = scheduler.submit(gate)
    assert gate.begun.wait(5)
    waiting = scheduler.submit(lambda _: None)
    stopping = threading.Thread(target=scheduler.stop, args=(30,))
    stopping.start()
    with pytest.raises(Busy):
        waiting.done.result(5)
    with pytest.raises(Busy):
        scheduler.submit(lambda _: None)
    gate.open.set()
    assert running.done.result(5) == "through"
    stopping.join(5)
    assert not scheduler.alive


def test_what_runs_longer_than_the_grace_is_ended():
    scheduler, gate = Scheduler(handle, limit=4), Gate()
    scheduler.start()
    running = scheduler.submit(gate)
    assert gate.begun.wait(5)
    begun = time.monotonic()
    scheduler.stop(0.05)
    assert time.monotonic() - begun < 5
    with pytest.raises(Cancelled):
        running.done.result(0)


def test_jobs_that_may_join_are_taken_together_up_to_the_width_and_others_keep_their_place():
    taken = []

    def note(jobs, check):
        taken.append([j.task for j in jobs])
        for job in jobs:
            job.done.set_result(None)

    scheduler = Scheduler(note, limit=9, width=3, may_join=lambda a, b: a[0] == b[0])
    jobs = [scheduler.submit(task) for task in ("a1", "b1", "a2", "a3", "a4", "b2")]
    scheduler.start()
    for job in jobs:
        job.done.result(5)
    scheduler.stop(1)
    assert taken == [["a1", "a2", "a3"], ["b1", "b2"], ["a4"]]


def test_a_group_goes_on_while_anybody_of_it_waits():
    gate, results = Gate(), []

    def together(jobs, check):
        results.append(gate(check))
        for job in jobs:
            job.done.set_result(results[-1])

    scheduler = Scheduler(together, limit=9, width=2, may_join=lambda a, b: True)
    first, second = scheduler.submit(1), scheduler.submit(2)
    scheduler.start()
    assert gate.begun.wait(5)
    scheduler.cancel(first)
    time.sleep(0.02)
    gate.open.set()
    assert second.done.result(5) == "through"
    scheduler.stop(1)
