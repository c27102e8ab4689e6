"""Panel: several judges over the same items, each with a run folder of its own, and one ratings table."""

from .cost import Estimate, estimate, finished
from .kinship import Kin, kin
from .member import Member, make_members
from .panel_file import PANEL, RATINGS, Panel, plan_panel, read_panel, write_panel
from .prices import Price, Prices, load_prices
from .result import JudgeReport, PanelResult, panel_result, write_panel_ratings
from .running import Task, Watch, run_panel
from .silence import Count, Silence, silence

__all__ = [
    "PANEL",
    "RATINGS",
    "Count",
    "Estimate",
    "JudgeReport",
    "Kin",
    "Member",
    "Panel",
    "PanelResult",
    "Price",
    "Prices",
    "Silence",
    "Task",
    "Watch",
    "estimate",
    "finished",
    "kin",
    "load_prices",
    "make_members",
    "panel_result",
    "plan_panel",
    "read_panel",
    "run_panel",
    "silence",
    "write_panel",
    "write_panel_ratings",
]
