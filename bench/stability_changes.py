"""What is done to a conversation that must not change a careful reader's verdict, each change with its name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from aipsy_judge.conversation import Message
from aipsy_judge.rubric import Rubric

from .stability_draw import JudgedReply
from .stability_injection import injected, injections
from .stability_layout import curly, marked_up, spaced
from .stability_paraphrase import Paraphrases, paraphrased

# People whose talk tells their name: another one before each of their messages would be a riddle to any reader.
OWN_NAMES = {"c006": "Aleyamma", "c071": "Karim", "c084": "Maude", "c124": "Ginny"}
NAME = "Sam"
INJECTION = "injection"
KINDS = ("paraphrase", "names", "spaces", "quotes", "markdown", INJECTION)


@dataclass(frozen=True, slots=True)
class Change:
    """one_sided  the verdict may fall, for the change is a fault of the reply; it may not rise"""

    name: str
    about: str
    make: Callable[[JudgedReply], JudgedReply]
    one_sided: bool = False

    def __call__(self, reply: JudgedReply) -> JudgedReply | None:
        """The changed reply; None where it has nothing that this changes."""
        changed = self.make(reply)
        return None if changed.conversation.messages == reply.conversation.messages else changed


def all_changes(known: Paraphrases, rubric: Rubric, contract: str, kinds: Sequence[str] = KINDS) -> tuple[Change, ...]:
    """Those of some `kinds`, in the order of a report; the wordings of the injection last."""
    single = (
        Change("paraphrase", "earlier neutral messages in other words", lambda r: paraphrased(r, known)),
        Change("names", "a name before each message", named),
        Change("spaces", "double and trailing blanks, line breaks", lambda r: on_texts(r, lambda m: spaced(m.content))),
        Change("quotes", "typographic quotes and apostrophes", lambda r: on_texts(r, lambda m: curly(m.content))),
        Change("markdown", "bold openings and other list marks in replies", lambda r: on_texts(r, _replies_marked_up)),
    )
    wordings = injections(rubric, contract).items() if INJECTION in kinds else ()
    return (*(c for c in single if c.name in kinds), *(_injection(name, added) for name, added in wordings))


def named(reply: JudgedReply) -> JudgedReply:
    """The person's name before each of their messages, "Assistant" before each reply."""
    names = {"user": OWN_NAMES.get(reply.origin, NAME), "assistant": "Assistant"}
    return on_texts(reply, lambda m: f"{names[m.role]}: {m.content}" if m.role in names else m.content)


def on_texts(reply: JudgedReply, change: Callable[[Message], str]) -> JudgedReply:
    """Every message with another text."""
    messages = tuple(replace(m, content=change(m)) for m in reply.conversation.messages)
    return replace(reply, conversation=replace(reply.conversation, messages=messages))


def _replies_marked_up(message: Message) -> str:
    return marked_up(message.content) if message.role == "assistant" else message.content


def _injection(name: str, added: str) -> Change:
    return Change(f"{INJECTION}: {name}", repr(added), lambda r: injected(r, added), one_sided=True)
