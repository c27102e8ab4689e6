"""A target -> the answers a judge is to give, as branches of tokens with what is to be predicted at each.

The engine's own reader says which tokens an answer is made of and where a slot begins, so that what is trained is
what will be read: fixed text is fed and gets a small weight; at a slot each branching among the usual tokens of the
options is trained with the shares of the options that lie behind each token, all branchings of a slot together with
about the weight 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from aipsy_judge.answer import AnswerForm
from aipsy_judge.backends.protocol import Tokens
from aipsy_judge.contract import Contract
from aipsy_judge.engine.choice import Vocabulary
from aipsy_judge.engine.encode import answer_tokenizer, end_of_turn
from aipsy_judge.engine.slots import AnswerReader
from aipsy_judge.local_judge import RATIONALE_TOKENS
from aipsy_judge.rubric import Metric, Rubric

from .labels import SlotTarget, slot_target
from .rows import END, RATIONALE, SKELETON, Row, RowTree, Target, slot_kind
from .target_rows import TargetRow

Way = list[tuple[int, bool]]


@dataclass(frozen=True, slots=True)
class Pen:
    """What answers are written with. weight: of fixed text and of the end, against 1 for a slot."""

    rubric: Rubric
    forms: Mapping[str, AnswerForm]
    tokenize: Callable[[str], list[int]]
    vocabulary: Vocabulary
    end: int
    spread: float
    hard: bool
    weight: float
    rationales: bool


def make_pen(
    tokens: Tokens,
    rubric: Rubric,
    contract: Contract,
    *,
    spread: float,
    hard: bool,
    weight: float,
    rationales: bool,
) -> Pen:
    """A pen for a tokenizer."""
    return Pen(
        rubric=rubric,
        forms=contract.forms(rubric),
        tokenize=answer_tokenizer(tokens),
        vocabulary=Vocabulary(tokens.vocabulary),
        end=end_of_turn(tokens),
        spread=spread,
        hard=hard,
        weight=weight,
        rationales=rationales,
    )


@dataclass(frozen=True, slots=True)
class Chosen:
    """A slot: where the usual tokens of each label lead, and what is wanted."""

    name: str
    ways: Mapping[str, Way]
    wanted: SlotTarget


@dataclass(frozen=True, slots=True)
class Written:
    """An answer before it is put on the tree: fixed tokens and slots in turn; labels of all slots, forced ones too."""

    parts: tuple[Sequence[int] | Chosen, ...]
    labels: Mapping[str, str]

    @property
    def slots(self) -> list[Chosen]:
        return [p for p in self.parts if isinstance(p, Chosen)]


def render_row(pen: Pen, prompts: Mapping[str, Sequence[int]], item: TargetRow, repeats: int = 1) -> tuple[Row, bool]:
    """The row of one item, and whether it holds a rationale. Without targets where nothing of the item is known.
    `prompts`: what each form is asked by; the longest that is asked comes first in the row.

    An answer that asks for nothing known is left out whole: a line of contract compact whose metric is unscored, or
    hangs on a flag that is not set (the flag decides there, and what the line says is never read).
    """
    tree, targets, wordy = RowTree(), list[Target](), False
    answers = {name: write(pen, form, item) for name, form in pen.forms.items()}
    known = {name: a for name, a in answers.items() if any(slot.wanted.shares for slot in a.slots)}
    tree.grow(-1, prompts[max(known or prompts, key=lambda name: len(prompts[name]))])
    for name, written in known.items():
        form = pen.forms[name]
        at = tree.grow(-1, prompts[name])
        for part in written.parts:
            at, more = _slot(pen, tree, at, part) if isinstance(part, Chosen) else _fixed(pen, tree, at, part)
            targets += more
        if form.rationale:
            words = rationale_of(pen, item, written)
            wordy = wordy or bool(words)
            targets += _close(pen, tree, at, form, words, sum(t.weight for t in targets if t.slot is not None))
        else:  # the engine asks for nothing after a line; who writes one freely must know where to stop
            targets.append(Target(at, (pen.end,), (1.0,), pen.weight, END))
    return tree.row(item.item_id, targets, repeats), wordy


def write(pen: Pen, form: AnswerForm, item: TargetRow) -> Written:
    """The answer up to the rationale, in the tokens in which it would be read."""
    reader = AnswerReader(form, pen.tokenize, pen.vocabulary)
    parts: list[Sequence[int] | Chosen] = []
    done = 0
    while (choice := reader.open_slot) is not None:
        parts.append(reader.tokens[done:])
        name, ways = choice.slot.name, {label: choice.way(label) for label in choice.labels}
        tokens = {label: [token for token, _ in way] for label, way in ways.items()}
        wanted = slot_target(name, tokens, item, pen.rubric, spread=pen.spread, hard=pen.hard)
        parts.append(Chosen(name, ways, wanted))
        done = len(reader.tokens) + len(ways[wanted.label])
        reader.choose(wanted.label)
    parts.append(reader.tokens[done:])
    return Written(tuple(parts), reader.labels)


def _fixed(pen: Pen, tree: RowTree, at: int, tokens: Iterable[int]) -> tuple[int, list[Target]]:
    targets = []
    for token in tokens:
        targets.append(Target(at, (token,), (1.0,), pen.weight, SKELETON))
        at = tree.grow(at, [token])
    return at, targets


def _slot(pen: Pen, tree: RowTree, start: int, slot: Chosen) -> tuple[int, list[Target]]:
    """The way of the label, and a target at every branching that any share passes.

    A branching that the label does not pass lies on a branch of its own, as the engine's probes do. Its weight is the
    share that gets there: all of them together are the cross entropy of the whole options.
    """
    own = [token for token, _ in slot.ways[slot.wanted.label]]
    end = tree.grow(start, own)
    branchings: dict[tuple[int, ...], dict[int, float]] = {}
    unread: dict[tuple[int, ...], int] = {}
    for label, share in slot.wanted.shares.items():
        path: tuple[int, ...] = ()
        for token, chosen in slot.ways[label]:
            if chosen:
                here = branchings.setdefault(path, {})
                here[token] = here.get(token, 0.0) + share
            elif path == tuple(own[: len(path)]):
                unread[path] = token
            path = (*path, token)
    targets = [Target(tree.grow(start, p), (t,), (1.0,), pen.weight, SKELETON) for p, t in unread.items()]
    for path, shares in branchings.items():
        mass = sum(shares.values())
        even = tuple(share / mass for share in shares.values())
        targets.append(Target(tree.grow(start, path), tuple(shares), even, mass, slot_kind(slot.name)))
    return end, targets


def rationale_of(pen: Pen, item: TargetRow, written: Written) -> list[int]:
    """Tokens of the item's rationale, none where it may not stand here.

    The words were chosen because they say what the target says (targets.jsonl). They are left out all the same where
    a slot before them holds a label that nobody gave, or a p_fail has moved one across its critical threshold, and
    where the engine would cut them. Under aipsy-bench-v1 that is always: its answer begins with context that no rater
    gives (recipe_faults refuses to ask for rationales there).
    """
    if not pen.rationales or item.rationale is None:
        return []
    if not all(slot.wanted.shares for slot in written.slots):
        return []
    if any(_crossed(m, item, written.labels.get(m.name)) for m in pen.rubric.metrics):
        return []
    tokens = pen.tokenize(plain_words(item.rationale))
    return tokens if len(tokens) <= RATIONALE_TOKENS else []


def _crossed(metric: Metric, item: TargetRow, label: str | None) -> bool:
    value = item.metrics[metric.name].value
    if metric.critical is None or value is None or label is None or not label.lstrip("-").isdigit():
        return False
    return (int(label) < metric.critical) != (value < metric.critical)


def plain_words(text: str) -> str:
    """A rationale as the engine's grammar lets a judge write one: without double quotes, backslashes and control
    characters, on one line.

    >>> plain_words('It says "you are\\nnot alone".')
    "It says 'you are not alone'."
    """
    printable = "".join(c if c.isprintable() else " " for c in text.replace('"', "'").replace("\\", "/"))
    return " ".join(printable.split())


def _close(pen: Pen, tree: RowTree, at: int, form: AnswerForm, words: Sequence[int], slots: float) -> list[Target]:
    """Rationale, closing text and end of turn.

    All words together never outweigh the slots. Where there are none, the token that would close an empty rationale
    is fed and not trained: a judge that is asked for its reasons must not have learnt to give none. What follows it,
    and with it where to stop, is trained in every row.
    """
    targets: list[Target] = []
    closing = pen.tokenize(form.closing)
    spoken = [*words, closing[0]] if words else []  # that the words end is part of them
    each = min(pen.weight, slots / len(spoken)) if spoken else 0.0
    for token in spoken:
        targets.append(Target(at, (token,), (1.0,), each, RATIONALE))
        at = tree.grow(at, [token])
    if not spoken:
        at = tree.grow(at, closing[:1])
    at, fixed = _fixed(pen, tree, at, closing[1:])
    return [*targets, *fixed, Target(at, (pen.end,), (1.0,), pen.weight, END)]
