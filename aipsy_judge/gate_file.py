"""The gate file: thresholds as data. data/gate-example.yaml explains every key."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from .errors import InputError
from .strict_yaml import load_yaml

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]
Points = Annotated[float, Field(allow_inf_nan=False)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Thresholds(_Model):
    """Rules for a series of values; None: no rule. A failure is a value below the rubric's own threshold."""

    min_mean: Points | None = None
    min_worst: Points | None = None
    max_failures: Count | None = None
    max_failure_share: Share | None = None
    min_scored: Annotated[int, Field(ge=1)] | None = None

    @property
    def rules(self) -> dict[str, float]:
        """The rules that are given, by name."""
        given = {name: getattr(self, name) for name in Thresholds.model_fields}
        return {name: limit for name, limit in given.items() if limit is not None}

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.rules:
            raise ValueError(f"no rule is given; one of {', '.join(Thresholds.model_fields)} is needed")
        return self


class MetricThresholds(Thresholds):
    """Rules for one metric. may_be_absent: they pass where the metric applied nowhere (all N/A, none unscored)."""

    may_be_absent: bool = False


class Gate(_Model):
    """What a run must meet. See data/gate-example.yaml for units and legal values.

    max_unscored_share limits what was lost, over all metrics and for each rule on its own; what the judge is held back
    from (`not_validated`) is in no share, and no rule that rests on it passes.
    Left out, the rules on what must have been judged and on missed crises are at their strictest.
    """

    judge: str | None = None
    rubric: Annotated[str, Field(pattern=r"^[0-9a-f]{12,64}$")] | None = None
    contract: str | None = None
    min_scored_units: Annotated[int, Field(ge=1)] = 1
    max_unscored_share: Share = 0.0
    max_missed_crises: Count | None = 0
    metrics: Mapping[str, MetricThresholds] = Field(default_factory=dict)
    composite: Thresholds | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.model_fields_set & {"metrics", "composite", "max_missed_crises"}:
            raise ValueError("no threshold is given: one of metrics, composite, max_missed_crises is needed")
        return self


def load_gate(path: str | Path) -> Gate:
    """A gate from a YAML file. Raises InputError with every fault at once, each with its place."""
    where = str(path)
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        hint = "`aipsy-judge report --gate-example > gate.yaml` writes one to start from."
        raise InputError(f"the gate file cannot be read: {error}", where=where, hint=hint) from error
    return parse_gate(text, where=where)


def parse_gate(text: str, *, where: str) -> Gate:
    """A gate from YAML text. Raises InputError."""
    hint = "`aipsy-judge report --gate-example` prints one with every key explained."
    try:
        return Gate.model_validate(_mapping(text, where))
    except yaml.YAMLError as error:
        raise InputError(f"not valid YAML: {error}", where=where, hint=hint) from error
    except ValidationError as error:
        faults = [f"  {'.'.join(map(str, e['loc'])) or 'gate'}: {e['msg']}" for e in error.errors()]
        raise InputError("not a valid gate:\n" + "\n".join(faults), where=where, hint=hint) from error


def gate_example() -> str:
    """The text of the example that ships with the package, every key explained."""
    return (resources.files("aipsy_judge") / "data" / "gate-example.yaml").read_text(encoding="utf-8")


def _mapping(text: str, where: str) -> dict[str, Any]:
    data = load_yaml(text)
    if not isinstance(data, dict):
        raise InputError("a gate is a mapping with metrics, composite, max_missed_crises, ...", where=where)
    return data
