"""A correction's file: written whole, checked when read."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from ..atomic import write_text
from ..errors import InputError
from ..strict_json import dumps, loads
from .check import check_correction
from .record import Correction


def correction_text(correction: Correction) -> str:
    """Strict JSON; the same correction always gives the same text."""
    return dumps(asdict(correction), indent=1) + "\n"


def save_correction(path: str | Path, correction: Correction) -> None:
    """Write it, or leave what was there."""
    write_text(path, correction_text(correction))


def load_correction(path: str | Path) -> Correction:
    """Read and check. InputError, with every fault, where it is not a correction's file."""
    try:
        data = loads(Path(path).read_bytes())
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", where=str(path)) from error
    except (ValueError, UnicodeDecodeError) as error:
        raise InputError(f"not strict JSON: {error}", where=str(path)) from error
    try:
        correction = TypeAdapter(Correction).validate_python(data)
    except ValidationError as error:
        faults = [f"  {'.'.join(map(str, e['loc'])) or 'file'}: {e['msg']}" for e in error.errors()]
        raise InputError(
            "not a correction's file:\n" + "\n".join(faults[:20]),
            where=str(path),
            hint="`aipsy-judge correct fit` writes one.",
        ) from error
    check_correction(correction, str(path))
    return correction
