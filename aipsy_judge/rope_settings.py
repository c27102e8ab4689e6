"""Rotary settings under the names that mlx-lm's models read.

transformers 5 writes `rope_parameters`; most models of mlx-lm 0.32 know only the older keys beside it and, finding
none, take a default base without a word: every position is then turned by the wrong angle.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_KEPT = ("rope_theta", "partial_rotary_factor")


def older_rope_keys(config: Mapping[str, Any]) -> dict[str, Any]:
    """What to add to a config.json that says `rope_parameters` alone (also to its text_config); nothing where nothing
    is missing, or where layers of different kinds have settings of their own, which the older keys cannot say.

    >>> older_rope_keys({"rope_parameters": {"rope_theta": 1e5, "rope_type": "default"}})
    {'rope_theta': 100000.0}
    """
    text = config.get("text_config")
    if isinstance(text, Mapping):
        found = _missing(text)
        return {"text_config": {**text, **found}} if found else {}
    return _missing(config)


def _missing(config: Mapping[str, Any]) -> dict[str, Any]:
    rope = config.get("rope_parameters")
    if not isinstance(rope, Mapping) or differs_by_layer(config):
        return {}
    found = {key: rope[key] for key in _KEPT if key in rope}
    if rope.get("rope_type", "default") != "default":
        found["rope_scaling"] = dict(rope)
    return {key: value for key, value in found.items() if config.get(key) is None}


def differs_by_layer(config: Mapping[str, Any]) -> bool:
    """Whether layers of different kinds have rotary settings of their own."""
    rope = config.get("rope_parameters")
    return isinstance(rope, Mapping) and bool(rope) and all(isinstance(v, Mapping) for v in rope.values())
