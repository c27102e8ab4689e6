"""The ratings table: one shape that everything statistical reads."""

from .reading import ratings_from_rows, read_ratings
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
    "ratings_from_rows",
    "read_ratings",
    "write_ratings",
]
