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
from .trunks import Trunks


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
        self.trunks = Trunks(backend)
        self.before_pass: Callable[[], None] = lambda: None  # what it raises ends the evaluation
        self.spare = 1  # the first sequence number that no branch uses
        self._mask: ProseMask | None = None

    @property
    def head(self) -> Sequence[int]:
        return self._head

    def plan(self, questions: Sequence[Question], prose_tokens: int = 0) -> tuple[Tree, Plan]:
        """The tree of the questions beyond the head, and the plan of its evaluation. CapacityError."""
        head = self._head_length(questions)
        tree = build_tree(self._sequences(questions, head))
        cells = [q.reader.room + prose_tokens for q in questions]
        return tree, make_plan(tree, head, cells, self.limits)

    def _sequences(self, questions: Sequence[Question], head: int) -> Iterator[list[int]]:
        """What is asked beyond the head. A long conversation has thousands: nobody may wait for them any more."""
        for question in questions:
            self.before_pass()
            yield [*question.prompt[head:], *question.reader.request().feed]

    def _head_length(self, questions: Sequence[Question]) -> int:
        """0 where a prompt does not begin with the head (its text merged with what follows)."""
        length = len(self._head)
        return length if all(list(q.prompt[:length]) == self._head for q in questions) else 0

    def answer(
        self,
        questions: Sequence[Question],
        *,
        prose_tokens: int = 0,
        least_prose: int = 0,
        wants_prose: Callable[[int], bool] = lambda index: False,
        on_group: Callable[[list[int], dict[int, Prose]], None] = lambda done, prose: None,
    ) -> None:
        """Read all answers (they stay in the questions' readers).

        `on_group` is called with the indices whose answers are final, and the rationales that were asked for by
        `wants_prose`, each of at least `least_prose` and at most `prose_tokens` tokens.
        """
        tree, plan = self.plan(questions, prose_tokens)
        head = self._head_length(questions)
        self._prepare(plan.cells, head, self._stem(tree, questions))
        try:
            for group in plan.groups:
                rows = self._grow(group, head, bool(tree.trunk), questions)
                self._read(rows)
                wanted = [r for r in rows if wants_prose(r.index)] if prose_tokens else []
                prose = self._write(wanted, least_prose, prose_tokens)
                on_group(sorted(r.index for r in rows), prose)
                self._drop(self.spare)
        finally:
            self._drop(self.backend.max_sequences)
            self.trunks.settle(head)

    def warm_up(self, cells: int) -> None:
        """Evaluate the head, or take it from where it is kept, with room for `cells` in all."""
        self._prepare(max(cells, len(self._head) + 1), len(self._head), ())

    def _stem(self, tree: Tree, questions: Sequence[Question]) -> tuple[int, ...]:
        """What sequence 0 holds beyond the head: the trunk; of a lone bough, where trunks are kept, what the next
        turn's prompt may begin with too. Two tokens stay with the bough: one alone takes another kernel."""
        if tree.trunk or not self.trunks.keeping or len(tree.boughs) != 1 or tree.boughs[0].children:
            return tree.trunk
        (bough,) = tree.boughs
        asked = max(2, len(questions[0].reader.request().feed))
        return self.trunks.divided(bough.tokens, len(bough.tokens) - asked)

    def _prepare(self, cells: int, head: int, stem: Sequence[int]) -> None:
        """Sequence 0 with head and stem. What goes wrong on the way leaves what was whole before."""
        if self.backend.reserve(cells):
            self.trunks.lost()
        wanted = [*self._head[:head], *stem]
        have = self.trunks.bring(wanted, head)
        if have < head:
            if not self.trunks.recall_head(self._head):
                self._evaluate([Feed(0, 0, self._head)])
                self.trunks.holds(self._head)
                self.trunks.remember_head()
            have = head
        if have < len(wanted):
            self._evaluate([Feed(0, have, wanted[have:])])
            self.trunks.holds(wanted)

    def _grow(self, group: Sequence[Branch], head: int, trunk: bool, questions: Sequence[Question]) -> list[_Row]:
        """Evaluate the boughs level by level; a row for every answer that begins at a leaf."""
        rows: list[_Row] = []
        numbers = count(1)
        level = [(branch, 0) for branch in group]
        while level:
            feeds: list[Feed] = []
            following: list[tuple[Branch, int]] = []
            for branch, parent in level:
                sequence = next(numbers)
                start = head + branch.start
                # Of a lone bough the beginning may lie on the trunk already (see _stem).
                done = max(0, self.trunks.resident - start) if parent == 0 and not trunk else 0
                self.backend.fork(parent, sequence, start + done)
                feeds.append(Feed(sequence, start + done, branch.tokens[done:], branch.leaf is not None))
                following += [(child, sequence) for child in branch.children]
            logits = iter(self._evaluate(feeds))
            for (branch, _), feed in zip(level, feeds, strict=True):
                if branch.leaf is not None:
                    reader = questions[branch.leaf].reader
                    if reader.done:
                        reader.fed_whole()
                    rows.append(_Row(branch.leaf, reader, feed.sequence, head + branch.end, next(logits)))
            level = following
        self.spare = next(numbers)
        return rows

    def _read(self, rows: Sequence[_Row]) -> None:
        """All answers slot by slot, in step."""
        active = [r for r in rows if not r.reader.done]
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

    def _write(self, rows: Sequence[_Row], least: int, max_tokens: int) -> dict[int, Prose]:
        """The rationales of `rows`, in step."""
        if not rows:
            return {}
        if self._mask is None:
            self._mask = prose_mask(self.backend.vocabulary, self.backend.end_tokens)
        written = {r.index: Prose(self._mask, self.backend.vocabulary, max_tokens, least) for r in rows}
        unfed = [r for r in rows if r.reader.tail()]
        if unfed:
            self._feed(unfed, [r.reader.tail() for r in unfed])
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
        self.before_pass()
        logits = self.backend.evaluate(feeds)
        if not all(np.isfinite(row.max()) for row in logits):
            raise BackendError(
                "the model gave no numbers (NaN or infinite logits)",
                where=self.backend.name,
                hint="The weights may be damaged, or this build or device unfit for them: see doctor --prove.",
            )
        return logits

    def _drop(self, sequences: int) -> None:
        for sequence in range(1, sequences):
            self.backend.trim(sequence, 0)
