"""The text of a judge's free reply, turned into scores. Nothing is guessed: what cannot be read is Unscored."""

from .read import ParsedReply, failed_reply, read_reply

__all__ = ["ParsedReply", "failed_reply", "read_reply"]
