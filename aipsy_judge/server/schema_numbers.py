"""The legal numbers of a JSON schema, where they are few: whole ones between two bounds, or the steps of multipleOf."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from .refusal import Refusal

NUMBER_WORDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
MOST_SIZE = 10**15  # every whole number up to it is a float of its own
Refused = Callable[..., Refusal]


def numbers(schema: Mapping[str, Any], refused: Refused, most: int, *, whole: bool) -> list[Any]:
    """The legal numbers in rising order, whole ones as int. Raises what `refused(words, hint)` makes."""
    given = {word: schema[word] for word in NUMBER_WORDS if schema.get(word) is not None}
    if any(isinstance(v, bool) or not isinstance(v, int | float) or not abs(v) <= MOST_SIZE for v in given.values()):
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
    found = [n for n in _steps(low, high, step, most, refused, whole=whole) if _within(n, given)]
    if not found:
        raise refused("has no legal number")
    return found


def _steps(low: float, high: float, step: float, most: int, refused: Refused, *, whole: bool) -> Iterator[int | float]:
    """Multiples of the step, computed as they are written: 0.1 three times is 0.3. They are counted before any is
    made: a step may be so small that they have no end."""
    size = Fraction(str(step))
    if whole:  # the whole multiples of 2/3 are those of 2
        size = Fraction(size.numerator)
    first, last = math.ceil(Fraction(str(low)) / size), math.floor(Fraction(str(high)) / size)
    if last - first + 1 > most + 2:  # two may stand on bounds that are exclusive
        raise refused(f"has more than {most} legal answers")
    for number in (n * size for n in range(first, last + 1)):
        yield int(number) if number.denominator == 1 else float(number)


def _within(number: float, given: Mapping[str, float]) -> bool:
    return (
        number >= given.get("minimum", -math.inf)
        and number <= given.get("maximum", math.inf)
        and number > given.get("exclusiveMinimum", -math.inf)
        and number < given.get("exclusiveMaximum", math.inf)
    )
