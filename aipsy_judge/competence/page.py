"""The map as one HTML file that needs nothing else: no script, no request; every cell opens to a plain sentence."""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from importlib import metadata, resources
from typing import TYPE_CHECKING

from ..report.hidden import plain
from .heatmap import heatmaps
from .mapping import CompetenceMap
from .wording import finding_groups, share, spoken, uncertainty

if TYPE_CHECKING:
    from jinja2 import Environment


def render_map(drawn: CompetenceMap) -> str:
    """The page. Names from the table are escaped, hidden characters shown by number; a content security policy
    forbids every request and every script."""
    style = (resources.files(__package__) / "map.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    tables = heatmaps(drawn)
    return (
        _environment()
        .get_template("map.html.j2")
        .render(
            map=drawn,
            main=[h for h in tables if not h.id.startswith("families-") or h.id == "families-overall"],
            by_metric=[h for h in tables if h.id.startswith("families-") and h.id != "families-overall"],
            findings=finding_groups(drawn.findings, drawn.reference),
            style=style,
            style_hash=digest,
            version=metadata.version("aipsy-judge"),
        )
    )


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("aipsy_judge", "competence"),
        autoescape=True,
        finalize=lambda value: plain(value) if type(value) is str else value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(spoken=spoken, share=share, uncertainty=uncertainty)
    return environment
