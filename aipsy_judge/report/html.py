"""One HTML file that needs nothing else: no script, no font, no picture from elsewhere; works and prints offline."""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING

from ..runs import RunView
from .chart import outline
from .hidden import excerpt, on_one_line, pieces, plain
from .page import page
from .wording import FINDING_TITLES, WHAT_SCORES_ARE, mean, number, percent, plural

if TYPE_CHECKING:
    from jinja2 import Environment

    from ..correction.applied import Applied


def render_html(run: RunView, applied: Applied | None = None) -> str:
    """The report of a run as one self-contained HTML document.

    Text of conversations and judges is escaped, hidden characters (bidi controls, zero width) are shown by number.
    A content security policy forbids every request and every script, should an escape ever be forgotten.
    `applied` shows corrected values beside the raw scores; counts, findings and order stay those of the raw ones.
    Raises InputError where the run cannot be counted (see units.units), LaneError where `applied` is not for it.
    """
    style = (resources.files(__package__) / "report.css").read_text(encoding="utf-8")
    template = _environment().get_template("report.html.j2")
    return template.render(
        page=page(run, applied), run=run, rubric=run.rubric, style=style, style_hash=_csp_hash(style)
    )


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("aipsy_judge", "report"),
        autoescape=True,
        finalize=_nothing_hidden,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        outline=outline,
        pieces=pieces,
        line=on_one_line,
        excerpt=excerpt,
        number=number,
        mean=mean,
        percent=percent,
        plural=plural,
        count="{:,}".format,
    )
    environment.globals.update(finding_titles=FINDING_TITLES, what_scores_are=WHAT_SCORES_ARE)
    return environment


def _nothing_hidden(value: object) -> object:
    """Applied to everything that is printed, before it is escaped. (What is markup already went through it.)"""
    return plain(value) if type(value) is str else value


def _csp_hash(style: str) -> str:
    return base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
