"""Which base an adapter is trained on: what training writes beside the adapter and merging holds a base against."""

from __future__ import annotations

import hashlib
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from .file_hash import combined_sha256, file_sha256
from .model_folder import folder_template
from .tensor_folder import CONFIG, read_json, weight_files

RECORD = "base.json"  # in the adapter's folder
DEQUANTISED = "dequantised.json"  # in a base's folder that was made from a quantised file
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class BaseRecord:
    """revision          commit of the base on its hub, or sha256 of the file it was dequantised from; None: unknown
    config_sha256     of config.json, byte by byte
    template_sha256   of the chat template's text as UTF-8; None where the base has none
    weights_sha256    of the files of weights together (file_hash.combined_sha256), as they lie in its folder
    """

    revision: str | None
    config_sha256: str
    template_sha256: str | None
    weights_sha256: str

    def to_dict(self) -> dict[str, str | None]:
        return asdict(self)


def base_record(folder: Path, revision: str | None = None) -> BaseRecord:
    """The record of the base in `folder`, of this `revision` where somebody names one. Raises WeightsError.

    Every file of weights is read once and its hash remembered: minutes for a large base.
    """
    template = folder_template(folder)
    return BaseRecord(
        revision or folder_revision(folder),
        hashlib.sha256((folder / CONFIG).read_bytes()).hexdigest(),
        None if template is None else hashlib.sha256(template.encode("utf-8")).hexdigest(),
        combined_sha256({name: file_sha256(folder / name) for name in weight_files(folder)}),
    )


def folder_revision(folder: Path) -> str | None:
    """Which revision a base's folder says that it holds, None where it does not say. Its weights are not read."""
    origin = folder / DEQUANTISED
    if origin.is_file():
        found = read_json(origin).get("source_sha256")
        return str(found) if found else None
    resolved = folder.resolve()  # the hub's cache: snapshots/COMMIT
    return resolved.name if resolved.parent.name == "snapshots" and _COMMIT.fullmatch(resolved.name) else None
