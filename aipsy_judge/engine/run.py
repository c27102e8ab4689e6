"""Evaluates a plan on a backend: head once, trunk once, then the boughs group by group, all answers in step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np

from ..backends.protocol import Feed, Logits, TokenBackend
from ..errors import BackendError
from .choice import Vocabulary
from .plan import Limits, Plan, make_plan
from .prose import Prose, ProseMask, prose_mask
from .slots import AnswerReader
from .tree import Branch, Tree, build_tree


@dataclass(frozen=True, slots=True)
class Question:
    """A prompt (token ids up to where the answer begins) and the reader of its answer."""

    prompt: Sequence[int]
    reader: AnswerReader


@dataclass(slots=True)
class _Row:
    """An answer being read: its sequence, how long that is, and what was seen last."""

    index: int
    reader: AnswerReader
    sequence: int
    length: int
    logits: Logits


class Engine:
    """Keeps the head (what all prompts of a judge begin with) in the cache between conversations.

    The head is always evaluated by itself, so that its share of every later figure is the same however often it was
    evaluated and whatever came between.
    """

    def __init__(self, backend: TokenBackend, head: Sequence[int], cells: int) -> None:
        self.backend = backend
        self.vocabulary = Vocabulary(backend.vocabulary)
        self.limits = Limits(backend.context_tokens, cells, backend.max_sequences)
        self._head = list(head)
        self._resident = False
        self.spare = 1  # the first sequence number that no branch uses
        self._mask: ProseMask | None = None

    def plan(self, questions: Sequence[Question], prose_tokens: int = 0) -> tuple[Tree, Plan]:
        """The tree of the questions beyond the head, and the plan of its evaluation. CapacityError."""
        head = self._head_length(questions)
        sequences = [[*q.prompt[head:], *q.reader.request().feed] for q in questions]
        tree = build_tree(sequences)
        cells = [q.reader.room + prose_tokens for q in questions]
        return tree, make_plan(tree, head, cells, self.limits)

    def _head_length(self, questions: Sequence[Question]) -> int:
        """0 where a prompt does not begin with the head (its text merged with what follows)."""
        length = len(self._head)
        return length if all(list(q.prompt[:length]) == self._head for q in questions) else 0

    def answer(
        self,
        questions: Sequence[Question],
        *,
        prose_tokens: int = 0,
        wants_prose: Callable[[int], bool] = lambda index: False,
        on_group: Callable[[list[int], dict[int, Prose]], None] = lambda done, prose: None,
    ) -> None:
        """Read all answers (they stay in the questions' readers).

        `on_group` is called with the indices whose answers are final, and the rationales that were asked for by
        `wants_prose`, each of at most `prose_tokens` tokens.
        """
        tree, plan = self.plan(questions, prose_tokens)
        head = self._head_length(questions)
        self._prepare(plan, head)
        try:
            if tree.trunk:
                self._evaluate([Feed(0, head, tree.trunk)])
            for group in plan.groups:
                rows = self._grow(group, head, questions)
                self._read(rows)
                wanted = [r for r in rows if wants_prose(r.index)] if prose_tokens else []
                prose = self._write(wanted, prose_tokens)
                on_group(sorted(r.index for r in rows), prose)
                self._forget(self.spare, head + len(tree.trunk))
        finally:
            self._forget(self.backend.max_sequences, head)

    def _prepare(self, plan: Plan, head: int) -> None:
        if self.backend.reserve(plan.cells):
            self._resident = False
        if head == 0 or not self._resident:
            self.backend.trim(0, 0)
        if head and not self._resident:
            self._evaluate([Feed(0, 0, self._head)])
        self._resident = head > 0

    def _grow(self, group: Sequence[Branch], head: int, questions: Sequence[Question]) -> list[_Row]:
        """Evaluate the boughs level by level; a row for every answer that begins at a leaf."""
        rows: list[_Row] = []
        numbers = count(1)
        level = [(branch, 0) for branch in group]
        while level:
            feeds: list[Feed] = []
            following: list[tuple[Branch, int]] = []
            for branch, parent in level:
                sequence = next(numbers)
                self.backend.fork(parent, sequence, head + branch.start)
                feeds.append(Feed(sequence, head + branch.start, branch.tokens, branch.leaf is not None))
                following += [(child, sequence) for child in branch.children]
            logits = iter(self._evaluate(feeds))
            for (branch, _), feed in zip(level, feeds, strict=True):
                if branch.leaf is not None:
                    reader = questions[branch.leaf].reader
                    rows.append(_Row(branch.leaf, reader, feed.sequence, head + branch.end, next(logits)))
            level = following
        self.spare = next(numbers)
        return rows

    def _read(self, rows: Sequence[_Row]) -> None:
        """All answers slot by slot, in step."""
        active = list(rows)
        first = True
        while active:
            if not first:
                self._feed(active, [r.reader.request().feed for r in active])
            for row, probed in zip(active, self._probe(active), strict=True):
                row.reader.take(row.logits, probed)
            active = [r for r in active if not r.reader.done]
            first = False

    def _feed(self, rows: Sequence[_Row], tokens: Sequence[Sequence[int]]) -> None:
        feeds = [Feed(r.sequence, r.length, t, True) for r, t in zip(rows, tokens, strict=True)]
        for row, feed, logits in zip(rows, feeds, self._evaluate(feeds), strict=True):
            row.length += len(feed.tokens)
            row.logits = logits

    def _probe(self, rows: Sequence[_Row]) -> Iterator[list[Logits]]:
        """Logits after each row's probes, on spare sequences that are dropped at once."""
        probes = [r.reader.request().probes for r in rows]
        wanted = [(row, path) for row, paths in zip(rows, probes, strict=True) for path in paths]
        logits: list[Logits] = []
        room = self.backend.max_sequences - self.spare
        for start in range(0, len(wanted), room):
            feeds: list[Feed] = []
            for sequence, (row, path) in enumerate(wanted[start : start + room], start=self.spare):
                self.backend.fork(row.sequence, sequence, row.length)
                feeds.append(Feed(sequence, row.length, path, True))
            logits += self._evaluate(feeds)
            for feed in feeds:
                self.backend.trim(feed.sequence, 0)
        seen = iter(logits)
        return iter([[next(seen) for _ in paths] for paths in probes])

    def _write(self, rows: Sequence[_Row], max_tokens: int) -> dict[int, Prose]:
        """The rationales of `rows`, in step."""
        if not rows:
            return {}
        if self._mask is None:
            self._mask = prose_mask(self.backend.vocabulary, self.backend.end_tokens)
        written = {r.index: Prose(self._mask, self.backend.vocabulary, max_tokens) for r in rows}
        self._feed(rows, [r.reader.tail() for r in rows])
        active = list(rows)
        while active:
            taken = [(r, written[r.index].take(r.logits)) for r in active]
            going = [(r, [token]) for r, token in taken if token is not None]
            active = [r for r, _ in going]
            if active:
                self._feed(active, [tokens for _, tokens in going])
        return written

    def _evaluate(self, feeds: Sequence[Feed]) -> list[Logits]:
        """Logits that are numbers. Of NaN every comparison is false: read on, the first option would win each slot,
        and look like a score."""
        logits = self.backend.evaluate(feeds)
        if not all(np.isfinite(row.max()) for row in logits):
            raise BackendError(
                "the model gave no numbers (NaN or infinite logits)",
                where=self.backend.name,
                hint="The weights may be damaged, or this build or device unfit for them: see doctor --prove.",
            )
        return logits

    def _forget(self, sequences: int, head: int) -> None:
        for sequence in range(1, sequences):
            self.backend.trim(sequence, 0)
        self.backend.trim(0, head)
