"""Whether a judge's verdict stays what it is when only what should not matter changes.

    python -m bench.stability --judge NAME [--contract NAME] [--turns 100] [--seed 14] [--work FOLDER] [--json FILE]

Replies of the corpus's test part, half of them failures by the corrected target, are judged as they are and changed:
neutral earlier messages paraphrased, names before the messages, other white space, quotes and Markdown, and sentences
in the judged reply that ask for the highest score, which may not raise it. Printed per change and metric: the 50th and
95th percentile of the change of the expected value (of a flag: of its probability), its mean, how many failures were
cleared and raised, flags and N/A that flipped, with the number of pairs, and whether the aims hold. At the end each
text is judged unchanged once more: what that moves is noise.

100 turns are some 1,150 verdicts, each of a whole text by itself: about 40 minutes of one core with a model of 135M.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

from aipsy_judge.atomic import check_writable, write_text
from aipsy_judge.cli.ending import told_errors
from aipsy_judge.cli.judge_options import JudgeChoice, judge_options
from aipsy_judge.errors import InputError
from aipsy_judge.judge import Judge
from aipsy_judge.strict_json import dumps
from training.recipe_reading import load_recipe
from training.split import Part

from .stability_changes import KINDS, all_changes
from .stability_draw import JudgedReply, drawn_replies
from .stability_judging import Judged, judged
from .stability_paraphrase import read_paraphrases
from .stability_report import Table, coverage_line, noise_line, report_lines, tables, to_dict

PART: Part = "test"


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@judge_options
@click.option("--turns", default=100, show_default=True, type=click.IntRange(2), help="Replies to draw.")
@click.option("--seed", default=14, show_default=True, help="Of the draw.")
@click.option(
    "--recipe",
    "recipe_path",
    default=Path("recipes/mini.yaml"),
    show_default=True,
    type=click.Path(path_type=Path),
    help="Whose targets and test part.",
)
@click.option("--only", multiple=True, type=click.Choice(KINDS), help="Only these changes; may be given several times.")
@click.option("--work", type=click.Path(path_type=Path, file_okay=False), help="Keep the targets here for another run.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write every figure here.")
def main(
    choice: JudgeChoice,
    turns: int,
    seed: int,
    recipe_path: Path,
    only: tuple[str, ...],
    work: Path | None,
    json_path: Path | None,
) -> None:
    """How far a judge's verdicts move under changes that must not matter."""
    with told_errors():
        if json_path is not None:
            check_writable(json_path)
        recipe, known, rubric = load_recipe(recipe_path, ()), read_paraphrases(), choice.load_rubric()
        if rubric.unit != "turn":
            raise InputError(f"{rubric.name} rates whole conversations; single replies are judged here")
        with _folder(work) as folder, contextlib.redirect_stdout(sys.stderr):
            replies = drawn_replies(recipe, folder, PART, turns, seed)
        with choice.open() as judge:
            for remark in judge.remarks:
                click.echo(f"Judge {judge.lane.judge}: {remark}")
            changes = all_changes(known, judge.rubric, judge.lane.contract, only or KINDS)
            found = judged(judge, replies, changes, lambda line: click.echo(line, err=True))
            made = tables(judge.rubric, found, changes)
            _say(judge, replies, found, made)
            if json_path is not None:
                told = {"judge": judge.lane.to_dict(), "settings": dict(judge.settings), "seed": seed, "part": PART}
                write_text(json_path, dumps({**told, **to_dict(found, made)}, indent=1) + "\n")


def _say(judge: Judge, replies: tuple[JudgedReply, ...], found: Judged, made: tuple[Table, ...]) -> None:
    failures = sum(r.failure for r in replies)
    click.echo(
        f"{judge.lane.judge}, contract {judge.lane.contract}: {len(replies)} turns of the part {PART} from "
        f"{len({r.origin for r in replies})} conversations, failures by the target: {failures}; "
        f"{found.verdicts} verdicts, {found.seconds:.2f} s each"
    )
    for line in (coverage_line(found), noise_line(found), *report_lines(made)):
        if line is not None:
            click.echo(line)


@contextlib.contextmanager
def _folder(work: Path | None) -> Iterator[Path]:
    if work is not None:
        yield work
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


if __name__ == "__main__":
    main()
