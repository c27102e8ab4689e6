"""How many of a sample each stratum gets."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import InputError


def allocate(sizes: Mapping[str, int], shares: Mapping[str, float], n: int) -> dict[str, int]:
    """Stratum -> how many to draw: as near to `shares` as whole numbers and the strata's sizes allow.

    By the divisor method of Webster and Sainte-Laguë, each stratum up to its size; what one cannot fill goes to the
    others by their shares. Every stratum that is not empty gets at least one, for an item without any chance could
    never be spoken for. Raises InputError where `n` is too small for that, or a share is not a positive number.
    """
    filled = [name for name, size in sizes.items() if size]
    wrong = [name for name in filled if not 0 < shares.get(name, 0) < float("inf")]
    if wrong:
        raise InputError(
            f"no share of the sample for {', '.join(wrong)}",
            hint="Every stratum that is not empty needs a share above 0, or its items could never be drawn.",
        )
    if n < len(filled):
        raise InputError(f"a sample of {n} is too small for {len(filled)} strata", hint=f"Draw at least {len(filled)}.")
    taken = {name: 1 if size else 0 for name, size in sizes.items()}
    for _ in range(min(n, sum(sizes.values())) - len(filled)):
        open_ = [name for name in filled if taken[name] < sizes[name]]
        taken[min(open_, key=lambda name: (taken[name] + 0.5) / shares[name])] += 1
    return taken
