"""Models that MLX computes, opened once a test file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from small_folder import write_small_folder

    return write_small_folder(tmp_path_factory.mktemp("mlx") / "small", max_position_embeddings=32768)


@pytest.fixture(scope="module")
def llama(small: Path) -> Iterator[Any]:
    from aipsy_judge.backends.mlxlm import MlxLm

    backend = MlxLm(small)
    yield backend
    backend.close()


@pytest.fixture(scope="module")
def gemma() -> Iterator[Any]:
    """Its sliding layers see 64 positions."""
    from mlx_folders import gemma4_f32

    from aipsy_judge.backends.mlxlm import MlxLm

    backend = MlxLm(gemma4_f32())
    yield backend
    backend.close()
