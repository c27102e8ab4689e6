"""An adapter's folder: its two matrices a weight as safetensors, peft's settings, and which base it was trained on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from aipsy_judge.atomic import write_text
from aipsy_judge.base_record import RECORD, base_record
from aipsy_judge.strict_json import dumps

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"


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
    write_text(folder / RECORD, dumps(base_record(base, revision).to_dict(), indent=1) + "\n")


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
