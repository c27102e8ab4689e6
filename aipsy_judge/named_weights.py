"""What `models show` and `models verify` are asked about: a judge by name, by its folder or a file of it, other
folders and GGUF files, an Ollama tag.

Nothing is loaded here and nothing hashed; only an Ollama tag is asked about, at its own server.
"""

from __future__ import annotations

from pathlib import Path

from .errors import InputError
from .judge_folder import file_of, judge_folder
from .known_judges import KnownJudge, installed_at, known_judges
from .manifest import MANIFEST, read_manifest
from .model_folder import is_model_folder, model_files
from .named_files import NamedFile, NamedWeights
from .tensor_folder import CONFIG


def name_weights(name: str) -> NamedWeights:
    """What `name` means. Raises InputError where it means nothing here; ManifestError; BackendError of a server."""
    if name.split(":", 1)[0].lower() == "ollama":
        from .ollama_tag import of_tag  # the wire is wanted for a tag alone

        return of_tag(name)
    folder = judge_folder(name)
    if folder is not None:
        return _of_folder(folder)
    for judge in known_judges():
        if judge.name == name:
            return _of_known(judge)
    path = Path(name).expanduser()
    if path.is_dir():
        return _of_bare_folder(path)
    if path.is_file():
        return of_file(path)
    raise InputError(
        f"no judge, folder or file is called {name!r}",
        hint="`aipsy-judge models list` shows the judges; a folder, a GGUF file or ollama:TAG can be named too.",
    )


def of_file(path: Path, name: str | None = None) -> NamedWeights:
    """A bare GGUF file, of which nothing is known but itself."""
    return NamedWeights(name or path.stem, "file", (NamedFile("model", path.name, path),), folder=path.parent)


def _of_folder(folder: Path) -> NamedWeights:
    manifest = read_manifest(folder)
    files = tuple(NamedFile(f.role, f.name, file_of(folder, f), f.sha256, f.bytes) for f in manifest.files)
    known = next((j for j in known_judges() if j.name == manifest.name), None)
    return NamedWeights(manifest.name, "folder", files, manifest.contract, known, manifest, folder)


def _of_known(judge: KnownJudge) -> NamedWeights:
    path = installed_at(judge)
    # the size in published.yaml may be rounded: the sha256 says it all
    file = NamedFile("model", judge.file.name, path, judge.file.sha256)
    # of a shared folder (a package, the cache) what else lies there is not the judge's
    own = path.parent if path is not None and path.parent.name == judge.name else None
    return NamedWeights(judge.name, "known", (file,), judge.contract, judge, None, own)


def _of_bare_folder(folder: Path) -> NamedWeights:
    if is_model_folder(folder):
        rows = [("model" if p.name == CONFIG else "part", p) for p in model_files(folder)]
        files = tuple(NamedFile(role, p.name, p) for role, p in rows)  # type: ignore[arg-type]
        return NamedWeights(folder.resolve().name, "folder", files, folder=folder)
    found = sorted(folder.glob("*.gguf"))
    if len(found) == 1:
        return of_file(found[0], folder.resolve().name)
    if not found:
        raise InputError(f"neither a {MANIFEST} nor a GGUF file nor a {CONFIG} is in this folder", where=str(folder))
    raise InputError(
        f"{len(found)} GGUF files and no {MANIFEST} that says which is the judge",
        where=str(folder),
        hint="Name the file itself.",
    )
