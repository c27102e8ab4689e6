"""Where the figures of a report come from, as pairs of a name and a text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..runs import RunView
from ..verdict import Verdict

if TYPE_CHECKING:
    from ..correction.applied import Applied


def provenance(run: RunView, applied: Applied | None = None) -> tuple[tuple[str, str], ...]:
    """Lane, rubric, settings, versions, and what the verdicts' own provenance says."""
    facts = [
        ("Judge", run.lane.judge),
        ("Contract", run.lane.contract),
        ("Rubric", f"{run.rubric.name} {run.rubric.version}"),
        ("Rubric hash (sha256)", run.lane.rubric),
        ("Run begun", run.created),
        ("aipsy-judge", run.version),
        ("Settings", _pretty(run.settings)),
    ]
    if applied is not None:
        facts.append(("Correction", _pretty(applied.to_dict())))
    common, varying = _of_verdicts(run.verdicts)
    if common:
        facts.append(("The same in every verdict", _pretty(common)))
    if varying:
        facts.append(("Differs between verdicts", _pretty(varying)))
    return tuple(facts)


def _of_verdicts(verdicts: Sequence[Verdict]) -> tuple[Mapping[str, object], Mapping[str, str]]:
    """What every verdict's provenance agrees on, and for the rest how many different values there are."""
    keys = sorted({k for v in verdicts for k in v.provenance})
    found = {k: {_pretty(v.provenance.get(k)) for v in verdicts} for k in keys}
    common = {k: verdicts[0].provenance.get(k) for k in keys if len(found[k]) == 1}
    varying = {k: f"{len(found[k])} different values" for k in keys if len(found[k]) > 1}
    return common, varying


def _pretty(data: object) -> str:
    plain = dict(data) if isinstance(data, Mapping) else data
    return json.dumps(plain, indent=2, sort_keys=True, ensure_ascii=False, default=str)
