"""Libraries that write reports and progress bars over the program's own lines are asked not to."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_progress() -> Iterator[None]:
    """transformers' bars and reports off within; as they were after it. What they report is checked by the caller."""
    from transformers.utils import logging as library

    shown, level = library.is_progress_bar_enabled(), library.get_verbosity()
    library.disable_progress_bar()
    library.set_verbosity_error()
    try:
        yield
    finally:
        library.set_verbosity(level)
        if shown:
            library.enable_progress_bar()


@contextmanager
def without_notices() -> Iterator[None]:
    """Notices by which libraries tell each other what they will call things: nothing a reader could act on."""
    kernels = logging.getLogger("bitsandbytes")  # says at import that an optional kernel is not installed
    level = kernels.level
    kernels.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "`is_gradient_checkpointing` is deprecated", FutureWarning)
            # peft looks for the patterns' names among modules only; whether parameters got their rank is checked
            warnings.filterwarnings("ignore", "The following (rank|alpha)_pattern keys did not match", RuntimeWarning)
            yield
    finally:
        kernels.setLevel(level)
