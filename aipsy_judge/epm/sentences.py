"""Text -> its sentences, each a stretch of the text as it stands: what evidence is chosen from."""

from __future__ import annotations

import re
from itertools import pairwise

# A sentence ends after its marks (and what closes around them) or at the end of a line. Full stops of the Latin script
# end one only before a blank, so that 3.5 stays whole (an abbreviation may end one, which does no harm here); those of
# Chinese and Japanese always do.
_END = re.compile(r"""[。！？…｡]+[」』”’）】"')\]]*|[.!?…]+["'”’)\]]*(?=\s|$)|\n+""")
_SPEAKS = re.compile(r"\w")


def sentences(text: str, most: int | None = None) -> list[str]:
    """The sentences of `text` in order, without the blanks around them; every one is a substring of `text`.

    Lines without a letter or digit (rules, bullets alone) are left out. Where there are more than `most`, neighbours
    are joined, with what stands between them, until there are no more than that.

    >>> sentences("It hurts. A lot (really!)\\n---\\n我很累。你呢？")
    ['It hurts.', 'A lot (really!)', '我很累。', '你呢？']
    >>> sentences("One. Two. Three.", most=2)
    ['One. Two.', 'Three.']
    """
    cuts = [0, *(m.end() for m in _END.finditer(text)), len(text)]
    spans = [(a, b) for a, b in pairwise(cuts) if _SPEAKS.search(text, a, b)]
    joined = 1 if most is None else max(1, -(-len(spans) // most))
    groups = [spans[i : i + joined] for i in range(0, len(spans), joined)]
    return [text[group[0][0] : group[-1][1]].strip() for group in groups]
