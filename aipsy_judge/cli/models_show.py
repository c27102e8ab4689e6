"""`models show`: what is known of one judge."""

from __future__ import annotations

from collections.abc import Iterator

import click

from ..errors import InputError
from ..hub.room import words
from ..known_judges import KnownJudge
from ..manifest import Manifest
from ..named_files import NamedWeights
from ..named_weights import name_weights
from ..report.visible import visible

CARD_BYTES = 2**20


def show_weights(name: str) -> None:
    """Print it. The card is foreign text: shown, but nothing in it steers the terminal."""
    named = name_weights(name)
    for line in _lines(named):
        click.echo(visible(line))
    if named.card is not None and (named.known is not None or named.manifest is not None):
        with named.card.open("rb") as file:
            text = file.read(CARD_BYTES).decode("utf-8", "replace")
        click.echo(visible(f"\n{text.strip()}"))


def _lines(named: NamedWeights) -> Iterator[str]:
    yield named.name
    if named.manifest is not None:
        yield from _of_manifest(named.manifest)
    elif named.known is not None:
        yield f"  {named.known.about}"
    yield from (f"  {line}" for line in named.server)
    for file in named.files:
        size = f"{words(file.path.stat().st_size)}, " if file.path is not None else ""
        place = f"at {file.path}" if file.path is not None else "not on this machine"
        sha = f", sha256 {file.sha256}" if file.sha256 is not None else ""
        yield f"  {file.role}: {file.name.rsplit('/', 1)[-1]}, {size}{place}{sha}"
    if named.known is not None:
        yield from _of_known(named.known, installed=any(f.path is not None for f in named.files))
    if named.kind == "file":
        yield from _of_file(named)


def _of_manifest(manifest: Manifest) -> Iterator[str]:
    yield f"  {manifest.about}"
    yield f"  {'blessed' if manifest.blessed else 'NOT blessed: score refuses it without --unblessed'}"
    yield f"  contract {manifest.contract}, rubric {manifest.rubric.name}, licence {manifest.licence}"
    yield f"  base {manifest.base.name}, {manifest.quantisation}, context {manifest.context_tokens} tokens"
    yield from (f"  {remark}" for remark in manifest.remarks)


def _of_known(judge: KnownJudge, *, installed: bool) -> Iterator[str]:
    if not installed:
        yield f"  to get it: {judge.how_to_get}"
    yield f"  contract {judge.contract}, context {judge.context_tokens} tokens, licence {judge.licence}"
    yield f"  published file {judge.file.name}, {words(judge.file.bytes)}, sha256 {judge.file.sha256}"
    yield f"  needs {judge.needs.resident:g} GiB of memory while it judges"
    yield from (f"  published: {figure}" for figure in judge.figures)
    yield f"  source: {judge.source}"


def _of_file(named: NamedWeights) -> Iterator[str]:
    from ..gguf_header import read_gguf_header

    path = named.files[0].path
    if path is None:
        raise InputError("no file to show", where=named.name)
    header = read_gguf_header(path)
    rows = ("general.name", "general.architecture", "general.license", "general.type")
    yield from (f"  {key}: {header.metadata[key]}" for key in rows if key in header.metadata)
    yield f"  {len(header.tensors)} tensors, vocabulary of {header.lengths.get('tokenizer.ggml.tokens', 0)}"
    yield "  nothing is published of this file: what it says as a judge is not checked"
