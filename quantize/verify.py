"""Prove weights against the full ones they were made from: `python -m quantize.verify`.

On given conversations, through the instrument's own backend and engine: the same tokens for the same text, free
answers that parse to their end, distributions that are near, verdicts that do not drift, and an adapter that does
something. limits.yaml says what is asked of each figure, and why.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from aipsy_judge.atomic import check_writable, write_text
from aipsy_judge.cli.ending import told_errors
from aipsy_judge.contracts import CONTRACTS, load_contract
from aipsy_judge.errors import EXIT_GATE, EXIT_OK, InputError
from aipsy_judge.file_hash import file_sha256
from aipsy_judge.manifest import LEGAL_MASS_FLOOR, AskedAs, Verified
from aipsy_judge.rubric import DEFAULT_RUBRIC, load_rubric
from aipsy_judge.strict_json import dumps

from .asked import Task, take_units
from .closeness import Near, near
from .drift import FlagDrift, Mass, MetricDrift, flag_drifts, legal_mass, metric_drifts, worst
from .free_answers import Kind, Written, asked_for, kind_of
from .full_weights import check_full, check_two
from .limits import LIMITS, Limits, checks, load_limits
from .side import Side
from .tokens_seen import token_figures
from .watch import Settings, Tell, Watched, distance_from, watch

UNITS = 100  # where a judge answers a turn at once, as many free answers: no fewer are enough (limits.yaml)
EXAMPLES = 5  # answers that did not parse, shown in the detail


@dataclass(frozen=True, slots=True)
class Findings:
    """All that was measured. `kinds`: free answers by what became of them, of the full weights and the candidate;
    `held_back`: metrics whose value is told to nobody, so that none can drift. What was read of them is told, and
    counts: their expected values, and whether they say the same."""

    units: int
    tokens: dict[str, float]
    kinds: tuple[Counter[str], Counter[str]]
    unread: tuple[str, ...]
    near: Near
    effect: Near
    metrics: tuple[MetricDrift, ...]
    flags: tuple[FlagDrift, ...]
    mass: tuple[Mass, Mass]
    library: str
    held_back: tuple[str, ...] = ()

    @property
    def answers(self) -> int:
        return self.kinds[1].total()

    def figures(self) -> dict[str, float | None]:
        """Every figure that a limit can be set on, by name."""
        before, after = self.mass
        lost = before.mean - after.mean if before.mean is not None and after.mean is not None else None
        return {
            "units": float(self.units),
            "answers": float(self.answers),
            **self.tokens,
            "clean_parse": self._share("clean"),
            "early_end": self._share("early_end"),
            "runaway": self._share("runaway"),
            "kl_mean": self.near.mean,
            "kl_high": self.near.high,
            "top1_agreement": self.near.top1,
            "adapter_effect": self.effect.mean,
            "metric_same": worst([m.same for m in self.metrics], min),
            "value_drift": worst([m.value for m in self.metrics if m.scored and m.name not in self.held_back], max),
            "expected_drift": worst([m.expected for m in self.metrics if m.read], max),
            "expected_bias": worst([m.bias if m.bias is None else abs(m.bias) for m in self.metrics if m.read], max),
            "flag_same": worst([f.same for f in self.flags], min),
            "flags_lost": worst([f.lost for f in self.flags], max),
            "flags_lost_of_set": worst([f.lost_of_set for f in self.flags], max),
            "legal_mass_lost": lost,
            "off_contract": after.off_contract,
        }

    def _share(self, kind: str) -> float | None:
        return self.kinds[1][kind] / self.answers if self.answers else None


def compare(full: Side, candidate: Side, bare: Side | None, task: Task, settings: Settings, tell: Tell) -> Findings:
    """Measure one side after the other; only one model is in memory at a time. `bare`: the base without training."""
    whole = watch(full, task, settings, None, tell)
    other = watch(candidate, task, settings, whole, tell)
    effect = distance_from(bare, task, settings, other, tell) if bare is not None else []
    return findings(whole, other, effect, task)


def findings(whole: Watched, other: Watched, effect: Sequence[tuple[float, bool]], task: Task) -> Findings:
    """What was seen on both sides, in figures. `effect`: places of the candidate against the base without training."""
    read = [_kinds(side, task) for side in (whole, other)]
    kinds = [Counter[str](kind for _, kind in answers) for answers in read]
    return Findings(
        units=len(other.verdicts),
        tokens=token_figures(whole.seen, other.seen),
        kinds=(kinds[0], kinds[1]),
        unread=_unread(read[1]),
        near=near(other.places),
        effect=near(effect),
        metrics=tuple(metric_drifts(task.rubric, whole.verdicts, other.verdicts)),
        flags=tuple(flag_drifts(task.rubric, whole.verdicts, other.verdicts)),
        mass=(legal_mass(whole.verdicts), legal_mass(other.verdicts)),
        library=other.library,
        held_back=task.held_back,
    )


def _kinds(side: Watched, task: Task) -> list[tuple[Written, Kind]]:
    asked = asked_for(side.written, task.contract, task.rubric)
    return [(w, kind_of(w, task.contract, task.rubric)) for w in asked]


def _unread(answers: Sequence[tuple[Written, Kind]]) -> tuple[str, ...]:
    bad = (written.text for written, kind in answers if kind != "clean")
    return tuple(text[:400] for text, _ in zip(bad, range(EXAMPLES), strict=False))


def verified(
    found: Findings,
    sides: tuple[Side, Side],
    conversations: Sequence[Path],
    limits: Limits,
    task: Task,
    floor: float,
) -> Verified:
    """The record for the judge's manifest. sides: full weights and candidate; floor: of legal mass, as it asked."""
    full, candidate = sides
    results = checks(found.figures(), limits)
    return Verified(
        date=datetime.datetime.now(tz=datetime.UTC).date(),
        passed=all(c.passed for c in results),
        full=full.weighed(),
        candidate=candidate.weighed(),
        conversations={_short(path, conversations): file_sha256(path) for path in conversations},
        units=found.units,
        answers=found.answers,
        limits_sha256=limits.sha256,
        library=found.library,
        asked=_asked_as(task, floor),
        checks=results,
    )


def _asked_as(task: Task, floor: float) -> AskedAs:
    return AskedAs(
        contract=task.contract.name,
        rubric=task.rubric.hash,
        window=task.window,
        legal_mass_floor=floor,
        held_back=task.held_back,
    )


def _short(path: Path, among: Sequence[Path]) -> str:
    """The file's name where no other has it."""
    return path.name if sum(p.name == path.name for p in among) == 1 else str(path)


def report(record: Verified, found: Findings) -> dict[str, Any]:
    """Record and detail as strict JSON data."""
    detail = {**asdict(found), "kinds": [dict(k) for k in found.kinds], "figures": found.figures()}
    return {"verified": record.model_dump(mode="json"), "detail": detail}


_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_WEIGHTS = click.Path(exists=True, path_type=Path)


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--full", required=True, type=_WEIGHTS, help="The full weights (GGUF of F32, F16 or BF16; or a folder).")
@click.option("--full-adapter", type=_FILE, help="Their LoRA adapter (GGUF), if they wear one.")
@click.option("--candidate", required=True, type=_WEIGHTS, help="The weights to be proven (GGUF, or an MLX folder).")
@click.option("--candidate-adapter", type=_FILE, help="Their LoRA adapter (GGUF), if they wear one.")
@click.option("--bare", type=_WEIGHTS, help="The base without training; needed unless the candidate wears an adapter.")
@click.option("--conversations", required=True, multiple=True, type=_FILE, help="Transcripts; may be given again.")
@click.option("--rubric", default=DEFAULT_RUBRIC, show_default=True, help="The rubric that the judge was trained on.")
@click.option("--contract", type=click.Choice(CONTRACTS), default="full", show_default=True)
@click.option("--window", type=click.IntRange(1), help="Newest messages that the judge is shown (default: all).")
@click.option(
    "--units",
    type=click.IntRange(1),
    default=UNITS,
    show_default=True,
    help="Turns to look at: whole talks until they hold these.",
)
@click.option("--budget", type=click.IntRange(1), default=512, show_default=True, help="Most tokens of a free answer.")
@click.option(
    "--floor",
    type=click.FloatRange(0, 1),
    default=LEGAL_MASS_FLOOR,
    show_default=True,
    help="Of legal mass, the judge's own.",
)
@click.option("--held-back", multiple=True, metavar="METRIC", help="Unscored in the judge, by its not_validated.")
@click.option("--threads", type=click.IntRange(0), default=0, help="Threads; 0: all processors.")
@click.option("--memory-gb", type=click.FloatRange(0.1), default=4.0, show_default=True, help="GiB for the cache.")
@click.option("--limits", "limits_file", type=_FILE, default=LIMITS, help="Default: quantize/limits.yaml.")
@click.option("--out", type=click.Path(path_type=Path), help="Write record and detail here (JSON).")
def main(
    full: Path,
    full_adapter: Path | None,
    candidate: Path,
    candidate_adapter: Path | None,
    bare: Path | None,
    conversations: tuple[Path, ...],
    rubric: str,
    contract: str,
    window: int | None,
    units: int,
    budget: int,
    floor: float,
    held_back: tuple[str, ...],
    threads: int,
    memory_gb: float,
    limits_file: Path,
    out: Path | None,
) -> None:
    """Prove weights against the full ones. Exit codes: 0 passed, 1 not passed, 2 input, 3 weights."""
    with told_errors():
        if out is not None:
            check_writable(out)  # what follows takes minutes to hours
        limits = load_limits(limits_file)
        asked = load_rubric(rubric)
        if strange := sorted(set(held_back) - set(asked.metric_names)):
            raise InputError(f"the rubric {asked.name} has no metric {', '.join(strange)}", where="--held-back")
        talks = take_units(conversations, asked, units)
        task = Task(asked, load_contract(contract), talks, window, tuple(sorted(set(held_back))))
        sides = Side(full, full_adapter), Side(candidate, candidate_adapter)
        base = Side(bare) if bare is not None else Side(candidate) if candidate_adapter is not None else None
        for side in (*sides, *([base] if base is not None else [])):
            side.check()
        check_full(sides[0])
        check_two(sides[0].weighed(), sides[1].weighed(), str(candidate))
        settings = Settings(threads=threads, budget=budget, floor=floor, memory_gb=memory_gb)
        found = compare(*sides, base, task, settings, lambda line: click.echo(line, err=True))
        record = verified(found, sides, conversations, limits, task, floor)
        if out is not None:
            write_text(out, dumps(report(record, found)) + "\n")
    _say(record, sides, limits)
    raise SystemExit(EXIT_OK if record.passed else EXIT_GATE)


def _say(record: Verified, sides: tuple[Side, Side], limits: Limits) -> None:
    for check in record.checks:
        reason = limits.by_figure[check.figure].lacking if check.value is None else None
        click.echo(f"{'ok  ' if check.passed else 'FAIL'} {check.words}{f' ({reason})' if reason else ''}")
    verdict = "passed" if record.passed else "NOT passed"
    click.echo(f"{sides[1].words} against {sides[0].words}: {verdict} ({record.units} units, {record.answers} answers)")


if __name__ == "__main__":
    main()
