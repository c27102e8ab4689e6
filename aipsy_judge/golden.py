"""Golden turns: what a judge read on the machine it was made on, replayed to prove another machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from .conversation import ROLES, Conversation, Message, Role
from .errors import InputError
from .judge import Judge
from .strict_yaml import load_yaml
from .verdict import Verdict

DEFAULT_TOLERANCE = 0.02


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class GoldenMessage(_Model):
    role: Role
    content: str


class GoldenTurn(_Model):
    """`readings`: for metrics and flags, the probability of each legal option. `tolerance` is the largest difference
    of one probability that counts as the same; another machine's arithmetic moves the last digits."""

    conversation: list[GoldenMessage]
    turn: int | None
    readings: dict[str, dict[str, float]]
    tolerance: float = Field(default=DEFAULT_TOLERANCE, gt=0, lt=1)

    @field_validator("readings", mode="before")
    @classmethod
    def _options_are_text(cls, readings: Any) -> Any:
        """YAML makes numbers and booleans of options that are written without quotes."""
        if not isinstance(readings, Mapping):
            return readings
        return {
            name: {_option(o): p for o, p in options.items()} if isinstance(options, Mapping) else options
            for name, options in readings.items()
        }


def _option(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True, slots=True)
class Replayed:
    """One slot of a golden turn. difference: the largest between two probabilities, None where there was no reading
    to compare."""

    item: int
    name: str
    difference: float | None
    tolerance: float

    @property
    def ok(self) -> bool:
        return self.difference is not None and self.difference <= self.tolerance


def load_golden(path: Path) -> list[GoldenTurn]:
    """The golden turns of a manifest. Raises InputError where it has none, or they are not valid."""
    try:
        data = load_yaml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", where=str(path)) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"not valid YAML: {error}", where=str(path)) from error
    turns = data.get("golden_turns") if isinstance(data, Mapping) else None
    if not turns:
        raise InputError("the manifest has no golden turns: there is nothing to prove this machine by", where=str(path))
    return parse_golden(turns, where=str(path))


def parse_golden(data: Sequence[Mapping[str, Any]], *, where: str) -> list[GoldenTurn]:
    """Golden turns from a manifest's data. Raises InputError with the first fault's place."""
    try:
        return [GoldenTurn.model_validate(turn) for turn in data]
    except ValidationError as error:
        fault = error.errors()[0]
        place = ".".join(map(str, fault["loc"]))
        raise InputError(f"golden turns: {place}: {fault['msg']}", where=where) from error


def replay(judge: Judge, turns: Iterable[GoldenTurn]) -> list[Replayed]:
    """Judge each golden conversation and compare the probabilities at the slots of its turn."""
    found: list[Replayed] = []
    for number, golden in enumerate(turns, start=1):
        messages = tuple(Message(m.role, m.content) for m in golden.conversation)
        verdicts = judge.score(Conversation(f"golden-{number}", messages), rationale="never")
        verdict = next((v for v in verdicts if v.turn == golden.turn), None)
        for name, expected in golden.readings.items():
            seen = distribution(verdict, name) if verdict is not None else None
            found.append(Replayed(number, name, _difference(expected, seen), golden.tolerance))
    return found


def golden_turns(
    judge: Judge, conversation: Sequence[Mapping[str, str]], *, tolerance: float = DEFAULT_TOLERANCE
) -> list[dict[str, Any]]:
    """Every unit of a conversation (messages with role and content) as golden turns for a manifest, read here."""
    messages = tuple(Message(_role(m["role"]), m["content"]) for m in conversation)
    found = []
    for verdict in judge.score(Conversation("golden", messages), rationale="never"):
        names = [*verdict.scores, *verdict.flags]
        readings = {n: {o: round(p, 6) for o, p in d.items()} for n in names if (d := distribution(verdict, n))}
        turn = {"conversation": [dict(m) for m in conversation], "turn": verdict.turn}
        found.append({**turn, "readings": readings, "tolerance": tolerance})
    return found


def distribution(verdict: Verdict, name: str) -> Mapping[str, float] | None:
    """The probabilities at the slot of a metric or a flag; None where there are none."""
    if name in verdict.flags:
        return verdict.flags[name].distribution
    score = verdict.scores.get(name)
    return score.reading.distribution if score is not None and score.reading is not None else None


def _role(name: str) -> Role:
    for role in ROLES:
        if role == name:
            return role
    raise ValueError(f"unknown role {name!r}")


def _difference(expected: Mapping[str, float], seen: Mapping[str, float] | None) -> float | None:
    """None where the options are not the same ones: another rubric or contract, not another machine."""
    if seen is None or seen.keys() != expected.keys():
        return None
    return max(abs(seen[option] - p) for option, p in expected.items())
