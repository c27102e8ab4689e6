"""Text: decoded blocks of a file of any size, with a look at its beginning before anything is consumed."""

from __future__ import annotations

from collections.abc import Iterator

from .place import Place

# One JSON value, one line or one plain text is held in memory whole; a larger one is refused, not swapped out.
MAX_VALUE_CHARS = 512 << 20
# How far the first line is looked for. JSONL with a longer first line is taken for one JSON document.
_LOOK_AHEAD_CHARS = 16 << 20


class Text:
    """The text of one file. `first_line` and `has_second_line` look ahead; the other methods give all of it, once."""

    def __init__(self, blocks: Iterator[str], place: Place) -> None:
        self.place = place
        self._rest = blocks
        self._head = next(blocks, "")

    def first_line(self) -> str | None:
        """The first line that is not blank, stripped. None when the file is blank, or the line very long."""
        while True:
            begin = len(self._head) - len(self._head.lstrip())
            end = self._head.find("\n", begin)
            if end >= 0:
                return self._head[begin:end].strip()
            if not self._look_further():
                break
        return self._head.strip() or None if len(self._head) < _LOOK_AHEAD_CHARS else None

    def has_second_line(self) -> bool:
        """Whether anything but blanks follows the first line."""
        while len(self._head.strip().split("\n", 1)) < 2:
            if not self._look_further():
                return False
        return True

    def first_char(self) -> str:
        """The first character that is not blank; "" in a blank file."""
        while not self._head.strip() and self._look_further():
            pass
        return self._head.lstrip()[:1]

    def _look_further(self) -> bool:
        block = next(self._rest, None) if len(self._head) < _LOOK_AHEAD_CHARS else None
        self._head += block or ""
        return block is not None

    def blocks(self) -> Iterator[str]:
        head, self._head = self._head, ""
        yield head
        yield from self._rest

    def lines(self) -> Iterator[str]:
        """The lines with their ends. Only a line feed ends one: U+2028 and the like may stand inside JSON."""
        begun: list[str] = []
        for block in self.blocks():
            *full, last = block.split("\n")
            for line in full:
                yield "".join([*begun, line, "\n"])
                begun = []
            begun.append(last)
            self.refuse_above_limit(sum(map(len, begun)))
        if rest := "".join(begun):
            yield rest

    def whole(self) -> str:
        parts: list[str] = []
        for block in self.blocks():
            parts.append(block)
            self.refuse_above_limit(sum(map(len, parts)))
        return "".join(parts)

    def refuse_above_limit(self, chars: int) -> None:
        if chars > MAX_VALUE_CHARS:
            raise self.place.error(
                f"a single value or line of more than {MAX_VALUE_CHARS >> 20} million characters",
                hint="Write the conversations as JSONL, one a line: that is read line by line, whatever its size.",
            )
