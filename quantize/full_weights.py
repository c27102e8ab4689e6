"""Whether weights are full ones: what something is held against must not have lost the same already."""

from __future__ import annotations

from pathlib import Path

from aipsy_judge.errors import InputError, WeightsError
from aipsy_judge.gguf_header import read_gguf_header
from aipsy_judge.manifest import Weighed

from .checkpoint import check_full_weights, open_checkpoint
from .side import Side

_FULL = (0, 1, 30)  # ggml.h, enum ggml_type: F32, F16, BF16


def check_full(side: Side) -> None:
    """Raise WeightsError where a matrix of the model, or of the adapter that it wears, is not stored as F32, F16 or
    BF16. Only headers are read."""
    if side.model.is_dir():
        check_full_weights(open_checkpoint(side.model))
        return
    for file in (side.model, side.adapter):
        if file is not None:
            _check_file(file)


def _check_file(file: Path) -> None:
    import gguf

    for tensor in read_gguf_header(file).tensors:
        if len(tensor.shape) > 1 and tensor.kind not in _FULL:
            kind = gguf.GGMLQuantizationType(tensor.kind).name
            raise WeightsError(
                f"the full weights are quantised: {tensor.name!r} is stored as {kind}",
                where=str(file),
                hint="Give the file that the candidate was made from: python -m quantize.to_gguf FOLDER --type F16.",
            )


def check_two(full: Weighed, candidate: Weighed, where: str) -> None:
    """Raise InputError where both are the same files: whatever these lost, the one would not differ from the other."""
    if full == candidate:
        raise InputError(
            "the candidate is held against itself",
            where=where,
            hint="Give --full the weights that it was made from: F16 or F32, or a folder.",
        )
