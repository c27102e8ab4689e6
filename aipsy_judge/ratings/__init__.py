"""The ratings table: one shape that everything statistical reads."""

from .from_inspect import from_inspect_eval
from .from_runs import from_runs, item_id, ratings_of_runs
from .reading import ratings_from_rows, read_ratings
from .sources import load_ratings, merge_ratings
from .table import KINDS, NA, SCORED, STATUSES, UNSCORED, Kind, Labels, Matrix, Ratings
from .writing import write_ratings

__all__ = [
    "KINDS",
    "NA",
    "SCORED",
    "STATUSES",
    "UNSCORED",
    "Kind",
    "Labels",
    "Matrix",
    "Ratings",
    "from_inspect_eval",
    "from_runs",
    "item_id",
    "load_ratings",
    "merge_ratings",
    "ratings_from_rows",
    "ratings_of_runs",
    "read_ratings",
    "write_ratings",
]
