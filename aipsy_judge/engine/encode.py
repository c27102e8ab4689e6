"""Messages -> token ids, by the chat template of the weights, with conversation text kept plain.

The template is rendered with a placeholder for every piece of conversation text. What the template writes may become
control tokens; what stands for a placeholder never does, whatever it contains. The plain text between two control
tokens is tokenised as one run, so that ids are those of ordinary use when nobody tries anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..backends.protocol import TokenBackend
from ..errors import WeightsError
from ..prompt import ChatMessage, Piece

if TYPE_CHECKING:
    from jinja2 import Template

# Placeholders are private-use characters, which conversation text may hold too: it is never searched for them.
_OPEN, _CLOSE = "\ue000", "\ue001"
_PLACE = re.compile(f"{_OPEN}(\\d+){_CLOSE}")


def encode(backend: TokenBackend, messages: Sequence[ChatMessage]) -> list[int]:
    """Token ids of the prompt, up to where the judge begins to answer; BOS exactly once where one is wanted.

    Raises WeightsError if the weights carry no chat template: a foreign one would give garbage that looks like
    scores.
    """
    pieces = template_pieces(backend, messages)
    ids: list[int] = []
    for run, is_control in _runs(pieces, _marker_pattern(backend.marker_texts)):
        if is_control:
            ids += backend.tokenize(run[0], special=True)
        else:
            for text in run:
                ids += backend.tokenize(text, special=False)
    begin = backend.begin_token
    if begin is not None and (not ids or ids[0] != begin):
        ids.insert(0, begin)
    return ids


def end_of_turn(backend: TokenBackend) -> int:
    """The control token that the chat template writes right after an answer: where a judge stops by itself.

    Raises WeightsError where the template writes none there.
    """
    if backend.chat_template is None:
        raise WeightsError("the weights carry no chat template", where=backend.name)
    rows = [{"role": "user", "content": "a"}, {"role": "assistant", "content": f"{_OPEN}0{_CLOSE}"}]
    text = _render(backend.chat_template, rows, dict(backend.special_tokens), asks=False)
    after = text.partition(f"{_OPEN}0{_CLOSE}")[2]
    found = _marker_pattern(backend.marker_texts).match(after.lstrip())
    ids = backend.tokenize(found.group(), special=True) if found else []
    if len(ids) != 1:
        raise WeightsError(
            f"the chat template ends an answer with no control token, but {after[:40]!r}",
            where=backend.name,
            hint="Without one a judge that was trained would not know where to stop.",
        )
    return ids[0]


def answer_tokenizer(backend: TokenBackend) -> Callable[[str], list[int]]:
    """Tokens of a text that goes on after what is there: without the blank that some tokenizers put before a text."""

    def plain(text: str) -> list[int]:
        return backend.tokenize(text, special=False)

    if b"".join(backend.vocabulary[t] for t in plain("a")) == b"a":
        return plain
    before = plain("\n")
    return lambda text: plain("\n" + text)[len(before) :]


def marker_ids(backend: TokenBackend) -> frozenset[int]:
    """Ids of all control and marker tokens."""
    return frozenset(t for text in backend.marker_texts for t in backend.tokenize(text, special=True))


def template_pieces(backend: TokenBackend, messages: Sequence[ChatMessage]) -> list[Piece]:
    """The rendered template, its own text trusted and the conversation's not."""
    if backend.chat_template is None:
        raise WeightsError(
            "the weights carry no chat template",
            where=backend.name,
            hint="Use a file that has one (tokenizer.chat_template); scoring with a guessed layout is refused.",
        )
    pieces = [p for m in messages for p in m.pieces]
    numbered = iter(range(len(pieces)))
    rows = [
        {"role": m.role, "content": "".join(f"{_OPEN}{next(numbered)}{_CLOSE}" for _ in m.pieces)} for m in messages
    ]
    text = _render(backend.chat_template, rows, dict(backend.special_tokens))
    found = [int(n) for n in _PLACE.findall(text)]
    if found != list(range(len(pieces))):
        # A template without a system role drops or refuses it: the system text then opens the user's message.
        if len(messages) > 1 and messages[0].role == "system":
            merged = ChatMessage("user", (*messages[0].pieces, Piece("\n\n", True), *messages[1].pieces))
            return template_pieces(backend, [merged, *messages[2:]])
        raise WeightsError("the chat template loses part of the messages", where=backend.name)
    split = _PLACE.split(text)
    return [pieces[int(part)] if i % 2 else Piece(part, True) for i, part in enumerate(split) if part]


def _render(template: str, rows: list[dict[str, str]], special: dict[str, str], *, asks: bool = True) -> str:
    """`asks`: up to where the judge begins to answer, with what turns thinking off."""
    try:
        return str(
            _compiled(template).render(messages=rows, add_generation_prompt=asks, enable_thinking=False, **special)
        )
    except Exception as error:  # templates are foreign programs: anything may go wrong in one
        if rows[0]["role"] == "system" and len(rows) > 1:
            return ""  # e.g. "System role not supported": the caller merges the system text
        raise WeightsError(f"the chat template of the weights fails: {error}") from error


@lru_cache(maxsize=8)
def _compiled(template: str) -> Template:
    from jinja2 import TemplateError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def raise_exception(message: str) -> Any:
        raise TemplateError(message)

    # trim_blocks and lstrip_blocks are how transformers and llama.cpp render these templates.
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.globals["raise_exception"] = raise_exception
    return environment.from_string(template)


@lru_cache(maxsize=8)
def _marker_pattern(markers: tuple[str, ...]) -> re.Pattern[str]:
    longest_first = sorted(markers, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")


def _runs(pieces: Sequence[Piece], markers: re.Pattern[str]) -> Iterator[tuple[list[str], bool]]:
    """(texts, is_control): a control token's own text, or a run of plain text in as few texts as is safe.

    In conversation text a run is cut inside anything that spells a marker, since some tokenizers recognise markers
    in plain text too; the text itself stays as it was.
    """
    run = [""]
    for piece in pieces:
        last = 0
        for match in markers.finditer(piece.text):
            run[-1] += piece.text[last : match.start()]
            last = match.end()
            if piece.trusted:
                if run != [""]:
                    yield run, False
                yield [match.group()], True
                run = [""]
            else:
                run[-1] += match.group()[0]
                run.append(match.group()[1:])
        run[-1] += piece.text[last:]
    if run != [""]:
        yield run, False
