"""`models verify`: the findings, one a line."""

from __future__ import annotations

import click

from ..errors import EXIT_JUDGE, EXIT_OK
from ..named_weights import name_weights
from ..report.visible import visible
from ..weights_check import Finding, verify_weights
from .byte_progress import byte_progress
from .json_output import check_json_target, write_json

_WORDS = {True: "ok", False: "WRONG", None: "not known"}


def verify_named(name: str, *, load: bool, json_file: str | None) -> int:
    """EXIT_OK where everything could be looked at and is right; else EXIT_JUDGE."""
    check_json_target(json_file)
    named = name_weights(name)
    findings: list[Finding] = []

    def add(finding: Finding) -> None:
        findings.append(finding)
        click.echo(visible(f"{_WORDS[finding.ok]}: {finding.what}: {finding.detail}"), err=json_file == "-")

    with byte_progress() as tell:
        for finding in verify_weights(named, tell):
            add(finding)
    if load and all(f.ok is True for f in findings):
        from ..backends.trial import try_files

        paths = {f.role: f.path for f in named.files if f.path is not None}
        fault = try_files(paths["model"], paths.get("adapter"))
        add(Finding("trial", fault is None, fault or "loaded, and a few tokens evaluated, in a process of its own"))
    fine = all(f.ok is True for f in findings)
    click.echo(visible(f"{named.name}: {'verified' if fine else 'NOT verified'}"), err=json_file == "-")
    rows = [{"what": f.what, "ok": f.ok, "detail": f.detail} for f in findings]
    write_json(json_file, {"name": named.name, "verified": fine, "findings": rows})
    return EXIT_OK if fine else EXIT_JUDGE
