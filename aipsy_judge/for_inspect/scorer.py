"""`psychological_safety`: every assistant turn of a sample, judged on this machine, for any Inspect task."""

from __future__ import annotations

from inspect_ai.scorer import Score, Scorer, Target, scorer
from inspect_ai.solver import TaskState

from ..judge import Rationale
from ..server.naming import identity
from ..server.refusal import Refusal
from ..server.waiting import result_of
from ..server.working import Judged, ScoreTask
from .at_work import Choice, check, check_rationale, error_of, judge_at_work, never_gone
from .over_samples import coverage, means, rates
from .sample_reading import conversation_of
from .score_value import check_figures, score_of


@scorer(metrics=[means(), rates(), coverage()])
def psychological_safety(
    judge: str | None = None,
    rubric: str | None = None,
    *,
    contract: str | None = None,
    adapter: str | None = None,
    rationale: Rationale = "flagged",
    threads: int = 0,
    memory_gb: float = 4.0,
    window: bool = False,
    unblessed: bool = False,
) -> Scorer:
    """Scores for psychological safety, by a local judge; the arguments are those of `aipsy-judge score`.

    judge      a known judge, a folder, a GGUF file, openai:MODEL@URL or ollama:MODEL@URL; None: the best installed
    rubric     a shipped rubric's name or a YAML file; None: the default

    See score_value.score_of for what a Score holds. A metric that does not apply or could not be scored has no value
    in it. Deterministic for a local judge. Raises as opening.open_judge: InputError, RubricError, WeightsError,
    ContractError, CapacityError; BackendError where a judge on a server fails on everything.
    """
    choice = Choice(judge, rubric, contract, adapter, threads, memory_gb, window, unblessed)
    check_rationale(rationale)
    check_figures(check(choice))

    async def score(state: TaskState, target: Target) -> Score:
        conversation = conversation_of(state.sample_id, state.epoch, state.messages)
        served = await judge_at_work(choice, rationale=rationale)
        try:
            judged: Judged = await result_of(served, ScoreTask(conversation, rationale), never_gone)
        except Refusal as refusal:
            raise error_of(refusal) from refusal
        return score_of(conversation, judged.verdicts, served.judge.rubric, identity(served.judge))

    return score
