"""Reading conversations from files, folders and standard input, whatever their format.

The format is told by the content, never by the name of the file:

====================  =================================================================================================
own JSON, JSONL       `{"id", "messages": [{"role", "content"}], "metadata"}`, one, a list of them, or one a line
chat messages         OpenAI and what is written like it: text or lists of parts, tool calls, null content; also a bare
                      list, one message a line, prompt and completion, and benchmark items (`item_id`, `conversation`)
ShareGPT              `{"conversations": [{"from", "value"}]}`, JSON or JSONL
ChatGPT export        the zip, or its `conversations.json`: the thread that was open, not its other branches
Claude export         the zip, or its `conversations.json`
Inspect log           `.eval`, or the JSON that `inspect log dump` prints; one conversation a sample
CSV                   a row a message (conversation, turn, role, text) or a row a prompt with its response
text                  `User: ...`, `[AI] ...`, `**Human:** ...`, `### Assistant`: one conversation a file
====================  =================================================================================================

What holds for all of them:

* Only role and text are taken from a message. Parts of a text are joined with a newline; images, audio, video and files
  become `[image omitted]` and so on; thoughts are left out. Each leaves a warning on the conversation.
* `developer` is `system`; `function` is `tool`. A tool call becomes `[tool call: name]` and, like a tool's result, is
  not spoken: context for the judge, never judged.
* A message that says nothing stays, as "". Order, number and repetition of roles are left as they are. A conversation
  without a spoken assistant message has no turns; one without any message is an error (in an export it is passed over).
* UTF-8 with or without byte-order mark, and UTF-16 with one; another encoding is an error with the offset of its byte.
  Half of a surrogate pair becomes U+FFFD, with a warning. All other characters stay.
* A key that stands twice in one JSON object, and an id that comes twice in one input, are errors. Metadata is kept
  where strict JSON can hold it.
"""

from __future__ import annotations

from ..conversation import Conversation
from .own import to_dict
from .reading import Paths, iter_conversations
from .skipping import Skip, ignore

__all__ = ["FORMATS", "iter_conversations", "read", "to_dict"]

FORMATS: tuple[tuple[str, str], ...] = (
    ("own JSON, JSONL", '{"id", "messages": [{"role", "content"}], "metadata"}; a list of them, or one a line'),
    ("chat messages", "OpenAI chat and its kin: text or parts, tool calls; objects, bare lists, JSONL"),
    ("ShareGPT", '{"conversations": [{"from", "value"}]}, JSON or JSONL'),
    ("ChatGPT export", "the zip or its conversations.json; the thread that was open"),
    ("Claude export", "the zip or its conversations.json"),
    ("Inspect log", ".eval or JSON; one conversation a sample"),
    ("CSV", "columns conversation, turn, role, text; or prompt, response"),
    ("text", "User: ... / Assistant: ..., [USER] / [AI], **Human:**, ### Assistant"),
)


def read(paths: Paths, *, on_skip: Skip = ignore) -> list[Conversation]:
    """All conversations of a file, a folder, several of them, or standard input (`-`), in order.

    As `iter_conversations`, which see, but all of them at once. Raises TranscriptError.
    """
    return list(iter_conversations(paths, on_skip=on_skip))
