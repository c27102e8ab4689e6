"""A sample of a running task as a conversation: the same as `score` reads from the task's log afterwards."""

from __future__ import annotations

from collections.abc import Sequence

from inspect_ai.model import ChatMessage

from ..conversation import Conversation
from ..transcripts.inspect_log import read_sample
from ..transcripts.place import Place
from ..transcripts.skipping import ignore


def conversation_of(sample_id: str | int, epoch: int, messages: Sequence[ChatMessage]) -> Conversation:
    """The conversation `<id>_epoch_<n>`, as its entry in a log is called; without messages an empty one.

    Raises TranscriptError for content that is no text and no known kind of part.
    """
    sample = {"id": sample_id, "epoch": epoch, "messages": [m.model_dump(exclude_none=True) for m in messages]}
    found = list(read_sample(sample, Place(f"sample {sample_id}, epoch {epoch}"), ignore))
    return found[0] if found else Conversation(f"{sample_id}_epoch_{epoch}", ())
