"""Messages -> token ids, by the chat template of the weights, with conversation text kept plain.

The template is rendered with a placeholder for the content of every message. What the template writes may become
control tokens; what stands for a placeholder never does, whatever it contains. The plain text between two control
tokens is tokenised as one run, so that ids are those of ordinary use when nobody tries anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from ..backends.protocol import Tokens
from ..chat_template import CLOSE, OPEN, render
from ..errors import WeightsError
from ..prompt import ChatMessage, Piece

_PLACE = re.compile(f"{OPEN}(\\d+){CLOSE}")


def encode(backend: Tokens, messages: Sequence[ChatMessage]) -> list[int]:
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


def end_of_turn(backend: Tokens) -> int:
    """The control token that the chat template writes right after an answer: where a judge stops by itself.

    Raises WeightsError where the template writes none there.
    """
    if backend.chat_template is None:
        raise WeightsError("the weights carry no chat template", where=backend.name)
    text = _render(backend.chat_template, ["user", "assistant"], dict(backend.special_tokens), asks=False)
    after = text.partition(f"{OPEN}1{CLOSE}")[2]
    found = _marker_pattern(backend.marker_texts).match(after.lstrip())
    ids = backend.tokenize(found.group(), special=True) if found else []
    if len(ids) != 1:
        raise WeightsError(
            f"the chat template ends an answer with no control token, but {after[:40]!r}",
            where=backend.name,
            hint="Without one a judge that was trained would not know where to stop.",
        )
    return ids[0]


def answer_tokenizer(backend: Tokens) -> Callable[[str], list[int]]:
    """Tokens of a text that goes on after what is there: without the blank that some tokenizers put before a text."""

    def plain(text: str) -> list[int]:
        return backend.tokenize(text, special=False)

    if b"".join(backend.vocabulary[t] for t in plain("a")) == b"a":
        return plain
    before = plain("\n")
    return lambda text: plain("\n" + text)[len(before) :]


def marker_ids(backend: Tokens) -> frozenset[int]:
    """Ids of all control and marker tokens."""
    return frozenset(t for text in backend.marker_texts for t in backend.tokenize(text, special=True))


def template_pieces(backend: Tokens, messages: Sequence[ChatMessage]) -> list[Piece]:
    """The rendered template, its own text trusted and the conversation's not."""
    if backend.chat_template is None:
        raise WeightsError(
            "the weights carry no chat template",
            where=backend.name,
            hint="Use a file that has one (tokenizer.chat_template); scoring with a guessed layout is refused.",
        )
    text = _render(backend.chat_template, [m.role for m in messages], dict(backend.special_tokens))
    found = [int(n) for n in _PLACE.findall(text)]
    if found != list(range(len(messages))):
        # A template without a system role drops or refuses it: the system text then opens the user's message.
        if len(messages) > 1 and messages[0].role == "system":
            merged = ChatMessage("user", (*messages[0].pieces, Piece("\n\n", True), *messages[1].pieces))
            return template_pieces(backend, [merged, *messages[2:]])
        raise WeightsError("the chat template loses part of the messages", where=backend.name)
    split = _PLACE.split(text)
    own = (messages[int(part)].pieces if i % 2 else (Piece(part, True),) for i, part in enumerate(split) if part)
    return [piece for pieces in own for piece in pieces]


def _render(template: str, roles: list[str], special: dict[str, str], *, asks: bool = True) -> str:
    try:
        return render(template, roles, special, asks=asks)
    except Exception as error:  # templates are foreign programs: anything may go wrong in one
        if roles[0] == "system" and len(roles) > 1:
            return ""  # e.g. "System role not supported": the caller merges the system text
        raise WeightsError(f"the chat template of the weights fails: {error}") from error


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
