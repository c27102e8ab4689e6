"""The legal numbers of a JSON schema, where they are few: whole ones between two bounds, or the steps of multipleOf."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from .refusal import Refusal

NUMBER_WORDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
MOST_SIZE = 10**15  # every whole number up to it is a float of its own
Refused = Callable[..., Refusal]


def numbers(schema: Mapping[str, Any], refused: Refused, most: int, *, whole: bool) -> list[Any]:
    """The legal numbers in rising order, whole ones as int. Raises what `refused(words, hint)` makes."""
    given = {word: schema[word] for word in NUMBER_WORDS if schema.get(word) is not None}
    if any(isinstance(v, bool) or not isinstance(v, int | float) or abs(v) > MOST_SIZE for v in given.values()):
        raise refused("has a bound that is no number of usual size")
    lows = [given[w] for w in ("minimum", "exclusiveMinimum") if w in given]
    highs = [given[w] for w in ("maximum", "exclusiveMaximum") if w in given]
    if not lows or not highs:
        raise refused("is a number without bounds", "Give minimum and maximum.")
    low, high, step = max(lows), min(highs), given.get("multipleOf", 1)
    if step <= 0:
        raise refused("has a multipleOf that is not above 0")
    if not whole and "multipleOf" not in given and high - low <= 1:
        raise refused("is a fraction without steps", "Give multipleOf, such as 0.1.")
    if (high - low) / step > 2 * most:
        raise refused(f"has more than {most} legal answers")
    found = [n for n in _steps(low, high, step) if _within(n, given) and (not whole or isinstance(n, int))]
    if not found:
        raise refused("has no legal number")
    return found


def _steps(low: float, high: float, step: float) -> list[int | float]:
    """Multiples of the step, computed as they are written: 0.1 three times is 0.3."""
    size = Decimal(str(step))
    number = (Decimal(str(low)) / size).to_integral_value(rounding="ROUND_FLOOR") * size
    values: list[int | float] = []
    while number <= Decimal(str(high)):
        values.append(int(number) if number == number.to_integral_value() else float(number))
        number += size
    return values


def _within(number: float, given: Mapping[str, float]) -> bool:
    return (
        number >= given.get("minimum", -math.inf)
        and number <= given.get("maximum", math.inf)
        and number > given.get("exclusiveMinimum", -math.inf)
        and number < given.get("exclusiveMaximum", math.inf)
    )
