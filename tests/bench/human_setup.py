"""A small table of judges and an expert, for tests of what is compared on people's ratings."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from aipsy_judge.ratings import ratings_from_rows


def small_table(items: int = 80, together: int = 4, sparse: Literal["useless", "lucky"] | None = None) -> Any:
    """Judges a and b are lenient; `sparse` scores one item in ten: useless anything, lucky what the expert says."""
    random = np.random.default_rng(5)
    truth = np.clip(np.rint(random.normal(3.2, 1.0, items)), 1, 5)
    rows = []
    for i in range(items):
        about = {
            "item_id": f"i{i}",
            "conversation": f"c{i // together}",
            "metric": "empathy",
            "scale_min": 1,
            "scale_max": 5,
        }
        for name, bias in (("a", 0.8), ("b", 0.4)):
            score = float(np.clip(np.rint(truth[i] + bias + random.normal(0, 0.7)), 1, 5))
            rows.append({**about, "rater": name, "rater_kind": "judge", "score": score, "generator": f"g{i % 2}"})
        if sparse is not None and i % 10 == 0:
            score = float(truth[i] if sparse == "lucky" else random.integers(1, 6))
            rows.append({**about, "rater": sparse, "rater_kind": "judge", "score": score, "generator": f"g{i % 2}"})
        rows.append({**about, "rater": "expert", "rater_kind": "expert", "score": float(truth[i])})
    return ratings_from_rows(rows)
