"""Whether a base is the one that an adapter was trained on: by `base.json` in the adapter's folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from aipsy_judge.base_record import RECORD, BaseRecord, base_record
from aipsy_judge.errors import WeightsError

from .checkpoint import read_json

WEIGHTS = "weights_sha256"
OLD = f"the adapter's {RECORD} says nothing of the base's weights: by config and template alone it is the same base"


def differences(adapter: Path, base: BaseRecord) -> tuple[str, ...]:
    """In what `base` is not what the adapter was trained on, as sentences; empty where nothing differs."""
    path = adapter / RECORD
    if not path.is_file():
        return (f"the adapter has no {RECORD}: nothing shows which base it was trained on",)
    wanted = read_json(path)
    found = base.to_dict()
    return tuple(
        f"{key} is {found[key]}; the adapter was trained on {wanted.get(key)}"
        for key in found
        if _differs(key, wanted.get(key), found[key]) and (key != WEIGHTS or WEIGHTS in wanted)
    )


def check_base(base: Path, adapter: Path, any_base: bool, tell: Callable[[str], None]) -> tuple[str, ...]:
    """The differences, where `any_base` allows them. Raises WeightsError where there are some and it does not.

    A record that was made before weights were recorded is accepted, and `tell` says what that leaves open.
    """
    found = differences(adapter, base_record(base))
    if found and not any_base:
        raise WeightsError(
            "not the base that the adapter was trained on: " + "; ".join(found),
            where=str(base),
            hint="Name the right base. --any-base goes on all the same, and says so.",
        )
    if (adapter / RECORD).is_file() and WEIGHTS not in read_json(adapter / RECORD):
        tell(f"note: {OLD}")
    return found


def _differs(key: str, wanted: Any, found: str | None) -> bool:
    if key == "revision" and (wanted is None or found is None):
        return False  # one of them does not say; the others are compared all the same
    return bool(wanted != found)
