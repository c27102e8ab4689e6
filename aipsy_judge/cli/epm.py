"""`aipsy-judge epm`: a dialogue's trajectory, many runs compared, paired perturbations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import EXIT_NOTHING_SCORED

if TYPE_CHECKING:
    from rich.console import Console

    from ..epm.parameters import Parameters
    from ..epm.sheets import Sheet


class DialogueByDefault(click.Group):
    """`epm FILE` means `epm dialogue FILE`. A file that is called like a command is written ./compare."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["dialogue", *args]
        return super().parse_args(ctx, args)


@click.group(cls=DialogueByDefault, name="epm")
def command() -> None:
    """Score a dialogue's trajectory as EMPA does (EPM, EPM-Q).

    `aipsy-judge epm FILE` is short for `aipsy-judge epm dialogue FILE`.
    """


def _model_options(function: Any) -> Any:
    """Options that say which numbers are meant; the same for every command."""
    options = [
        click.option(
            "--profile",
            default="empa-2026-02",
            show_default=True,
            help="Formulas: empa-2026-02 (as the released runs were made) or paper-v1 (as first written).",
        ),
        click.option(
            "--tau-align", type=float, help="paper-v1: least mean cosine, -1..1. Never published: yours to choose."
        ),
        click.option(
            "--tolerance", type=float, help="Reach of the target, in shares of |P_0|; default: the profile's."
        ),
        click.option(
            "--pack", "pack_name", default="empa", show_default=True, help="Axes and scores: a name or a YAML file."
        ),
        click.option(
            "--strict/--no-strict",
            default=True,
            show_default=True,
            help="An unreadable level makes its dialogue unscored; --no-strict fills in 0 (start: 1), counted.",
        ),
    ]
    for option in reversed(options):
        function = option(function)
    return function


@command.command("compare")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the models' figures here.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for report.html and comparison.json.")
@click.option("--resamples", type=click.IntRange(100, 1_000_000), default=10_000, show_default=True)
@click.option("--seed", type=int, default=20260228, show_default=True, help="Of the bootstrap.")
@_model_options
def compare_command(
    runs: tuple[Path, ...],
    json_path: Path | None,
    out: Path | None,
    resamples: int,
    seed: int,
    profile: str,
    tau_align: float | None,
    tolerance: float | None,
    pack_name: str,
    strict: bool,
) -> None:
    """Compare many runs: RUNS are JSON lines (plain or .gz) or files of forms, with model, case, iedr and levels."""
    from ..atomic import check_writable, write_text
    from ..epm.as_json import comparison_to_dict, details_to_dict
    from ..epm.cases import evaluate_cases
    from ..epm.compare import compare
    from ..epm.forms import read_forms
    from ..epm.pack import load_pack
    from ..epm.remarks import remarks
    from ..epm.sheets import breakdown_sheets, ends_sheet, index_sheet, leaderboard
    from ..strict_json import dumps

    if json_path is not None:
        check_writable(json_path)
    _make_folder(out)
    parameters, pack = _parameters(profile, tau_align, tolerance), load_pack(pack_name)
    forms = [f for path in runs for f in read_forms(path, pack.space)]
    comparison = compare(evaluate_cases(forms, pack.space, parameters, strict=strict), resamples=resamples, seed=seed)
    console = _console()
    _show(console, leaderboard(comparison), index_sheet(comparison), ends_sheet(comparison))
    _show(console, *breakdown_sheets(comparison, pack.space))
    _show_notes(console, remarks(comparison.cases, parameters))
    if out is not None:
        from ..epm.report import comparison_report

        write_text(out / "report.html", comparison_report(comparison, pack, parameters))
        write_text(out / "comparison.json", dumps(details_to_dict(comparison, pack, parameters), indent=1) + "\n")
    if json_path is not None:
        write_text(json_path, dumps(comparison_to_dict(comparison, pack, parameters), indent=2) + "\n")
    if not any(m.cases for m in comparison.models):
        raise SystemExit(EXIT_NOTHING_SCORED)


@command.command("perturb")
@click.argument("pairs", type=click.Path(path_type=Path))
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the statistics here.")
@click.option("--resamples", type=click.IntRange(100, 1_000_000), default=10_000, show_default=True)
@click.option("--seed", type=int, default=20260228, show_default=True, help="Of the bootstrap.")
@click.option("--pack", "pack_name", default="empa", show_default=True, help="Axes and scores: a name or a YAML file.")
def perturb_command(pairs: Path, json_path: Path | None, resamples: int, seed: int, pack_name: str) -> None:
    """Statistics of paired turns: JSON lines with case, original and perturbed, each with iedr or P_0 and levels.

    Differences are perturbed minus original; both tests are one-sided, for a decrease, and leave ties out.
    """
    from dataclasses import asdict

    from ..atomic import check_writable, write_text
    from ..epm.pack import load_pack
    from ..epm.pairs import pair_metrics, read_pairs
    from ..epm.perturbation import paired_statistics
    from ..epm.sheets import differences_sheet
    from ..strict_json import dumps

    if json_path is not None:
        check_writable(json_path)
    space = load_pack(pack_name).space
    original, perturbed, cases, unread = pair_metrics(read_pairs(pairs, space), space)
    found = paired_statistics(original, perturbed, cases, resamples=resamples, seed=seed)
    console = _console()
    _show(
        console,
        differences_sheet("Over pairs (interval: bootstrap over pairs)", found, "pairs"),
        differences_sheet("Over the means of cases (interval: bootstrap over cases)", found, "cases"),
    )
    left_out = max(s.undefined for s in found)
    _show_notes(
        console,
        [f"{unread} pairs left out for levels that could not be read, {left_out} for having no deficit at the start."]
        if unread or left_out
        else [],
    )
    if json_path is not None:
        data = {
            "statistics": {s.metric: asdict(s) for s in found},
            "unread": unread,
            "bootstrap": {"resamples": resamples, "seed": seed, "level": 0.95},
        }
        write_text(json_path, dumps(data, indent=2) + "\n")


def _parameters(name: str, tau_align: float | None, tolerance: float | None) -> Parameters:
    from dataclasses import replace

    from ..epm.parameters import profile
    from ..errors import InputError

    parameters = profile(name, tau_align=tau_align)
    if tolerance is None:
        return parameters
    if not 0 <= tolerance < 1:
        raise InputError(f"tolerance {tolerance} is no share of |P_0|", hint="Give a value in 0..1, e.g. 0.05.")
    return replace(parameters, tolerance=tolerance)


def _show(console: Console, *sheets: Sheet) -> None:
    from rich.text import Text

    from ..epm.sheets import as_table

    for sheet in sheets:
        # A title of its own is not folded to the width of a narrow table.
        console.print(Text(sheet.title, style="bold"), soft_wrap=True)
        console.print(as_table(sheet))


def _show_notes(console: Console, notes: list[str]) -> None:
    from rich.text import Text

    for note in notes:
        console.print(Text(note), style="dim")


def _make_folder(out: Path | None) -> None:
    """Made before the work, so that a typing error is not found after it."""
    from ..errors import InputError

    if out is None:
        return
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot be made a folder: {error.strerror or error}", where=str(out)) from error


def _console() -> Console:
    import sys

    from rich.console import Console

    # A pipe has no width of its own; 80 columns would fold the tables.
    return Console(width=None if sys.stdout.isatty() else 140)
