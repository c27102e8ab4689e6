"""What is heavy to load is loaded once a session."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from gemma4_checkpoint import gemma4_tokenizer


@pytest.fixture(scope="session")
def gemma_tokenizer() -> Any:
    """The true tokenizer, 262,144 tokens; takes seconds to load, so only slow tests ask for it."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(gemma4_tokenizer())


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Sums in one order, and no threads that wait for each other where tests share the processors."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
