"""`aipsy-judge epm`: a dialogue's trajectory, many runs compared, paired perturbations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from ..epm.parameters import Parameters

Command = TypeVar("Command", bound=Callable[..., Any])

_FILE = click.Path(path_type=Path)


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


def _number_options(function: Command) -> Command:
    """Options that say which numbers are meant; the same for every command that evaluates."""
    options = (
        click.option(
            "--profile",
            default="empa-2026-02",
            show_default=True,
            help="Formulas: empa-2026-02 (as the released runs were made) or paper-v1 (as first written).",
        ),
        click.option("--tau-align", type=float, help="For paper-v1: least mean cosine, -1..1; never published."),
        click.option(
            "--tolerance", type=float, help="Reach of the target in shares of |P_0| (default: the profile's)."
        ),
        click.option(
            "--pack", "pack_name", default="empa", show_default=True, help="Axes and scores: name or YAML file."
        ),
        click.option(
            "--strict/--no-strict",
            default=True,
            show_default=True,
            help="An unreadable level makes its dialogue unscored; --no-strict fills in 0 (start: 1), counted.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def _bootstrap_options(function: Command) -> Command:
    resamples = click.option("--resamples", type=click.IntRange(100, 1_000_000), default=10_000, show_default=True)
    seed = click.option("--seed", type=int, default=20260228, show_default=True, help="Of the bootstrap.")
    return resamples(seed(function))


@command.command("dialogue")
@click.argument("dialogue", metavar="FILE")
@click.option("--persona", type=_FILE, metavar="CARD", help="Card of the person; a judge fills the forms from it.")
@click.option("--levels", type=_FILE, metavar="FORMS", help="Forms that are filled already; no judge is needed.")
@click.option(
    "--out", type=_FILE, metavar="DIR", help="Folder for report.html, result.json and, if judged, forms.json."
)
@click.option("--json", "json_path", type=_FILE, metavar="FILE", help="Write the result here.")
@click.option("--id", "conversation_id", help="Which conversation, if the file holds several.")
@click.option("--model", help="What to call the model that was talked to.")
@click.option("--every", type=click.IntRange(1), default=1, show_default=True, help="Judge every K turns.")
@click.option("--judge", help="A known judge, a GGUF file, openai:MODEL@URL or ollama:MODEL@URL.")
@click.option("--adapter", metavar="GGUF", help="A LoRA adapter beside the judge's weights.")
@click.option("--threads", type=click.IntRange(0), default=0, help="Threads of a local judge; 0: all processors.")
@click.option("--memory-gb", type=click.FloatRange(0.1), default=4.0, show_default=True, help="For its cache.")
@click.option("--timeout", type=click.FloatRange(1), metavar="SECONDS", help="For one answer of a server.")
@_number_options
def dialogue_command(
    dialogue: str,
    persona: Path | None,
    levels: Path | None,
    out: Path | None,
    json_path: Path | None,
    conversation_id: str | None,
    model: str | None,
    every: int,
    judge: str | None,
    adapter: str | None,
    threads: int,
    memory_gb: float,
    timeout: float | None,
    profile: str,
    tau_align: float | None,
    tolerance: float | None,
    pack_name: str,
    strict: bool,
) -> None:
    """Evaluate one dialogue: table, and with --out pictures.

    FORMS is JSON: {"iedr": {"C.1": 2, ...}, "levels": [[C.prog, C.neg, A.prog, A.neg, P.prog, P.neg], ...]}, a row a
    rating; null is a level that could not be read.
    """
    from ..epm.pack import load_pack
    from ..judge import JudgeOptions
    from .epm_dialogue import Source, evaluate_dialogue

    options = JudgeOptions(threads=threads, memory_gb=memory_gb, timeout_seconds=timeout)
    source = Source(dialogue, persona, levels, conversation_id, model, every, judge, adapter, options)
    parameters = _parameters(profile, tau_align, tolerance)
    pack = load_pack(pack_name)
    raise SystemExit(evaluate_dialogue(source, pack, parameters, strict=strict, out=out, json_path=json_path))


@command.command("compare")
@click.argument("runs", nargs=-1, required=True, type=_FILE)
@click.option("--json", "json_path", type=_FILE, metavar="FILE", help="Write the models' figures here.")
@click.option("--out", type=_FILE, metavar="DIR", help="Folder for report.html and comparison.json.")
@_bootstrap_options
@_number_options
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
    from ..epm.forms_file import read_forms
    from ..epm.pack import load_pack
    from ..epm.remarks import remarks
    from ..epm.report import comparison_report
    from ..epm.sheets import breakdown_sheets, ends_sheet, index_sheet, leaderboard
    from ..errors import EXIT_NOTHING_SCORED
    from ..strict_json import dumps
    from .epm_console import console, make_folder, show, show_notes

    if json_path is not None:
        check_writable(json_path)
    make_folder(out)
    parameters, pack = _parameters(profile, tau_align, tolerance), load_pack(pack_name)
    forms = [f for path in runs for f in read_forms(path, pack.space)]
    comparison = compare(evaluate_cases(forms, pack.space, parameters, strict=strict), resamples=resamples, seed=seed)
    screen = console()
    show(screen, leaderboard(comparison), index_sheet(comparison), ends_sheet(comparison))
    show(screen, *breakdown_sheets(comparison, pack.space))
    show_notes(screen, remarks(comparison.cases, parameters))
    if json_path is not None:
        write_text(json_path, dumps(comparison_to_dict(comparison, pack, parameters), indent=2) + "\n")
    if out is not None:
        write_text(out / "report.html", comparison_report(comparison, pack, parameters))
        write_text(out / "comparison.json", dumps(details_to_dict(comparison, pack, parameters), indent=1) + "\n")
    if not any(m.cases for m in comparison.models):
        raise SystemExit(EXIT_NOTHING_SCORED)


@command.command("perturb")
@click.argument("pairs", type=_FILE)
@click.option("--json", "json_path", type=_FILE, metavar="FILE", help="Write the statistics here.")
@click.option("--pack", "pack_name", default="empa", show_default=True, help="Axes and scores: name or YAML file.")
@_bootstrap_options
def perturb_command(pairs: Path, json_path: Path | None, pack_name: str, resamples: int, seed: int) -> None:
    """Statistics of paired turns: JSON lines with case, original and perturbed, each with iedr or P_0 and levels.

    Differences are perturbed minus original; both tests are one-sided, for a decrease, and leave ties out.
    """
    from dataclasses import asdict

    from ..atomic import check_writable, write_text
    from ..epm.pack import load_pack
    from ..epm.pairs import pair_metrics, read_pairs
    from ..epm.perturbation import paired_statistics
    from ..epm.sheets import differences_sheet
    from ..report.wording import plural
    from ..strict_json import dumps
    from .epm_console import console, show, show_notes

    if json_path is not None:
        check_writable(json_path)
    space = load_pack(pack_name).space
    original, perturbed, cases, unread = pair_metrics(read_pairs(pairs, space), space)
    found = paired_statistics(original, perturbed, cases, resamples=resamples, seed=seed)
    screen = console()
    show(
        screen,
        differences_sheet("Over pairs (interval: bootstrap over pairs)", found, "pairs"),
        differences_sheet("Over the means of cases (interval: bootstrap over cases)", found, "cases"),
    )
    left_out = max(s.undefined for s in found)
    if unread or left_out:
        show_notes(
            screen,
            [f"Left out: {plural(unread, 'pair')} with unreadable levels, {left_out} without a deficit at the start."],
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
