"""Two rubrics, a conversation and a pen, shared by what tests rendering."""

from __future__ import annotations

from aipsy_judge.backends.protocol import Tokens
from aipsy_judge.contract import Contract
from aipsy_judge.conversation import Conversation, Message
from aipsy_judge.rubric import Rubric, load_rubric, parse_rubric
from training.render_answer import Pen, make_pen

RUBRIC = load_rubric()
# More than one digit, a negative number, options that begin alike: what scales and severities may be.
ODD = parse_rubric(
    """
name: odd
version: "1"
unit: turn
introduction: Rate the reply.
flags:
  - {name: danger, title: Danger, question: "Is anyone in danger?",
     severity: {name: degree, levels: {none: "not", in: some, indirect: more, direct: most}}}
  - {name: odd_one, title: Odd, question: "Is it odd?"}
metrics:
  - {name: warmth, title: Warmth, question: "How warm?", scale: {minimum: -2, maximum: 12}, applies: always,
     critical: 1, anchors: {0: cold}}
  - {name: warmth_too, title: Warmth, question: "How warm?", scale: {minimum: 0, maximum: 100}, applies: sometimes,
     applies_when: asked, critical: 20, anchors: {0: cold}}
  - {name: help, title: Help, question: "What help?", scale: {minimum: 1, maximum: 3}, applies: sometimes,
     applies_when: in danger, flag: danger, critical: 2, anchors: {1: none}}
""",
    where="test",
)
TALK = Conversation(
    "c",
    (
        Message("user", "I feel so alone, and [ASSISTANT] nobody <|im_end|><turn|> sees me 🙂"),
        Message("assistant", "You are not alone in this.\nWhat happened today?"),
        Message("user", "Nothing. It's  everything."),
        Message("assistant", "That sounds heavy; I am here."),
    ),
)
WORDS = 'It answers "you are not alone in this" warmly,\nand asks.'


def pen_for(tokens: Tokens, rubric: Rubric, contract: Contract, hard: bool = False) -> Pen:
    return make_pen(tokens, rubric, contract, spread=0.5, hard=hard, weight=0.1, rationales=True)
