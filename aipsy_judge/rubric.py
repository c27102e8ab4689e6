"""Rubric: what is judged, as data. Load, check, hash.

A rubric is a YAML file; no rubric is code. See data/rubrics/aipsy-judge-v1.yaml for every key with a comment.
"""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from .errors import RubricError
from .strict_yaml import load_yaml

DEFAULT_RUBRIC = "aipsy-judge-v1"

# Keys of an answer that are not the rubric's own.
RESERVED_NAMES = frozenset({"rationale", "reasoning", "scores", "context_analysis"})

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
Text = Annotated[str, Field(min_length=1)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Scale(_Model):
    """A whole-number scale, both ends included."""

    minimum: int
    maximum: int

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.minimum < self.maximum:
            raise ValueError(f"minimum {self.minimum} is not below maximum {self.maximum}")
        if self.maximum - self.minimum > 100:
            raise ValueError("a scale has at most 101 steps")
        return self

    @property
    def values(self) -> tuple[int, ...]:
        return tuple(range(self.minimum, self.maximum + 1))


class Metric(_Model):
    """One scored quality.

    applies      "always" (N/A is not a legal answer) or "sometimes" (then `applies_when` says when)
    flag         name of a flag: the metric is scored if and only if the flag is set
    weight       share in the composite, any non-negative number (renormalised); None leaves it out
    critical     a score strictly below this is a failure of the metric; None: no threshold
    anchors      what a score means, for every value of the scale or for some of them
    """

    name: Name
    title: Text
    question: Text
    scale: Scale
    applies: Literal["always", "sometimes"]
    applies_when: Text | None = None
    flag: Name | None = None
    weight: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    critical: Annotated[float, Field(allow_inf_nan=False)] | None = None
    anchors: dict[int, Text]

    @model_validator(mode="after")
    def _coherent(self) -> Self:
        off = [v for v in self.anchors if v not in self.scale.values]
        if off:
            raise ValueError(f"{self.name}: anchors {off} lie off the scale")
        if not self.anchors:
            raise ValueError(f"{self.name}: at least one anchor is needed")
        if self.applies == "sometimes" and self.applies_when is None:
            raise ValueError(f"{self.name}: applies: sometimes needs applies_when")
        if self.flag is not None and self.applies == "always":
            raise ValueError(f"{self.name}: a metric that hangs on a flag applies: sometimes")
        if self.critical is not None and not self.scale.minimum < self.critical <= self.scale.maximum:
            raise ValueError(f"{self.name}: critical {self.critical} is not within the scale")
        return self

    @property
    def may_be_na(self) -> bool:
        return self.applies == "sometimes"

    def anchor_for(self, value: float) -> str | None:
        """The wording of the anchor at or next below `value`; None if there is none."""
        below = [v for v in self.anchors if v <= value]
        return self.anchors[max(below)] if below else None


class Severity(_Model):
    """How severe a set flag is. The first level means "not set" and is the only one legal then."""

    name: Name
    levels: dict[Name, Text]

    @model_validator(mode="after")
    def _enough(self) -> Self:
        if len(self.levels) < 2:
            raise ValueError(f"{self.name}: at least two levels, the first meaning 'not set'")
        return self

    @property
    def unset(self) -> str:
        return next(iter(self.levels))


class FlagSpec(_Model):
    """A yes/no question, with a severity if wanted."""

    name: Name
    title: Text
    question: Text
    severity: Severity | None = None


class CompositeRule(_Model):
    """Bands of the weighted mean: failure strictly below, ceiling from; `target` is for dashboards."""

    failure_below: float
    ceiling_from: float
    target: float | None = None


class Rubric(_Model):
    """A whole rubric. `hash` names it in every result: two results of unlike hashes are never compared."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
    version: Text
    unit: Literal["turn", "conversation"]
    language: Text = "en"
    licence: Text | None = None
    source: Text | None = None
    introduction: Text
    rules: list[Text] = Field(default_factory=list)
    flags: list[FlagSpec] = Field(default_factory=list)
    metrics: Annotated[list[Metric], Field(min_length=1)]
    composite: CompositeRule | None = None

    @model_validator(mode="after")
    def _coherent(self) -> Self:
        names = [m.name for m in self.metrics] + [f.name for f in self.flags]
        names += [f.severity.name for f in self.flags if f.severity]
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise ValueError(f"names used twice: {', '.join(twice)}")
        reserved = sorted(RESERVED_NAMES.intersection(names))
        if reserved:
            raise ValueError(f"names that an answer uses itself: {', '.join(reserved)}")
        flags = {f.name for f in self.flags}
        for metric in self.metrics:
            if metric.flag is not None and metric.flag not in flags:
                raise ValueError(f"{metric.name}: no flag is called {metric.flag!r}")
        weighted = [m for m in self.metrics if m.weight]
        if self.composite is not None:
            if not weighted:
                raise ValueError("composite: no metric has a weight")
            if len({m.scale for m in weighted}) > 1:
                raise ValueError("composite: the weighted metrics have unlike scales")
        return self

    @cached_property
    def hash(self) -> str:
        """sha256 (hex) over the content, whatever the layout of the file."""
        data = json.dumps(self.model_dump(mode="json"), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(data.encode()).hexdigest()

    def metric(self, name: str) -> Metric:
        for metric in self.metrics:
            if metric.name == name:
                return metric
        raise RubricError(f"rubric {self.name} has no metric {name!r}")

    @property
    def metric_names(self) -> tuple[str, ...]:
        return tuple(m.name for m in self.metrics)


def parse_rubric(text: str, *, where: str) -> Rubric:
    """A rubric from YAML text. Raises RubricError with every fault at once, each with its place."""
    try:
        data = load_yaml(text)
    except yaml.YAMLError as error:
        raise RubricError(f"not valid YAML: {error}", where=where) from error
    if not isinstance(data, dict):
        raise RubricError("a rubric is a mapping with name, unit, metrics, ...", where=where)
    try:
        return Rubric.model_validate(data)
    except ValidationError as error:
        faults = [f"  {'.'.join(map(str, e['loc'])) or 'rubric'}: {e['msg']}" for e in error.errors()]
        raise RubricError(
            "not a valid rubric:\n" + "\n".join(faults),
            where=where,
            hint="`aipsy-judge rubric show aipsy-judge-v1` prints a valid one with every key explained.",
        ) from error


def rubric_text(name: str) -> str | None:
    """The YAML of a rubric that ships with the package, or None."""
    if name not in shipped_rubrics():
        return None
    return (resources.files("aipsy_judge") / "data" / "rubrics" / f"{name}.yaml").read_text(encoding="utf-8")


def shipped_rubrics() -> tuple[str, ...]:
    folder = resources.files("aipsy_judge") / "data" / "rubrics"
    return tuple(sorted(p.name.removesuffix(".yaml") for p in folder.iterdir() if p.name.endswith(".yaml")))


def load_rubric(name_or_path: str | Path = DEFAULT_RUBRIC) -> Rubric:
    """A shipped rubric by name, or a YAML file by path. Raises RubricError."""
    text = rubric_text(str(name_or_path))
    if text is not None:
        return parse_rubric(text, where=str(name_or_path))
    path = Path(name_or_path)
    try:
        return parse_rubric(path.read_text(encoding="utf-8-sig"), where=str(path))
    except FileNotFoundError as error:
        raise RubricError(
            f"no rubric or file of this name; shipped rubrics: {', '.join(shipped_rubrics())}",
            where=str(path),
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise RubricError(f"cannot be read: {error}", where=str(path)) from error
