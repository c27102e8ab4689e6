"""A recipe from its file and `--set` options, checked whole before anything runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from aipsy_judge.errors import InputError
from aipsy_judge.strict_yaml import load_yaml

from .recipe import Recipe, keys
from .recipe_faults import Fault, check, nearest


class RecipeError(InputError):
    """A recipe is not valid."""

    hint = "Every key with its unit and legal values stands in recipes/mini.yaml."


def load_recipe(path: str | Path, overrides: Sequence[str] = ()) -> Recipe:
    """`overrides`: "a.b=value", value as YAML; the last of equal ones holds. Raises RecipeError with every fault."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise RecipeError(f"cannot be read: {getattr(error, 'strerror', None) or error}", where=str(path)) from error
    return parse_recipe(text, overrides, where=str(path))


def parse_recipe(text: str, overrides: Sequence[str] = (), *, where: str = "recipe") -> Recipe:
    """The same from YAML text."""
    try:
        data = load_yaml(text)
    except yaml.YAMLError as error:
        raise RecipeError(f"not valid YAML: {error}", where=where) from error
    if not isinstance(data, dict):
        raise RecipeError("a recipe is a mapping with name, base, data, ...", where=where)
    lines = {path: f"line {line}" for path, line in _lines(yaml.compose(text, Loader=yaml.SafeLoader))}
    refused: list[Fault] = []
    for override in overrides:
        fault = _set(data, override)
        if fault is not None:
            refused.append(fault)
        else:
            lines[override.partition("=")[0].strip()] = "--set"
    recipe, faults = check(data)
    if recipe is None or refused:
        raise _error([*refused, *faults], lines, where)
    return recipe


def _error(faults: Sequence[Fault], lines: dict[str, str], where: str) -> RecipeError:
    told = [f"  {_place(fault.key, lines)}{fault}" for fault in faults]
    count = f"{len(told)} fault{'s' if len(told) > 1 else ''}"
    return RecipeError(f"{count} in the recipe:\n" + "\n".join(told), where=where)


def _place(key: str, lines: dict[str, str]) -> str:
    """Where the key stands, or the section that lacks it."""
    while key:
        if key in lines:
            return f"{lines[key]}: "
        key = key.rpartition(".")[0]
    return ""


def _lines(node: Any, before: str = "") -> Iterator[tuple[str, int]]:
    """(dotted path, line from 1) of every key."""
    if not isinstance(node, yaml.MappingNode):
        return
    for key, value in node.value:
        if isinstance(key, yaml.ScalarNode):
            yield f"{before}{key.value}", key.start_mark.line + 1
            yield from _lines(value, f"{before}{key.value}.")


def _set(data: dict[str, Any], override: str) -> Fault | None:
    """Put one override into the data, or say why it cannot be."""
    path, equals, text = override.partition("=")
    path = path.strip()
    if not equals or not path:
        return Fault(f"--set {override}", "is not KEY=VALUE", "such as train.steps=100")
    if not any(known == path or known.startswith(path + ".") for known, _ in keys()):
        return Fault(f"--set {path}", f"no such key; {nearest(path)}")
    try:
        value = load_yaml(text)
    except yaml.YAMLError as error:
        return Fault(f"--set {path}", f"{text!r} is not a YAML value: {error}")
    *sections, name = path.split(".")
    place = data
    for section in sections:
        inner = place.get(section)
        if inner is None:
            inner = place[section] = {}
        if not isinstance(inner, dict):
            return Fault(f"--set {path}", f"{section} is not a mapping in the file")
        place = inner
    place[name] = value
    return None
