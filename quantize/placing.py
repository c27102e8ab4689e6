"""A judge's weights come into its folder: each as a row of the manifest, and a link (or a copy) beside it."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path
from typing import Literal

from aipsy_judge.errors import InputError
from aipsy_judge.file_hash import file_sha256
from aipsy_judge.gguf_header import read_gguf_header
from aipsy_judge.manifest import JudgeFile
from aipsy_judge.model_folder import model_files, open_model_folder
from aipsy_judge.tensor_folder import CONFIG


def place_model(named: str, folder: Path) -> tuple[list[JudgeFile], Path]:
    """The rows of a model, and where it then is: a GGUF file, or `folder` itself where it is a folder of safetensors.

    named: a path, or PACKAGE:FILE of what a Python package carries, which stays there. Raises InputError where there
    is no such thing or the folder holds files of another model; WeightsError where it is none.
    """
    source = Path(named).expanduser()
    if not source.is_dir():
        row, path = place_file("model", named, folder)
        return [row], path
    open_model_folder(source)
    files = model_files(source)
    strange = sorted({p.name for p in model_files(folder)} - {p.name for p in files})
    if strange:
        raise InputError(
            f"{strange[0]} is there and not of this model, but would be loaded with it",
            where=str(folder),
            hint="Remove what is left there of an earlier judge.",
        )
    for path in files:
        _link(path, folder / path.name)
    config = [p for p in files if p.name == CONFIG]
    parts = [p for p in files if p.name != CONFIG]
    return [*(_row("model", folder / p.name) for p in config), *(_row("part", folder / p.name) for p in parts)], folder


def place_file(role: Literal["model", "adapter"], named: str, folder: Path) -> tuple[JudgeFile, Path]:
    """The row of a GGUF file, and where it then is; see `place_model`."""
    package, colon, name = named.partition(":")
    if colon and package.isidentifier():
        path = _in_package(package, name, named)
        return _row(role, path, package.replace("_", "-")), path
    source = Path(named).expanduser()
    if not source.is_file():
        raise InputError(f"there is no such {role}", where=named)
    read_gguf_header(source)  # what is no whole GGUF file must not take a name in the folder
    target = folder / source.name
    _link(source, target)
    return _row(role, target), target


def file_name(named: str) -> str:
    """Of a path or PACKAGE:FILE."""
    return Path(named.rpartition(":")[2]).name


def _row(role: Literal["model", "adapter", "part"], path: Path, package: str | None = None) -> JudgeFile:
    size, sha256 = path.stat().st_size, file_sha256(path)
    return JudgeFile(role=role, name=path.name, bytes=size, sha256=sha256, package=package)


def _in_package(package: str, name: str, named: str) -> Path:
    try:
        spec = importlib.util.find_spec(package)
    except ValueError:  # a module that is loaded and was found in no file, such as __main__
        spec = None
    places = [Path(p) / name for p in (spec.submodule_search_locations or ())] if spec is not None else []
    found = next((p for p in places if p.is_file()), None)
    if found is None:
        raise InputError("the package is not installed, or does not carry this file", where=named)
    return found


def _link(source: Path, target: Path) -> None:
    """A second name for the file where the file system can, else a copy; whole or not at all.

    A source that is a link itself, as in a hub's cache, is followed: another name for the link would lead from the
    judge's folder to somewhere else, or to nowhere.
    """
    source = source.resolve()
    if target.exists() and not target.is_symlink() and os.path.samefile(source, target):
        return
    part = target.with_name(target.name + ".part")
    part.unlink(missing_ok=True)
    try:
        os.link(source, part)
    except OSError:
        shutil.copyfile(source, part)
    part.replace(target)
