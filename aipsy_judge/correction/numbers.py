"""The kinds of arrays that the correction works on. Axes: I items, J judges, M other metrics, F folds, K columns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]
Bools = NDArray[np.bool_]
