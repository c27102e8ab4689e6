"""The ratings table: one shape that everything statistical reads."""

from .from_inspect import from_inspect_eval
from .from_runs import from_runs, item_id, ratings_of_runs
from .reading import ratings_from_rows, read_ratings
from .reference import Reference, reference, reference_name, reference_raters
from .sources import load_ratings, merge_ratings
from .table import KINDS, NA, SCORED, STATUSES, UNSCORED, Kind, Labels, Matrix, Ratings
from .writing import write_ratings
from .yardstick import Yardstick, inclusion_weights, labels, make_yardstick

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
    "Reference",
    "Yardstick",
    "from_inspect_eval",
    "from_runs",
    "inclusion_weights",
    "item_id",
    "labels",
    "load_ratings",
    "make_yardstick",
    "merge_ratings",
    "ratings_from_rows",
    "ratings_of_runs",
    "read_ratings",
    "reference",
    "reference_name",
    "reference_raters",
    "write_ratings",
]
