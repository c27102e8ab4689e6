"""The base, loaded to be adapted: its text model alone, frozen, from safetensors and no code of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch import nn

from aipsy_judge.errors import WeightsError

from .backbone import backbone, hidden_states, logits_of
from .collate import collate
from .own_logits import check_own_logits
from .quiet import without_progress
from .rows import RowTree, Target
from .towers import OTHER_TOWERS

# The published Gemma 4 keeps its text model beside a vision tower. Without the mapping transformers finds none of its
# tensors, fills in random ones, and says so in a warning only.
_TEXT_PART = {r"^model\.language_model\.": "model."}


def load_base(folder: Path, *, precision: str, device: torch.device, base_bits: int = 16, on_host: int = 0) -> Any:
    """A causal language model (transformers' PreTrainedModel) on `device`, no parameter trainable.

    precision  "bf16" or "fp32": what the weights are kept in, whatever the files hold
    base_bits  4: NF4, with the experts of `on_host` layers in the machine's memory (Gemma 4)

    Raises WeightsError where a tensor is missing or of another shape, the model's logits are not its head times its
    states (soft-capped where its config says so), or branches of a row would see each other.
    """
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    if base_bits == 4:
        from .streamed_load import load_four_bit

        model: Any = load_four_bit(folder, device, on_host=on_host, dtype=dtype)
    else:
        model = _load(folder, dtype, device)
    model.requires_grad_(False)
    check_own_logits(model, folder)
    _check_branches_apart(model, folder)
    return model


def _load(folder: Path, dtype: torch.dtype, device: torch.device) -> Any:
    import transformers

    library: Any = transformers
    kind = json.loads((folder / "config.json").read_text(encoding="utf-8")).get("model_type")
    words: dict[str, Any] = {"dtype": dtype, "attn_implementation": "sdpa", "device_map": {"": str(device)}}
    words |= {"local_files_only": True, "use_safetensors": True, "trust_remote_code": False}
    try:
        with without_progress():
            if kind == "gemma4":
                config = library.AutoConfig.from_pretrained(folder, local_files_only=True).get_text_config()
                words |= {"config": config, "key_mapping": _TEXT_PART}
            model, seen = library.AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True, **words)
    except (OSError, ValueError, KeyError) as error:
        raise WeightsError(f"the base cannot be loaded: {error}", where=str(folder)) from error
    _check_loaded(folder, seen)
    return model


def _check_loaded(folder: Path, seen: dict[str, Any]) -> None:
    unknown = {k for k in seen["unexpected_keys"] if not str(k).startswith(OTHER_TOWERS)}
    for what, names in (
        ("missing", seen["missing_keys"]),
        ("of another shape", seen["mismatched_keys"]),
        ("unknown", unknown),
    ):
        if names:
            first = ", ".join(sorted(map(str, names))[:3])
            raise WeightsError(
                f"{len(names)} tensors are {what}, the first: {first}",
                where=str(folder),
                hint="The folder must hold one whole checkpoint of this config.json.",
            )


def _check_branches_apart(model: nn.Module, folder: Path) -> None:
    """A row's branches must not see each other. Whether a model's code heeds a mask of its own is seen by asking it:
    two branches in one row, and each by itself, must give the same logits."""
    tree = RowTree()
    trunk = tree.grow(-1, [5, 6, 7, 8])
    ends = [tree.grow(trunk, branch) for branch in ([9, 10], [11, 12])]
    target = (Target(ends[0], (1,), (1.0,), 1.0, "end"),)
    together = tree.row("together", target)
    path = together.path(ends[1])
    alone = RowTree()
    last = alone.grow(-1, [together.tokens[i] for i in path])
    found = backbone(model)
    with torch.no_grad():
        logits = [
            logits_of(found, hidden_states(model, collate([row], 0).to(found.head.device))[0, [at]])
            for row, at in ((together, ends[1]), (alone.row("alone", target[:0]), last))
        ]
    difference = float((logits[0] - logits[1]).abs().max())
    # bfloat16 rounds to 8 bits: logits of 30 differ by .1 where sums are made in another order
    if not difference < 0.02 * (1 + float(logits[1].abs().max())):
        raise WeightsError(
            f"branches of a row see each other in this model (logits differ by {difference:.3g})",
            where=str(folder),
            hint="Its code does not heed an attention mask of one's own; Llama and Gemma 4 do.",
        )
