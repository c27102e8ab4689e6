"""Profiles: which of the ladder's rungs a correction uses."""

from __future__ import annotations

from typing import Literal

Profile = Literal["ladder", "published"]
PROFILES: tuple[Profile, ...] = ("ladder", "published")

# profile -> the only rung, or None for the blend of all
ONLY: dict[Profile, str | None] = {"ladder": None, "published": "published"}
