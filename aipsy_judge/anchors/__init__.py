"""Anchors: items drawn with known probabilities, rated blind by experts, imported without overwriting anything."""

from .adjudication import Disputes, find_disputes
from .draw_file import Draw, DrawnItem, Stratum, read_draw, refuse_existing, write_draw
from .drawing import draw_anchors
from .importing import Imported, import_sheets
from .judged import Judged, judged_by
from .keeping import add_comments, add_ratings
from .sheet import Dispute, Sheet, make_sheet
from .sheet_csv import wording_path, write_csv
from .sheet_xlsx import write_xlsx
from .strata import DEFAULT_SHARES, DISAGREEMENT, MEANINGS
from .summary import FieldSummary, summary_rows
from .texts import ItemText, find_texts
from .weighting import horvitz_thompson_mean, weighted_mean

__all__ = [
    "DEFAULT_SHARES",
    "DISAGREEMENT",
    "MEANINGS",
    "Dispute",
    "Disputes",
    "Draw",
    "DrawnItem",
    "FieldSummary",
    "Imported",
    "ItemText",
    "Judged",
    "Sheet",
    "Stratum",
    "add_comments",
    "add_ratings",
    "draw_anchors",
    "find_disputes",
    "find_texts",
    "horvitz_thompson_mean",
    "import_sheets",
    "judged_by",
    "make_sheet",
    "read_draw",
    "refuse_existing",
    "summary_rows",
    "weighted_mean",
    "wording_path",
    "write_csv",
    "write_draw",
    "write_xlsx",
]
