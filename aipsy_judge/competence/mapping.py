"""The competence map: raters x metrics, against the experts and against each other, with what averaging hides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypedDict

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
from ..agreement.pairs import Ints
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
from .panel_scores import PanelScores, panel_scores
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
    who = _parties(ratings, judges, held_right)
    groups, bootstrap = in_blocks(ratings.groups(by), bootstrap)
    panel = panel_scores(ratings, who.judges, who.right, yardstick)
    agreements = _agreements(ratings, who, yardstick, groups, bootstrap)
    habits, family_note = _habits(ratings, who, yardstick, panel, own, groups, bootstrap)
    found, tested = findings(
        agreements["against"],
        habits["spread"],
        habits["self_preference"],
        habits["blindness"],
        habits["families"],
        habits["missing"],
        level=bootstrap.level,
    )
    return CompetenceMap(
        reference=reference_name(ratings, who.right) if who.right else None,
        raters=who.raters,
        judges=who.judges,
        **_table(ratings, yardstick, by),
        **agreements,
        **habits,
        laundered=laundered(ratings, panel, yardstick, groups, bootstrap),
        findings=found,
        tested=tested,
        overall=panel.overall_form,
        bootstrap=bootstrap,
        notes=(*ratings.warnings, *yardstick.notes, *([family_note] if family_note else [])),
    )


@dataclass(frozen=True, slots=True)
class _Parties:
    """right: the reference; judges: the panel; raters: all who are held against the reference."""

    right: tuple[str, ...]
    judges: tuple[str, ...]
    raters: tuple[str, ...]


def _parties(ratings: Ratings, judges: Sequence[str] | None, held_right: Sequence[str] | None) -> _Parties:
    """Who is who. RatingsError where nobody is a judge."""
    right = tuple(reference_raters(ratings, held_right))
    panel = tuple(judges) if judges else tuple(j for j in ratings.judges if j not in right)
    if not panel:
        raise RatingsError(
            f"no judge among the raters: {', '.join(ratings.raters)}", hint="Say who is one: --kind NAME=judge"
        )
    others = () if judges else tuple(r for r in ratings.raters if r not in panel and r not in right)
    return _Parties(right, panel, panel + others)


class _Table(TypedDict):
    metrics: tuple[str, ...]
    flags: tuple[str, ...]
    scales: Mapping[str, tuple[float, float]]
    critical: Mapping[str, float]
    rubric: str | None
    rubric_hash: str | None
    n_items: int
    n_groups: int
    counts: Mapping[str, int]


def _table(ratings: Ratings, yardstick: Yardstick, by: By) -> _Table:
    """What the table and the yardstick say by themselves."""
    return _Table(
        metrics=yardstick.scored,
        flags=yardstick.flags,
        scales=dict(ratings.scales),
        critical=dict(yardstick.critical),
        rubric=yardstick.rubric,
        rubric_hash=yardstick.rubric_hash,
        n_items=len(set(ratings.item.codes.tolist())),
        n_groups=int(ratings.groups(by).max()) + 1,
        counts=ratings.counts(),
    )


class _Agreements(TypedDict):
    against: tuple[PairFigures, ...]
    between: tuple[PairFigures, ...]
    panels: tuple[PanelFigures, ...]
    experts: tuple[PanelFigures, ...]


def _agreements(
    ratings: Ratings, who: _Parties, yardstick: Yardstick, groups: Ints, bootstrap: Bootstrap
) -> _Agreements:
    """With the reference, and among the judges and the reference raters themselves."""
    against: list[PairFigures] = []
    if who.right:
        for held in (against_reference, overall_against_reference):
            against += held(ratings, who.raters, who.right, yardstick, bootstrap, groups=groups)
    several = [names if len(names) > 1 else () for names in (who.judges, who.right)]
    among = [tuple(panels(ratings, names, bootstrap, groups=groups)) if names else () for names in several]
    return _Agreements(
        against=tuple(against),
        between=tuple(between_raters(ratings, who.judges, yardstick, bootstrap, names=BETWEEN, groups=groups)),
        panels=among[0],
        experts=among[1],
    )


class _Habits(TypedDict):
    spread: tuple[ScaleUse, ...]
    blindness: tuple[Blindness, ...]
    self_preference: tuple[SelfPreference, ...]
    families: tuple[FamilyLeniency, ...]
    family_reference: str
    missing: tuple[Missingness, ...]


def _habits(
    ratings: Ratings,
    who: _Parties,
    yardstick: Yardstick,
    panel: PanelScores,
    own: Mapping[str, Sequence[str]] | None,
    groups: Ints,
    bootstrap: Bootstrap,
) -> tuple[_Habits, str | None]:
    """How each judge uses the scale, what it does not see, whom it favours, what it leaves out; and a note on how the
    families were told."""
    families, item_family, note = item_families(ratings)
    owned = own_generators(ratings, who.judges, own)
    peers = not who.right
    found = _Habits(
        spread=tuple(scale_use(ratings, panel, groups, bootstrap)),
        blindness=tuple(panel_blindness(panel, yardstick.critical, groups, bootstrap)),
        self_preference=tuple(self_preferences(ratings, panel, owned, groups, bootstrap)),
        families=tuple(family_leniency(panel, families, item_family, groups, bootstrap, against_peers=peers)),
        family_reference="the other judges' mean" if peers else reference_name(ratings, who.right),
        missing=tuple(missingness(ratings, panel, yardstick, who.right, groups, bootstrap)),
    )
    return found, note
