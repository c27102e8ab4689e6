"""One self-contained HTML file with the pictures: of one dialogue, or of a comparison."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata, resources

from ..report.visible import visible
from ..report.wording import plural
from .cases import Case, UnscoredCase
from .compare import Comparison
from .evidence_sheet import evidence_sheet
from .pack import Pack
from .parameters import Parameters
from .picture_grid import progress_picture, radars_picture
from .picture_heatmap import heatmap_picture
from .picture_path import path_picture
from .picture_radar import radar_picture
from .picture_ranks import ranks_picture
from .picture_turns import turns_picture
from .remarks import remarks
from .sheets import (
    SCORE_TITLES,
    Sheet,
    breakdown_sheets,
    dialogue_sheet,
    ends_sheet,
    index_sheet,
    leaderboard,
    number,
)
from .space import Space

_READ_RADAR = "The bold ring is 100, the rim 150; an open index that passes the rim stays on it."


@dataclass(frozen=True, slots=True)
class Picture:
    """Drawn SVG, and what to know to read it."""

    drawing: str
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page. `narrow`: its pictures are squares, not bands; `quotes`: its sheets hold sentences."""

    title: str
    pictures: tuple[Picture, ...] = ()
    sheets: tuple[Sheet, ...] = ()
    words: str = ""
    narrow: bool = False
    quotes: bool = False


def dialogue_report(result: Case | UnscoredCase, pack: Pack, parameters: Parameters) -> str:
    """The page of one dialogue, with the evidence where its forms carry some."""
    title = result.forms.title
    notes = remarks([result], parameters)
    sheet = evidence_sheet(result.forms, pack.space)
    evidence = [Section("Evidence", sheets=(sheet,), quotes=True)] if sheet else []
    if isinstance(result, UnscoredCase):
        return _render(title, "Unscored: there is no path to show.", notes, (), evidence, pack)
    sections = [*_dialogue_sections(result, pack.space, parameters), *evidence]
    tiles = [(number(result.scores[n]), SCORE_TITLES[n]) for n in ("epm_q", "outcome", "efficiency", "stability")]
    return _render(title, result.end, notes, tiles, sections, pack)


def comparison_report(comparison: Comparison, pack: Pack, parameters: Parameters) -> str:
    """The page of many runs."""
    title = f"{plural(len(comparison.cases), 'dialogue')} of {plural(len(comparison.models), 'model')}"
    sections = (
        Section("Leaderboard", _drawn(ranks_picture(comparison), "Mean over cases; the bar is its 95 % interval.")),
        Section("", sheets=(leaderboard(comparison), index_sheet(comparison), ends_sheet(comparison))),
        Section(
            "Every case",
            _drawn(heatmap_picture(comparison), "EPM-Q; the cases that these models found hardest stand first."),
        ),
        Section(
            "Progress",
            _drawn(
                progress_picture(comparison),
                "A line a dialogue: energy in shares of the gate (dashed). Lines that fall out of the cell end at its "
                "floor.",
            ),
        ),
        Section("Indices", _drawn(radars_picture(comparison), _READ_RADAR)),
        Section("Breakdown", sheets=tuple(breakdown_sheets(comparison, pack.space))),
    )
    return _render(title, "", remarks(comparison.cases, parameters), (), sections, pack)


def _dialogue_sections(case: Case, space: Space, parameters: Parameters) -> list[Section]:
    return [
        Section(
            "Path through the deficit space",
            _drawn(
                path_picture(case, space, parameters.zone),
                "From the open ring to the mark of the end; steps that gained energy and steps that lost it differ in "
                "colour. Dotted: the straight way to the origin. Shaded: every axis met.",
            ),
        ),
        Section(
            "Energy and alignment",
            _drawn(
                turns_picture(case, parameters),
                f"Success needs the energy at or above the gate (dashed). Shaded: before turn {parameters.min_turns} "
                "nothing counts as success or failure.",
            ),
        ),
        Section(
            "Nine indices",
            _drawn(radar_picture(case.indices, f"Nine indices of {case.forms.case}"), _READ_RADAR),
            (dialogue_sheet(case),),
            narrow=True,
        ),
    ]


def _drawn(drawing: str, caption: str = "") -> tuple[Picture, ...]:
    return (Picture(drawing, caption),) if drawing else ()


def _render(
    title: str,
    lead: str,
    notes: Sequence[str],
    tiles: Sequence[tuple[str, str]],
    sections: Sequence[Section],
    pack: Pack,
) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    style = (resources.files(__package__) / "report.css").read_text(encoding="utf-8")
    environment = Environment(
        loader=PackageLoader("aipsy_judge", "epm"),
        autoescape=True,
        finalize=_nothing_hidden,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # What is drawn was escaped as it was drawn, and the style is this package's own.
    drawn = [
        {
            "title": s.title,
            "words": s.words,
            "pictures": [{"drawing": Markup(p.drawing), "caption": p.caption} for p in s.pictures],
            "sheets": s.sheets,
            "narrow": s.narrow,
            "quotes": s.quotes,
        }
        for s in sections
    ]
    made_by = f"aipsy-judge {metadata.version('aipsy-judge')}; pack {pack.name} {pack.version}, {pack.hash[:12]}."
    return environment.get_template("report.html.j2").render(
        title=title,
        lead=lead,
        notes=notes,
        tiles=tiles,
        sections=drawn,
        style=Markup(style),
        style_hash=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        footer=f"{made_by} Directional, for human review.",
    )


def _nothing_hidden(value: object) -> object:
    """Applied to everything that is printed, before it is escaped; what is markup was made safe already."""
    return visible(value) if type(value) is str else value
