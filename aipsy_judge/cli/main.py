"""The group of verbs. `--help` imports none of them, so that it starts at once."""

from __future__ import annotations

import importlib

import click

from ..errors import EXIT_INTERRUPTED
from .ending import told_errors

# verb: (module, one line of help). The line stands here so that --help needs no import.
VERBS: dict[str, tuple[str, str]] = {
    "score": ("score", "Judge every assistant turn of conversations, on this machine."),
    "serve": ("serve", "Serve a judge to clients of Ollama, OpenAI and aipsy-bench."),
    "rubric": ("rubric", "Show or check a rubric."),
    "report": ("report", "Write the report, JUnit XML or the gate's result of a stored run."),
    "compare": ("compare", "Compare two runs, paired by item."),
    "repeat": ("repeat", "Judge the same input several times: how repeatable is the judge?"),
    "rescore": ("rescore", "Read stored raw replies again, without a model."),
    "doctor": ("doctor", "What this machine can judge with; prove a judge on it."),
    "models": ("models", "The known judges: list, fetch, show, check or remove their files."),
    "epm": ("epm", "Score a dialogue's trajectory as EMPA does (EPM, EPM-Q)."),
    "panel": ("panel", "Run several judges over the same items."),
    "anchors": ("anchors", "Draw items for an expert, make the blind sheet, import the ratings."),
    "agree": ("agree", "Agreement statistics between raters."),
    "map": ("map", "The competence map of judges against an expert."),
    "correct": ("correct", "Fit a correction per metric, or apply one."),
}


class LazyGroup(click.Group):
    """Imports `cli.<module>` when the verb is used; its command is the module's `command`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        module = importlib.import_module(f"aipsy_judge.cli.{VERBS[cmd_name][0]}")
        command = module.command
        assert isinstance(command, click.Command)
        return command

    def invoke(self, ctx: click.Context) -> object:
        """Control-C ends any verb as a shell expects it: exit code 130 and no traceback."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("\ninterrupted", err=True)
            raise SystemExit(EXIT_INTERRUPTED) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(verb, line) for verb, (_, line) in VERBS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="aipsy-judge")
def cli() -> None:
    """Score conversations for psychological safety with a judge on your own machine.

    Scores are directional and for human review; they certify nothing. No text leaves this machine unless you name
    a remote judge.
    """


def main() -> None:
    """Entry point: errors of this package go to stderr without a traceback, with their documented exit code."""
    with told_errors():
        cli(prog_name="aipsy-judge")
