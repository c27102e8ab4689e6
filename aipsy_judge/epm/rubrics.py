"""The two rubrics of a pack, held to its space: a metric for every indicator and channel, on the same levels."""

from __future__ import annotations

from ..errors import RubricError
from ..rubric import Rubric, load_rubric
from .pack import Pack


def metric_name(level_id: str) -> str:
    """The metric that asks for an indicator or channel: C.1 -> c_1, C.prog -> c_prog."""
    return level_id.lower().replace(".", "_")


def start_rubric(pack: Pack) -> Rubric:
    """The rubric of the starting form. RubricError where it does not ask for just the pack's indicators."""
    rubric = load_rubric(pack.start_rubric)
    levels = set(range(pack.space.top_level + 1))
    _check(rubric, dict.fromkeys(pack.space.indicator_ids, levels))
    return rubric


def turn_rubric(pack: Pack, every: int = 1) -> Rubric:
    """The rubric of the turn form; with `every` above 1 it says how many replies are rated together.

    RubricError where it does not ask for just the pack's channels, or does not rate turns.
    """
    rubric = load_rubric(pack.turn_rubric)
    if rubric.unit != "turn":
        raise RubricError("a turn form rates turns", where=rubric.name, hint="Set unit: turn.")
    _check(
        rubric, {c: set(scores) for c, scores in zip(pack.space.channel_ids, pack.space.channel_scores, strict=True)}
    )
    if every == 1:
        return rubric
    rule = f"Rate the last {every} assistant messages together, as if they were one reply."
    return rubric.model_copy(update={"rules": [*rubric.rules, rule]})


def _check(rubric: Rubric, levels: dict[str, set[int]]) -> None:
    wanted = {metric_name(level_id): legal for level_id, legal in levels.items()}
    found = {m.name: set(m.scale.values) for m in rubric.metrics if m.applies == "always"}
    if found != wanted or len(found) != len(rubric.metrics) or rubric.flags:
        off = sorted(n for n in {*found, *wanted, *rubric.metric_names} if found.get(n) != wanted.get(n))
        raise RubricError(
            f"does not fit the pack: {', '.join(off) or 'it has flags'}",
            where=rubric.name,
            hint="A metric for every indicator or channel (C.1 -> c_1), on its levels, applies: always, and no flags.",
        )
