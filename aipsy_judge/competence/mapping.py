"""The competence map: raters x metrics, against the experts and against each other, with what averaging hides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..agreement.figures import (
    By,
    PairFigures,
    PanelFigures,
    against_reference,
    between_raters,
    overall_against_reference,
    panels,
    resampling_unit,
)
from ..agreement.report import pair_to_dict, panel_to_dict
from ..agreement.resample import Bootstrap, in_blocks
from ..errors import RatingsError
from ..ratings import Ratings, Yardstick, reference_name, reference_raters
from .blindness import Blindness, panel_blindness
from .families import item_families, own_generators
from .findings import Finding, findings
from .laundered import Laundered, laundered
from .leniency import FamilyLeniency, family_leniency
from .missing import Missingness, missingness
from .panel_scores import panel_scores
from .self_preference import SelfPreference, self_preferences
from .spread import ScaleUse, scale_use

BETWEEN = ("icc", "kappa_quadratic", "kappa", "spearman", "bias")


@dataclass(frozen=True, slots=True)
class CompetenceMap:
    """reference   who is held to be right, or None; `raters` are held against them, `judges` are the panel
    against      each rater against the reference, a metric at a time
    between      every two judges; `panels`: all judges together; `experts`: several reference raters among
                 themselves, which is the most that can be asked of a judge
    overall      what the overall score is that self-preference and families rest on
    tested       how many figures were tested for `findings`
    scales, critical  of the metrics; n_items and counts of the table; notes: what was taken for granted
    """

    reference: str | None
    raters: tuple[str, ...]
    judges: tuple[str, ...]
    metrics: tuple[str, ...]
    flags: tuple[str, ...]
    scales: Mapping[str, tuple[float, float]]
    critical: Mapping[str, float]
    rubric: str | None
    rubric_hash: str | None
    against: tuple[PairFigures, ...]
    between: tuple[PairFigures, ...]
    panels: tuple[PanelFigures, ...]
    experts: tuple[PanelFigures, ...]
    spread: tuple[ScaleUse, ...]
    blindness: tuple[Blindness, ...]
    self_preference: tuple[SelfPreference, ...]
    families: tuple[FamilyLeniency, ...]
    family_reference: str
    laundered: Laundered
    missing: tuple[Missingness, ...]
    findings: tuple[Finding, ...]
    tested: int
    overall: str
    n_items: int
    n_groups: int
    counts: Mapping[str, int]
    bootstrap: Bootstrap
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The map as strict JSON data."""
        # Pair and panel figures are written by name; the rest is plain dataclasses throughout.
        named = {
            "against": [pair_to_dict(p) for p in self.against],
            "between": [pair_to_dict(p) for p in self.between],
            "panels": [panel_to_dict(p) for p in self.panels],
            "experts": [panel_to_dict(p) for p in self.experts],
        }
        return {**asdict(replace(self, against=(), between=(), panels=(), experts=())), **named}


def competence_map(
    ratings: Ratings,
    yardstick: Yardstick,
    *,
    judges: Sequence[str] | None = None,
    held_right: Sequence[str] | None = None,
    own: Mapping[str, Sequence[str]] | None = None,
    by: By = "conversation",
    bootstrap: Bootstrap | None = None,
) -> CompetenceMap:
    """Draw the map of a ratings table.

    judges      the panel; default: the raters of kind judge
    held_right  the reference; default: the experts; there may be none, then what needs one says so
    own         judge -> its own generators, where their names do not tell
    by          what is resampled as a whole
    """
    bootstrap = replace(bootstrap or Bootstrap(), unit=resampling_unit(ratings, by))
    right = reference_raters(ratings, held_right)
    panel_names = tuple(judges) if judges else tuple(j for j in ratings.judges if j not in right)
    if not panel_names:
        raise RatingsError(
            f"no judge among the raters: {', '.join(ratings.raters)}", hint="Say who is one: --kind NAME=judge"
        )
    others = () if judges else tuple(r for r in ratings.raters if r not in panel_names and r not in right)
    raters = panel_names + others
    groups, bootstrap = in_blocks(ratings.groups(by), bootstrap)
    panel = panel_scores(ratings, panel_names, right, yardstick)
    families, item_family, family_note = item_families(ratings)
    against: list[PairFigures] = []
    if right:
        against += against_reference(ratings, raters, right, yardstick, bootstrap, groups=groups)
        against += overall_against_reference(ratings, raters, right, yardstick, bootstrap, groups=groups)
    spread = tuple(scale_use(ratings, panel, groups, bootstrap))
    blind = tuple(panel_blindness(panel, yardstick.critical, groups, bootstrap))
    owned = own_generators(ratings, panel_names, own)
    preferences = tuple(self_preferences(ratings, panel, owned, groups, bootstrap))
    lenient = tuple(family_leniency(panel, families, item_family, groups, bootstrap, against_peers=not right))
    silent = tuple(missingness(ratings, panel, yardstick, right, groups, bootstrap))
    found, tested = findings(against, spread, preferences, blind, lenient, silent, level=bootstrap.level)
    several = len(panel_names) > 1
    return CompetenceMap(
        reference=reference_name(ratings, right) if right else None,
        raters=raters,
        judges=panel_names,
        metrics=yardstick.scored,
        flags=yardstick.flags,
        scales=dict(ratings.scales),
        critical=dict(yardstick.critical),
        rubric=yardstick.rubric,
        rubric_hash=yardstick.rubric_hash,
        against=tuple(against),
        between=tuple(between_raters(ratings, panel_names, yardstick, bootstrap, names=BETWEEN, groups=groups)),
        panels=tuple(panels(ratings, panel_names, bootstrap, groups=groups)) if several else (),
        experts=tuple(panels(ratings, right, bootstrap, groups=groups)) if len(right) > 1 else (),
        spread=spread,
        blindness=blind,
        self_preference=preferences,
        families=lenient,
        family_reference="the other judges' mean" if not right else reference_name(ratings, right),
        laundered=laundered(ratings, panel, yardstick, groups, bootstrap),
        missing=silent,
        findings=found,
        tested=tested,
        overall=panel.overall_form,
        n_items=len(set(ratings.item.codes.tolist())),
        n_groups=int(ratings.groups(by).max()) + 1,
        counts=ratings.counts(),
        bootstrap=bootstrap,
        notes=(*ratings.warnings, *yardstick.notes, *([family_note] if family_note else [])),
    )
