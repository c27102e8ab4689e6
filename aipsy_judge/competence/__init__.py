"""The competence map: what each judge of a panel can be trusted with, and what it cannot."""

from .mapping import CompetenceMap, competence_map

__all__ = ["CompetenceMap", "competence_map"]
