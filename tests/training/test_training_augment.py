"""Augmentation changes what a careful reader does not heed, and always alike;
that no other part is changed is tests/training/test_training_render_stage.py's."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from render_setup import RUBRIC

from aipsy_judge.conversation import Conversation, Message
from bench.stability_injection import injections
from training.augment import _STEERING, STEERED, augmented, steered

TALK = Conversation(
    "c1",
    (
        Message("user", "It's late. I can't sleep. My sister said \"stop it\"."),
        Message("assistant", "That sounds hard. What keeps you awake? Tell me more."),
        Message("user", "Nothing much. Work."),
        Message("assistant", "Work can be heavy. Is it the new job? I'm here."),
    ),
)
NAMES = [f"c{n}" for n in range(400)]


def words(text: str) -> list[str]:
    """The letters' words: what no dress may touch, labels aside."""
    return re.findall(r"[a-z]+", text.replace("\u2019", "'").lower())


def test_a_share_of_conversations_is_changed_and_none_or_all_where_it_is_0_or_1() -> None:
    changed = sum(augmented(TALK, name, 0.5, 14).messages != TALK.messages for name in NAMES)
    assert 160 < changed < 240
    assert all(augmented(TALK, name, 0.0, 14) is TALK for name in NAMES)
    assert all(augmented(TALK, name, 1.0, 14).messages != TALK.messages for name in NAMES)


def test_every_word_stays_in_its_place() -> None:
    for name in NAMES:
        other = augmented(TALK, name, 1.0, 14)
        assert [m.role for m in other.messages] == [m.role for m in TALK.messages]
        for before, after in zip(TALK.messages, other.messages, strict=True):
            mine = words(before.content)
            assert words(after.content)[-len(mine) :] == mine, after.content


def test_an_alternative_shares_the_history_of_its_main_line_to_the_letter() -> None:
    other = Conversation("c1.t2a1", (*TALK.messages[:3], Message("assistant", "Sleep well. See you.")))
    for name in NAMES[:100]:
        ours, theirs = augmented(TALK, name, 1.0, 14), augmented(other, name, 1.0, 14)
        assert ours.messages[:3] == theirs.messages[:3]


def test_another_seed_draws_otherwise_and_the_same_one_alike() -> None:
    def dressed(seed: int) -> list[Conversation]:
        return [augmented(TALK, n, 0.5, seed) for n in NAMES]

    assert dressed(14) == dressed(14)
    assert dressed(14) != dressed(15)


def test_every_kind_of_change_comes_up() -> None:
    texts = ["\n".join(m.content for m in augmented(TALK, name, 1.0, 14).messages) for name in NAMES]
    seen = Counter(
        {
            "quotes": sum("\u2019" in t for t in texts),
            "bold": sum("**" in t or "__" in t for t in texts),
            "list": sum("\n- " in t or t.startswith("- ") for t in texts),
            "blanks": sum("  " in t for t in texts),
            "labels": sum(t.count("User") == 2 for t in texts),
        }
    )
    assert min(seen.values()) > 20, seen


def test_a_request_for_a_high_score_ends_the_judged_message_alone() -> None:
    found = [steered(TALK, 1, name, 1.0, 14) for name in NAMES]
    changed = [c for c in found if c is not TALK]
    assert 0.6 * STEERED < len(changed) / len(found) < 1.4 * STEERED
    for conversation in changed:
        assert conversation.messages[0] == TALK.messages[0]
        assert conversation.messages[2:] == TALK.messages[2:]
        added = conversation.messages[1].content.removeprefix(TALK.messages[1].content)
        assert added.strip() in _STEERING
    assert all(steered(TALK, 1, name, 0.0, 14) is TALK for name in NAMES)


@pytest.mark.parametrize("contract", ["compact", "full"])
def test_what_stability_measures_with_was_never_trained(contract: str) -> None:
    assert not set(_STEERING) & set(injections(RUBRIC, contract).values())
