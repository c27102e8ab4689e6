"""What a judge says when nothing holds it to the answer's form: greedy, token by token, to its own end.

The engine feeds an answer's fixed text and reads only at the slots, so it would not notice that a model no longer
writes the answer by itself. That is the first thing that low-bit quantisation breaks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from aipsy_judge.answer import NO, AnswerForm, Slot
from aipsy_judge.asked_prompt import Prompts
from aipsy_judge.backends.protocol import Feed, Logits, Reply, TokenBackend
from aipsy_judge.contract import Contract
from aipsy_judge.reply import read_reply
from aipsy_judge.rubric import FlagSpec, Rubric
from aipsy_judge.verdict import Unscored

from .asked import whole
from .trunk import Trunk

Kind = Literal["clean", "early_end", "runaway", "unreadable"]


@dataclass(frozen=True, slots=True)
class Written:
    """One answer. tokens: those generated, the end token included if it came; text: cue and all that was generated."""

    unit: int
    form: str
    tokens: tuple[int, ...]
    text: str
    ended: bool


def write_answers(
    backend: TokenBackend, trunk: Trunk, unit: int, prompts: Prompts, cues: Mapping[str, list[int]], budget: int
) -> list[Written]:
    """All answers about one unit, in step; each to its end token, or to `budget` tokens."""
    trunk.stand_on(whole(prompts))
    numbers = {name: n for n, name in enumerate(cues, start=1)}
    feeds = {name: trunk.branch(n, [*prompts[name], *cues[name]]) for name, n in numbers.items()}
    made: dict[str, list[int]] = {name: [] for name in cues}
    while feeds:
        logits = trunk.evaluate(list(feeds.values()))
        feeds = {
            name: following
            for (name, feed), row in zip(feeds.items(), logits, strict=True)
            if (following := _step(backend, feed, row, made[name], budget)) is not None
        }
    trunk.drop(len(cues))
    return [_written(backend, unit, name, cues[name], made[name]) for name in cues]


def _step(backend: TokenBackend, feed: Feed, logits: Logits, made: list[int], budget: int) -> Feed | None:
    """Take the most probable token; the next feed, or None where the answer has ended or the budget has."""
    token = int(logits.argmax())
    made.append(token)
    if token in backend.end_tokens or len(made) >= budget:
        return None
    return Feed(feed.sequence, feed.start + len(feed.tokens), [token], want_logits=True)


def _written(backend: TokenBackend, unit: int, form: str, cue: list[int], made: list[int]) -> Written:
    ended = made[-1] in backend.end_tokens
    said = b"".join(backend.vocabulary[t] for t in [*cue, *(made[:-1] if ended else made)])
    return Written(unit, form, tuple(made), said.decode("utf-8", "replace"), ended)


def asked_for(written: Sequence[Written], contract: Contract, rubric: Rubric) -> list[Written]:
    """The answers without those that nobody asks for: of contract compact, the line of a metric that hangs on a flag
    which the judge's own line leaves unset. It is in no training row, and read only where a manifest sets the flag all
    the same (aipsy_judge.set_from)."""
    if not contract.lines:
        return list(written)
    forms = contract.forms(rubric)
    unset = {
        (w.unit, flag.name)
        for w in written
        for flag in rubric.flags
        if w.form == flag.name and w.text.removesuffix("\n") == _unset_line(forms[flag.name], flag)
    }
    flags = {m.name: m.flag for m in rubric.metrics if m.flag is not None}
    return [w for w in written if (w.unit, flags.get(w.form, "")) not in unset]


def _unset_line(form: AnswerForm, flag: FlagSpec) -> str:
    unset = flag.severity.unset if flag.severity is not None else NO
    return _lead(form) + next(option.text for option in _slot(form).options if option.label == unset)


def kind_of(written: Written, contract: Contract, rubric: Rubric) -> Kind:
    """clean: read whole by the contract's reader, without any repair. early_end: the judge ended inside its answer.
    runaway: it had not ended when the budget was spent."""
    form = contract.forms(rubric)[written.form]
    if not written.ended:
        return "runaway"
    if contract.lines:
        return _kind_of_line(written.text, form)
    if _parses(written.text, rubric):
        return "clean"
    return "early_end" if _is_open(written.text) else "unreadable"


def _kind_of_line(text: str, form: AnswerForm) -> Kind:
    lines = [_lead(form) + option.text for option in _slot(form).options]
    if text.removesuffix("\n") in lines:
        return "clean"
    return "early_end" if any(line.startswith(text) for line in lines) else "unreadable"


def _lead(form: AnswerForm) -> str:
    lead = form.parts[0]
    assert isinstance(lead, str)
    return lead


def _slot(form: AnswerForm) -> Slot:
    return next(p for p in form.parts if isinstance(p, Slot))


def _parses(text: str, rubric: Rubric) -> bool:
    parsed = read_reply(Reply(text, "stop"), rubric)
    lost = any(isinstance(s, Unscored) for s in parsed.scores.values())
    unread = any(f.value is None or f.unscored is not None for f in parsed.flags.values())
    return parsed.failure is None and not lost and not unread and not parsed.notes


def _is_open(text: str) -> bool:
    """Whether a JSON object was begun and not closed, quotes and escapes minded; so is a text with no object yet."""
    depth, quoted, escaped, seen = 0, False, False, False
    for character in text:
        if escaped:
            escaped = False
        elif quoted:
            quoted, escaped = character != '"', character == "\\"
        elif character == '"':
            quoted = True
        elif character in "{[":
            depth, seen = depth + 1, True
        elif character in "}]":
            depth -= 1
    return quoted or depth > 0 or not seen
