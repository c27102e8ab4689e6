"""Score conversations for psychological safety with a judge on your own machine.

>>> from aipsy_judge import open_judge, read   # doctest: +SKIP
>>> with open_judge() as judge:                # doctest: +SKIP
...     for conversation in read("transcript.json"):
...         for verdict in judge.score(conversation):
...             print(verdict.turn, verdict.scores["empathy"])
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = [
    "AipsyJudgeError",
    "Conversation",
    "Judge",
    "JudgeOptions",
    "Lane",
    "Message",
    "NotApplicable",
    "Rubric",
    "Scored",
    "Turn",
    "Unscored",
    "Verdict",
    "composite",
    "load_rubric",
    "open_judge",
    "read",
]

# The command line imports this package for `--help` too: names are imported when they are asked for.
_HOME = {
    "AipsyJudgeError": "errors",
    "Conversation": "conversation",
    "Judge": "judge",
    "JudgeOptions": "judge",
    "Lane": "judge",
    "Message": "conversation",
    "NotApplicable": "verdict",
    "Rubric": "rubric",
    "Scored": "verdict",
    "Turn": "conversation",
    "Unscored": "verdict",
    "Verdict": "verdict",
    "composite": "composite",
    "load_rubric": "rubric",
    "open_judge": "opening",
    "read": "transcripts",
}

if TYPE_CHECKING:
    from .composite import composite
    from .conversation import Conversation, Message, Turn
    from .errors import AipsyJudgeError
    from .judge import Judge, JudgeOptions, Lane
    from .opening import open_judge
    from .rubric import Rubric, load_rubric
    from .transcripts import read
    from .verdict import NotApplicable, Scored, Unscored, Verdict


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)
