"""All heatmaps of a map, the most telling first."""

from __future__ import annotations

from .heat import Heatmap
from .heat_panel import between, blindness, experts, families, missing, preference, scale_use, together
from .heat_reference import against_reference, flags
from .mapping import CompetenceMap


def heatmaps(drawn: CompetenceMap) -> list[Heatmap]:
    """All heatmaps of a map, the most telling first; those without any figure are left out."""
    found = [*against_reference(drawn), flags(drawn), blindness(drawn), preference(drawn), *families(drawn)]
    found += [*scale_use(drawn), missing(drawn), experts(drawn), between(drawn), together(drawn)]
    return [h for h in found if h is not None and any(c.text != "–" for _, row in h.rows for c in row)]
