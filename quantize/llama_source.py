"""The pinned source distribution of llama-cpp-python: llama.cpp's converters and vocabulary files.

Fetched once with pip, checked by sha256, unpacked into `.cache/` of the clone. `python -m quantize.llama_source`
prints where vendor/llama.cpp lies.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from aipsy_judge.errors import WeightsError

VERSION = "0.3.36"
SHA256 = "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"
CACHE = Path(__file__).resolve().parent.parent / ".cache"
# What is taken out: converters with their own library, templates and vocabularies. Not the C++ sources.
_WANTED = ("convert_hf_to_gguf.py", "convert_lora_to_gguf.py", "conversion/", "gguf-py/", "models/", "requirements/")


def llama_cpp_source() -> Path:
    """The folder vendor/llama.cpp, fetched if it is not there. WeightsError if it cannot be had or is another."""
    target = CACHE / f"llama.cpp-{VERSION}"
    if target.is_dir():
        return target
    CACHE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory(dir=CACHE) as beside:
        archive = _download(Path(folder))
        part = Path(beside) / target.name
        prefix = f"llama_cpp_python-{VERSION}/vendor/llama.cpp/"
        with tarfile.open(archive) as tar:
            members = [m for m in tar if m.name.startswith(tuple(prefix + w for w in _WANTED))]
            for member in members:
                member.name = member.name.removeprefix(prefix)
            tar.extractall(part, members=members, filter="data")
        try:
            part.rename(target)
        except OSError:
            if not target.is_dir():  # else another process was faster: its folder is as good
                raise
    return target


def _download(folder: Path) -> Path:
    """pip runs parts of what it fetches, so it is pip that checks the sha256, before it does."""
    wanted = folder / "wanted.txt"
    wanted.write_text(f"llama-cpp-python=={VERSION} --hash=sha256:{SHA256}\n", encoding="utf-8")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "llama-cpp-python"]
    done = subprocess.run(
        [*command, "--require-hashes", "--dest", str(folder), "--requirement", str(wanted)],
        capture_output=True,
        text=True,
        check=False,
    )
    archives = list(folder.glob("*.tar.gz"))
    if done.returncode != 0 or len(archives) != 1:
        raise WeightsError(
            f"pip could not fetch the source of llama-cpp-python {VERSION} with sha256 {SHA256}:\n{done.stderr}",
            hint="It is fetched once: is the network there?",
        )
    return archives[0]


if __name__ == "__main__":
    print(llama_cpp_source())
