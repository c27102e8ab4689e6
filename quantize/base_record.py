"""Which base an adapter was trained on: `base.json` in the adapter's folder, against the base at hand."""

from __future__ import annotations

import hashlib
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from aipsy_judge.errors import WeightsError
from aipsy_judge.model_folder import folder_template

from .checkpoint import read_json

RECORD = "base.json"
_REVISION = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class BaseRecord:
    """revision          commit of the base on its hub, or sha256 of the file it was dequantised from; None: unknown
    config_sha256     of config.json, byte by byte
    template_sha256   of the chat template's text as UTF-8; None where the base has none
    """

    revision: str | None
    config_sha256: str
    template_sha256: str | None

    def to_dict(self) -> dict[str, str | None]:
        return asdict(self)


def record_of(folder: Path) -> BaseRecord:
    """The record of the base in `folder`."""
    template = folder_template(folder)
    return BaseRecord(
        _revision(folder),
        hashlib.sha256((folder / "config.json").read_bytes()).hexdigest(),
        None if template is None else hashlib.sha256(template.encode("utf-8")).hexdigest(),
    )


def _revision(folder: Path) -> str | None:
    origin = folder / "dequantised.json"
    if origin.is_file():
        found = read_json(origin).get("source_sha256")
        return str(found) if found else None
    resolved = folder.resolve()  # the hub's cache: snapshots/<commit>
    return resolved.name if resolved.parent.name == "snapshots" and _REVISION.fullmatch(resolved.name) else None


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
        if _differs(key, wanted.get(key), found[key])
    )


def check_base(base: Path, adapter: Path, any_base: bool) -> tuple[str, ...]:
    """The differences, where `any_base` allows them. Raises WeightsError where there are some and it does not."""
    found = differences(adapter, record_of(base))
    if found and not any_base:
        raise WeightsError(
            "not the base that the adapter was trained on: " + "; ".join(found),
            where=str(base),
            hint="Name the right base. --any-base goes on all the same, and says so.",
        )
    return found


def _differs(key: str, wanted: Any, found: str | None) -> bool:
    if key == "revision" and (wanted is None or found is None):
        return False  # one of them does not say; the other two are compared all the same
    return bool(wanted != found)
