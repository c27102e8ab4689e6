"""What `pytest --doctest-modules aipsy_judge` leaves out: a module of an extra that is not installed here."""

from __future__ import annotations

import importlib.util

# The one extra of `dev` that not every machine can have. It is imported at the top there, since nothing else imports
# that module but where MLX is in use.
collect_ignore = [] if importlib.util.find_spec("mlx") is not None else ["aipsy_judge/backends/mlx_cells.py"]
