"""Every fault of a recipe at once: unknown keys with the nearest known one, and what is legal where a value is not."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError

from aipsy_judge.bench_contract import misfit
from aipsy_judge.errors import RubricError
from aipsy_judge.rubric import load_rubric

from .recipe import Lora, Memory, Recipe, Render, Strata, keys, section_of
from .recipe_section import Section

S = TypeVar("S", bound=Section)


@dataclass(frozen=True, slots=True)
class Fault:
    """`key` is a dotted path, "" for the recipe as a whole; `legal` what may stand there."""

    key: str
    message: str
    legal: str | None = None

    def __str__(self) -> str:
        legal = f" (legal: {self.legal})" if self.legal else ""
        return f"{self.key or 'recipe'}: {self.message}{legal}"


def check(data: Mapping[str, Any]) -> tuple[Recipe | None, list[Fault]]:
    """The recipe and no faults, or None and all of them, in the order of the keys."""
    known, faults = _without_unknown(data, Recipe, "")
    recipe = None
    try:
        recipe = Recipe.model_validate(known)
    except ValidationError as error:
        faults += [_fault(e) for e in error.errors(include_url=False)]
    faults += [fault for rule in (_rubric, _rationale, _experts) for fault in rule(known)]
    return (None if faults else recipe), faults


def nearest(path: str) -> str:
    """A hint at the key that was meant: the nearest in the same section, or of the same name in another.

    >>> nearest("train.epocs")
    'did you mean train.epochs?'
    >>> nearest("train.rank")
    'did you mean lora.rank?'
    """
    before, _, name = path.rpartition(".")
    paths = [p for p, _ in keys()]
    inside = before + "." if before else ""
    own = list(dict.fromkeys(p.removeprefix(inside).partition(".")[0] for p in paths if p.startswith(inside)))
    close = difflib.get_close_matches(name, own, n=1, cutoff=0.7)
    if close:
        return f"did you mean {inside}{close[0]}?"
    elsewhere = [p for p in paths if p.rpartition(".")[2] == name]
    if elsewhere:
        return f"did you mean {' or '.join(elsewhere)}?"
    return f"known: {', '.join(own)}"


def _without_unknown(
    data: Mapping[str, Any], section: type[Section], before: str
) -> tuple[dict[str, Any], list[Fault]]:
    """The data without keys that no section has, so that one of them does not hide other faults."""
    fields = {field.alias or name: field for name, field in section.model_fields.items()}
    kept: dict[str, Any] = {}
    faults: list[Fault] = []
    for key, value in data.items():
        path = f"{before}{key}"
        if key not in fields:
            faults.append(Fault(path, f"no such key; {nearest(path)}"))
            continue
        inner = section_of(fields[key].annotation)
        if inner is not None and isinstance(value, Mapping):
            value, deeper = _without_unknown(value, inner, path + ".")
            faults += deeper
        kept[key] = value
    return kept, faults


def _fault(error: Any) -> Fault:
    """One of pydantic's errors; of a list's item, the list is named."""
    legal = dict(keys())
    place = [str(p) for p in error["loc"]]
    while place and ".".join(place) not in legal and not _is_section(".".join(place)):
        place.pop()
    path = ".".join(place)
    if error["type"] == "missing":
        return Fault(path, "is needed", legal.get(path) or None)
    message = str(error["msg"]).removeprefix("Value error, ")
    if error["type"] == "model_type":
        return Fault(path, f"is {_shown(error['input'])}, a mapping is wanted", f"the keys {', '.join(_inside(path))}")
    if error["type"] == "value_error":
        return Fault(path, message)
    if legal.get(path):
        return Fault(path, f"is {_shown(error['input'])}", legal[path])
    return Fault(path, f"is {_shown(error['input'])}: {message[:1].lower()}{message[1:]}")


def _is_section(path: str) -> bool:
    return bool(_inside(path))


def _inside(section: str) -> list[str]:
    return [p.removeprefix(section + ".") for p, _ in keys() if p.startswith(section + ".")]


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _section(known: Mapping[str, Any], key: str, kind: type[S]) -> S | None:
    """The section if it is sound by itself; its own faults are told elsewhere."""
    try:
        return kind.model_validate(known.get(key, {}))
    except ValidationError:
        return None


def _rubric(known: Mapping[str, Any]) -> Iterator[Fault]:
    """The rubric can be read and has the metrics that are named; the frozen prompt goes with its own rubric."""
    name = known.get("rubric", Recipe.model_fields["rubric"].default)
    if not isinstance(name, str) or not name:
        return
    try:
        rubric = load_rubric(name)
    except RubricError as error:
        yield Fault("rubric", str(error))
        return
    unfit = misfit(rubric) if known.get("contract") == "aipsy-bench-v1" else None
    if unfit is not None:
        yield Fault("contract", f"aipsy-bench-v1 has its own six metrics; the rubric {rubric.name} {unfit}")
    strata = _section(known, "strata", Strata)
    told = isinstance(known.get("strata"), Mapping) and "kept_apart" in known["strata"]
    strange = [m for m in strata.kept_apart if m not in rubric.metric_names] if strata is not None and told else []
    if strange:
        yield Fault(
            "strata.kept_apart",
            f"rubric {rubric.name} has no metric {', '.join(strange)}",
            f"a list of {', '.join(rubric.metric_names)}",
        )


def _rationale(known: Mapping[str, Any]) -> Iterator[Fault]:
    """The frozen prompt asks for context that no rater gives, before the scores. Words that follow labels nobody gave
    are taught by no contract, so under this one there would be none."""
    render = _section(known, "render", Render)
    if known.get("contract") == "aipsy-bench-v1" and render is not None and render.rationale != "never":
        yield Fault(
            "render.rationale",
            f"is {render.rationale}; under aipsy-bench-v1 a rationale follows labels of context that no rater gave, "
            "and none can be taught",
            "never",
        )


def _experts(known: Mapping[str, Any]) -> Iterator[Fault]:
    lora, memory = _section(known, "lora", Lora), _section(known, "memory", Memory)
    if lora is not None and memory is not None and lora.experts and memory.base_bits == 4:
        yield Fault(
            "lora.experts",
            "routed experts in 4 bits are frozen; they can be adapted only where memory.base_bits is 16",
        )
