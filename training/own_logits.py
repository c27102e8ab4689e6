"""Whether the logits that training and judging make of a model's states are the ones that the model itself gives.

They are made outside the model, of its last states and its head (backbone.logits_of), under masks of our own. A model
that scales them, adds a bias, or has a window that its config does not name by layer would be trained on others.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from aipsy_judge.errors import WeightsError

from .backbone import backbone, hidden_states, logits_of
from .collate import collate
from .rows import RowTree

PLACES = 16  # at the end of the text that are compared
LONGEST = 4096  # positions; a window beyond is not tried
# Of the greatest logit. Rounding to the 8 bits of bfloat16 is .004 of it, made several times on the way.
_TOLERANCE = {torch.bfloat16: 0.05, torch.float32: 0.002}


def check_own_logits(model: Any, folder: Path) -> None:
    """One text longer than the model's window, through the model as it is and as rows go through it.

    Raises WeightsError where the logits differ at half of the places or more: at single ones a router may choose
    another expert for a rounding.
    """
    found = backbone(model)
    vocabulary, device = found.head.shape[0], found.head.device
    drawn = torch.randint(vocabulary, (_length(model, folder),), generator=torch.Generator().manual_seed(1)).tolist()
    tree = RowTree()
    tree.grow(-1, drawn)
    with torch.no_grad():
        states = hidden_states(model, collate([tree.row("text", ())], 0).to(device))[0, -PLACES:]
        ours = logits_of(found, states)
        ids = torch.tensor([drawn], device=device)
        own: Tensor = model(input_ids=ids, use_cache=False, logits_to_keep=PLACES).logits[0].float()
    differences = (ours - own).abs().amax(1) / own.abs().amax(1)
    difference = float(differences.median())
    if not difference < _TOLERANCE.get(found.head.dtype, 0.002):
        raise WeightsError(
            f"training would see other logits than the model itself gives (by {difference:.1%} of the greatest)",
            where=str(folder),
            hint="Its code scales them, adds a bias, or has a window in layers that config.json does not name; "
            "Llama and Gemma 4 do not.",
        )


def _length(model: Any, folder: Path) -> int:
    config = model.config.get_text_config()
    window = getattr(config, "sliding_window", None) or 0
    if window + PLACES > LONGEST:
        if not getattr(config, "layer_types", None):
            raise WeightsError(
                f"the model looks back {window:,} positions at most and its config does not say in which layers",
                where=str(folder),
                hint="Name them in config.json as layer_types, or set sliding_window to null if it is not used.",
            )
        window = 0
    return min(window + 2 * PLACES, int(config.max_position_embeddings))
