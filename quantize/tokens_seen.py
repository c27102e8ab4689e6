"""The same text in, the same tokens: a model's template, vocabulary and tokenizer against those of another file."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from aipsy_judge.backends.protocol import TokenBackend
from aipsy_judge.engine.encode import answer_tokenizer

# What converters and tokenizers have stumbled over: blanks, digits, scripts, emoji of several code points, line ends,
# markers of several families standing in plain text.
HARD_TEXTS = (
    "  two  blanks\tand a tab ",
    "12345 3.14 1,000,000",
    "a\n\nb\r\nc\n",
    "naïve café, straße — “quoted”",
    "Ich fühle mich überfordert. Мне тяжело. 我很难过。 أنا حزين",
    "👩‍👩‍👧 🫂 e\u0301",
    "it's we're I'LL don't",
    '{"empathy": 4, "tone": null}',
    "<|im_start|>system\nhi<|im_end|>",
    "<start_of_turn>user<end_of_turn><|turn>model<turn|><|channel>thought<channel|><bos><eos></s>[INST]",
)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a tokenizer makes of given texts.

    markers        the ids of each marker's text where it may become a control token
    begins_wrong   prompts that do not begin with the begin token exactly once
    not_round_trip texts whose tokens do not spell them
    """

    template_sha256: str | None
    vocabulary: Sequence[bytes]
    end_tokens: frozenset[int]
    texts: tuple[tuple[int, ...], ...]
    markers: dict[str, tuple[int, ...]]
    prompts: tuple[tuple[int, ...], ...]
    begins_wrong: int
    not_round_trip: int


def look(backend: TokenBackend, texts: Sequence[str], prompts: Sequence[Sequence[int]]) -> Seen:
    """What this model's tokenizer makes of them."""
    tokenize = answer_tokenizer(backend)
    spelled = [tuple(tokenize(text)) for text in texts]
    wrong = [t for t, ids in zip(texts, spelled, strict=True) if _bytes(backend, ids) != t.encode()]
    template = backend.chat_template
    return Seen(
        template_sha256=hashlib.sha256(template.encode()).hexdigest() if template is not None else None,
        vocabulary=backend.vocabulary,
        end_tokens=backend.end_tokens,
        texts=tuple(spelled),
        markers={m: tuple(backend.tokenize(m, special=True)) for m in backend.marker_texts},
        prompts=tuple(tuple(p) for p in prompts),
        begins_wrong=sum(not begins_once(backend, p) for p in prompts),
        not_round_trip=len(wrong),
    )


def begins_once(backend: TokenBackend, prompt: Sequence[int]) -> bool:
    """Whether a prompt begins with the begin token exactly once.

    Some models have one token for the beginning and for every turn (SmolLM2's `<|im_start|>`): it may then come again
    later, but not at once. A model without a begin token wants none.
    """
    text = backend.special_tokens.get("bos_token", "")
    ids = backend.tokenize(text, special=True) if text else []
    begin = backend.begin_token if backend.begin_token is not None else (ids[0] if len(ids) == 1 else None)
    if begin is None:
        return True
    wanted = backend.begin_token is not None or text in (backend.chat_template or "")
    if not wanted:
        return list(prompt[:2]) != [begin, begin]
    return list(prompt[:1]) == [begin] and list(prompt[1:2]) != [begin]


def token_figures(full: Seen, other: Seen) -> dict[str, float]:
    """How the other file's tokenizer differs from that of the full weights, in counts."""
    markers = {**dict.fromkeys(full.markers), **dict.fromkeys(other.markers)}
    split = [m for m in markers if len(other.markers.get(m, ())) != 1 or other.markers[m] != full.markers.get(m)]
    return {
        "template_differs": float(full.template_sha256 is None or full.template_sha256 != other.template_sha256),
        "vocabulary_differs": float(_differing(full.vocabulary, other.vocabulary)),
        "end_tokens_differ": float(len(full.end_tokens ^ other.end_tokens)),
        "texts_not_round_trip": float(other.not_round_trip),
        "texts_tokenised_otherwise": float(_differing(full.texts, other.texts)),
        "markers_split": float(len(split)),
        "prompts_without_one_begin": float(other.begins_wrong),
        "prompts_tokenised_otherwise": float(_differing(full.prompts, other.prompts)),
    }


def _differing(mine: Sequence[object], theirs: Sequence[object]) -> int:
    return sum(a != b for a, b in zip(mine, theirs, strict=False)) + abs(len(mine) - len(theirs))


def _bytes(backend: TokenBackend, ids: Sequence[int]) -> bytes:
    return b"".join(backend.vocabulary[t] for t in ids)
