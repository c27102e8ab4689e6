"""`models list`: the published judges and whatever else here has a manifest."""

from __future__ import annotations

import click

from ..errors import AipsyJudgeError
from ..hub.room import words
from ..judge_folder import found_judges
from ..known_judges import installed_at, known_judges
from ..manifest import read_manifest
from ..report.visible import visible
from .json_output import check_json_target, write_json


def list_judges(json_file: str | None) -> None:
    """Say one line a judge; with `json_file`, the same as data."""
    check_json_target(json_file)

    def say(text: str) -> None:
        click.echo(visible(text), err=json_file == "-")

    rows = [(j, installed_at(j)) for j in known_judges()]
    for judge, path in rows:
        trained = "trained as a judge" if judge.trained else "not trained as a judge"
        state = "installed" if path is not None else "not installed"
        size = words(judge.file.bytes)
        say(f"{judge.name}: {state}, {size}, {trained}, contract {judge.contract}, {judge.licence}")
        if path is None:
            source = f"   (of {judge.hub.repository} on the model hub)" if judge.hub is not None else ""
            say(f"  to get it: {judge.how_to_get}{source}")
    others = []
    for folder in found_judges():
        try:
            manifest = read_manifest(folder)
        except AipsyJudgeError as error:
            say(f"{folder.name}: not usable: {error}")
            continue
        if manifest.name in {j.name for j, _ in rows}:
            continue
        blessed = "" if manifest.blessed else ", NOT BLESSED"
        say(f"{manifest.name}: in {folder}, contract {manifest.contract}, {manifest.licence}{blessed}")
        others.append({"name": manifest.name, "folder": str(folder), "blessed": manifest.blessed})
    data = [{**j.model_dump(mode="json"), "installed_at": str(p) if p is not None else None} for j, p in rows]
    write_json(json_file, {"judges": data, "folders": others})
