"""Near-duplicate texts: pairs whose sets of five-word shingles overlap, found exactly, without comparing all pairs.

Prefix filtering (Bayardo, Ma and Srikant 2007, "Scaling up all pairs similarity search"; Chaudhuri, Ganti and Kaushik
2006): two sets of Jaccard similarity t or more share at least one of their |x| - ceil(t |x|) + 1 rarest elements.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

WORDS = 5

Shingles = frozenset[int]


def shingles(text: str) -> Shingles:
    """Hashes of every five words in a row, lower case, without punctuation; of all words where there are fewer.

    A text without any word has none, and is like no other.
    """
    words = re.findall(r"\w+", text.lower())
    if not words:
        return frozenset()
    size = min(WORDS, len(words))
    # Hashes of this process alone: they are compared, never kept.
    return frozenset(map(hash, zip(*(words[n:] for n in range(size)), strict=False)))


def jaccard(a: Shingles, b: Shingles) -> float:
    """|a and b| / |a or b|, 0..1; 0 where either is empty.

    >>> jaccard(frozenset({1, 2, 3}), frozenset({2, 3, 4}))
    0.5
    """
    shared = len(a & b)
    return shared / (len(a) + len(b) - shared) if shared else 0.0


def near_pairs(texts: Mapping[str, Shingles], least: float) -> Iterator[tuple[str, str, float]]:
    """(name, name, similarity) of every pair at or above `least`, which is above 0 and at most 1."""
    frequency = Counter(s for found in texts.values() for s in found)
    # Shorter first: a text is then compared with those before it alone, none longer than itself.
    order = sorted((name for name in texts if texts[name]), key=lambda name: (len(texts[name]), name))
    met: defaultdict[int, list[str]] = defaultdict(list)
    for name in order:
        found = texts[name]
        # What stands in no other text is rarest of all and joins nothing: it fills the prefix, and is not kept.
        shared = [s for s in found if frequency[s] > 1]
        most = len(found) - math.ceil(least * len(found) - 1e-9) + 1 - (len(found) - len(shared))
        prefix = sorted(shared, key=lambda s: (frequency[s], s))[: max(0, most)]
        near = {other for s in prefix for other in met[s]}
        yield from _above(texts, name, sorted(near), least)
        for s in prefix:
            met[s].append(name)


def _above(
    texts: Mapping[str, Shingles], name: str, others: Sequence[str], least: float
) -> Iterator[tuple[str, str, float]]:
    for other in others:
        if len(texts[other]) < least * len(texts[name]) - 1e-9:
            continue
        similarity = jaccard(texts[other], texts[name])
        if similarity >= least - 1e-9:
            yield other, name, similarity
