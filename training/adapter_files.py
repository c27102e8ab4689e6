"""An adapter's folder: its two matrices a weight as safetensors, peft's settings, and which base it was trained on."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from aipsy_judge.atomic import write_text
from aipsy_judge.strict_json import dumps

from .dequantised import RECORD as DEQUANTISED

CONFIG, WEIGHTS, BASE = "adapter_config.json", "adapter_model.safetensors", "base.json"
_COMMIT = re.compile(r"[0-9a-f]{40}")


def save_adapter(
    model: Any,
    folder: Path,
    base: Path,
    revision: str | None = None,
    named: str | None = None,
    state: dict[str, Any] | None = None,
) -> None:
    """Write the adapter of a PeftModel into `folder`, with the record of `base` that merging checks.

    named  what the settings call the base; its path on this machine where None
    state  the model's weights where the model itself holds only a process's part of them
    """
    folder.mkdir(parents=True, exist_ok=True)
    # "auto" would ask the model hub whether the base's vocabulary had been changed
    model.save_pretrained(folder, save_embedding_layers=False, state_dict=state)
    (folder / "README.md").unlink(missing_ok=True)  # peft's template of a card, empty
    if named is not None:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        write_text(folder / CONFIG, json.dumps({**config, "base_model_name_or_path": named}, indent=2) + "\n")
    write_text(folder / BASE, dumps(base_record(base, revision), indent=1) + "\n")


def base_record(folder: Path, revision: str | None = None) -> dict[str, str | None]:
    """revision (as given, else the hub's commit, else sha256 of the file that was dequantised), and sha256 of
    config.json and of the chat template's text (None where there is none)."""
    return {
        "revision": revision or _revision(folder),
        "config_sha256": hashlib.sha256((folder / "config.json").read_bytes()).hexdigest(),
        "template_sha256": _template_sha256(folder),
    }


def _revision(folder: Path) -> str | None:
    record = folder / DEQUANTISED
    if record.is_file():
        return str(json.loads(record.read_text(encoding="utf-8"))["source_sha256"])
    resolved = folder.resolve()  # the hub's cache: snapshots/COMMIT
    return resolved.name if resolved.parent.name == "snapshots" and _COMMIT.fullmatch(resolved.name) else None


def _template_sha256(folder: Path) -> str | None:
    """Of chat_template.jinja, else of the one in tokenizer_config.json (the one called default of several)."""
    file, settings = folder / "chat_template.jinja", folder / "tokenizer_config.json"
    if file.is_file():
        return hashlib.sha256(file.read_bytes()).hexdigest()
    found = json.loads(settings.read_text(encoding="utf-8")).get("chat_template") if settings.is_file() else None
    if isinstance(found, list):
        found = next((t.get("template") for t in found if t.get("name") == "default"), None)
    return None if found is None else hashlib.sha256(str(found).encode()).hexdigest()


def load_adapter(model: Any, folder: Path) -> Any:
    """`model` (not adapted yet) with the adapter of `folder`, frozen."""
    from .quiet import without_notices

    with without_notices():
        from peft import PeftModel

        return PeftModel.from_pretrained(model, folder, is_trainable=False, local_files_only=True)


def load_weights(model: Any, folder: Path) -> None:
    """Put the weights of an adapter's folder into a PeftModel that has one of the same shape. ValueError else."""
    from peft import set_peft_model_state_dict
    from safetensors.torch import load_file

    seen: Any = set_peft_model_state_dict(model, load_file(folder / WEIGHTS))
    missing = [name for name in seen.missing_keys if "lora_" in name]
    if missing or seen.unexpected_keys:
        raise ValueError(f"not this model's adapter: {(missing + list(seen.unexpected_keys))[:3]}")
