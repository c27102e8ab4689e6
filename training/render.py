"""Stage rows: every item of the train and validation parts as the tokens that the judge will be asked with.

    python -m training.render RECIPE

targets, sample, conversations, tokenizer of the base -> rows/train.jsonl, validation.jsonl, summary.json
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from aipsy_judge.asked_prompt import Prompts, asked_prompts
from aipsy_judge.atomic import write_text
from aipsy_judge.contract import Contract
from aipsy_judge.contracts import load_contract
from aipsy_judge.conversation import Conversation
from aipsy_judge.errors import InputError
from aipsy_judge.rubric import Rubric, load_rubric
from aipsy_judge.strict_json import dumps
from aipsy_judge.subjects import subjects

from .augment import augmented, steered
from .data_files import conversation_paths, conversations
from .hf_tokens import HFTokens, base_tokens, tokenizer_files
from .preflight import lines, preflight
from .program import recipe_program
from .recipe import Recipe
from .render_answer import Pen, make_pen, render_row
from .rows import PARTS, STAGE, Row, read_rows, write_rows
from .sample import NAME as SAMPLE
from .sample import make_sample
from .sample_rows import FILE as SAMPLE_FILE
from .sample_rows import read_sample_rows
from .stage import Made, Stage, finished, make
from .target_rows import FILE as TARGETS_FILE
from .target_rows import TargetRow, read_target_rows
from .targets import NAME as TARGETS

NAME, VERSION = STAGE, 3
SUMMARY = "summary.json"


def make_rows(recipe: Recipe, out: Path) -> Made:
    """Reuse or make the stage, and before it the targets and the sample; says on stdout what it did."""
    sample = make_sample(recipe, out).folder / SAMPLE_FILE
    targets = finished(out, TARGETS) / TARGETS_FILE
    return make(out, _stage(recipe, targets, sample), lambda part: _work(recipe, targets, sample, part), say=click.echo)


def _stage(recipe: Recipe, targets: Path, sample: Path) -> Stage:
    settings: dict[str, Any] = recipe.part("contract", "render")
    if recipe.render.augment:  # no other draw is made here
        settings["seed"] = recipe.seed
    settings |= {"rubric": load_rubric(recipe.rubric).hash, "targets.spread": recipe.targets.spread}
    texts = {p.as_posix(): p for p in conversation_paths(recipe)}
    return Stage(NAME, VERSION, settings, {TARGETS: targets, SAMPLE: sample, **tokenizer_files(recipe.base), **texts})


@dataclass(slots=True)
class _Count:
    """Of one part. dropped: items by reason."""

    rows: int = 0
    rationales: int = 0
    dropped: Counter[str] = field(default_factory=Counter)


def _work(recipe: Recipe, targets: Path, sample: Path, part: Path) -> None:
    tokens = base_tokens(recipe.base)
    rubric, contract, texts = load_rubric(recipe.rubric), load_contract(recipe.contract), conversations(recipe)
    pen = pen_of(recipe, tokens, rubric, contract)
    shown = {row.item_id: row for row in read_sample_rows(sample)}
    items = [item for item in read_target_rows(targets) if item.item_id in shown]
    summary: dict[str, Any] = {}
    for name in PARTS:
        count = _Count()
        chosen = ((i, shown[i.item_id].repeats) for i in items if shown[i.item_id].part == name)
        dress = _dress(recipe, rubric, name)
        rows = _rows(recipe, tokens, contract, pen, texts, dress, chosen, count)
        write_rows(part / f"{name}.jsonl", rows)
        summary[name] = {"rows": count.rows, "rationales": count.rationales, "dropped": dict(count.dropped)}
        click.echo(f"  {name}: {_told(count)}")
        if count.rows or name == PARTS[0]:
            found = preflight(read_rows(part / f"{name}.jsonl"), tokens, name)
            summary[name]["preflight"] = found.to_dict()
            for line in lines(found):
                click.echo(f"  {line}")
    write_text(part / SUMMARY, dumps(summary, indent=1) + "\n")


def pen_of(recipe: Recipe, tokens: HFTokens, rubric: Rubric, contract: Contract) -> Pen:
    """What the recipe's answers are written with."""
    return make_pen(
        tokens,
        rubric,
        contract,
        spread=recipe.targets.spread,
        hard=recipe.render.labels == "hard",
        weight=recipe.render.skeleton_weight,
        rationales=recipe.render.rationale == "agreeing",
    )


def _rows(
    recipe: Recipe,
    tokens: HFTokens,
    contract: Contract,
    pen: Pen,
    texts: Mapping[str, Conversation],
    dress: Callable[[Conversation, TargetRow], Conversation],
    items: Iterator[tuple[TargetRow, int]],
    count: _Count,
) -> Iterator[Row]:
    """The rows of a part. What cannot be a row is left out whole and counted; nothing is ever cut."""
    for item, repeats in items:
        text = texts[item.conversation]
        prompts = prompts_of(tokens, contract, pen.rubric, dress(text, item), item, recipe.render.window)
        if prompts is None:
            count.dropped["the assistant says nothing there"] += 1
            continue
        row, wordy = render_row(pen, prompts, item, repeats)
        if not any(t.slot for t in row.targets):
            count.dropped["nothing is known of it"] += 1
        elif len(row.tokens) > recipe.render.max_tokens:
            count.dropped[f"longer than {recipe.render.max_tokens} tokens"] += 1
        else:
            count.rows += 1
            count.rationales += wordy
            yield row


def _dress(recipe: Recipe, rubric: Rubric, part: str) -> Callable[[Conversation, TargetRow], Conversation]:
    """How an item's conversation is shown: the train part as `render.augment` says, all else as it is."""
    share, seed = recipe.render.augment, recipe.seed

    def dressed(text: Conversation, item: TargetRow) -> Conversation:
        if part != "train" or not share:
            return text
        changed = augmented(text, str(text.metadata.get("origin", text.id)), share, seed)
        upto = next((s.upto for s in subjects(text, rubric) if s.turn == item.turn and not s.empty), None)
        return changed if upto is None else steered(changed, upto, item.item_id, share, seed)

    return dressed


def prompts_of(
    tokens: HFTokens, contract: Contract, rubric: Rubric, text: Conversation, item: TargetRow, window: int | None
) -> Prompts | None:
    """Token ids up to where the judge begins each answer; None where the assistant said nothing there."""
    subject = next((s for s in subjects(text, rubric) if s.turn == item.turn), None)
    if subject is None:
        raise InputError(f"the conversation has no turn {item.turn}", where=item.item_id)
    if subject.empty:
        return None
    return asked_prompts(tokens, contract, rubric, text, subject.upto, window)


def _told(count: _Count) -> str:
    dropped = ", ".join(f"{n} dropped ({why})" for why, n in count.dropped.items()) or "none dropped"
    return f"{count.rows} rows, {count.rationales} with a rationale, {dropped}"


@recipe_program
def main(recipe: Recipe, out: Path) -> None:
    """Render the train and validation items of RECIPE as rows of tokens, and say what they train."""
    make_rows(recipe, out)


if __name__ == "__main__":
    main()
