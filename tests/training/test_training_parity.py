"""What is rendered is, by token ids, what the engine sends; and a judge that learnt it is read as the targets say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from drawn_targets import drawn_target
from fitted_model import FittedModel
from hypothesis import given, settings
from hypothesis import strategies as st
from render_setup import ODD, RUBRIC, TALK, WORDS, pen_for
from toy_model import ToyModel

from aipsy_judge import bench_contract
from aipsy_judge.answer import NA
from aipsy_judge.asked_prompt import asked_prompts
from aipsy_judge.backends.protocol import Tokens
from aipsy_judge.contract import COMPACT, COMPACT_V2, FULL, Contract
from aipsy_judge.contracts import load_contract
from aipsy_judge.errors import ContractError
from aipsy_judge.local_judge import LocalJudge
from aipsy_judge.rubric import Rubric
from aipsy_judge.verdict import NotApplicable, Scored, Verdict
from aipsy_judge.weights import Weights
from training.render_answer import Pen, plain_words, render_row, write
from training.rows import Row
from training.target_rows import TargetRow


def rows_of(tokens: Tokens, pen: Pen, contract: Contract, items: Mapping[int, TargetRow]) -> list[Row]:
    """A row for every turn of TALK."""
    turns = TALK.turns
    prompts = {n: asked_prompts(tokens, contract, pen.rubric, TALK, turns[n - 1].index) for n in items}
    return [render_row(pen, prompts[n], item)[0] for n, item in items.items()]


def judged(
    tokens: Tokens, rows: list[Row], rubric: Rubric, contract: Contract, folder: Path, **options: Any
) -> list[Verdict]:
    (folder / "fitted.gguf").write_bytes(b"x")
    weights = Weights(name="fitted", model=folder / "fitted.gguf")
    with LocalJudge(FittedModel(tokens, rows), weights, rubric, contract) as judge:
        return judge.score(TALK, **options)


def check(tokens: Tokens, rubric: Rubric, contract: Contract, folder: Path, seed: int) -> None:
    """Judge TALK by a model that learnt its rows: every known slot is read as its soft label, token by token."""
    pen = pen_for(tokens, rubric, contract)
    items = {n: drawn(rubric, contract, seed + n) for n in (1, 2)}
    rows = rows_of(tokens, pen, contract, items)
    verdicts = judged(tokens, rows, rubric, contract, folder, rationale="never")
    for verdict, item in zip(verdicts, items.values(), strict=True):
        for form in pen.forms.values():
            for slot in write(pen, form, item).slots:
                expect(verdict, rubric, slot.name, slot.wanted.label, slot.wanted.shares)


def drawn(rubric: Rubric, contract: Contract, seed: int) -> TargetRow:
    """For contract compact one of which everything is known and every flag set: a line that is left out is asked all
    the same, and would be in no row."""
    if not contract.lines:
        return drawn_target(rubric, seed)
    tries = (drawn_target(rubric, seed + 10_000 * n, whole=True) for n in range(1000))
    return next(item for item in tries if all(f.value for f in item.flags.values()))


def expect(verdict: Verdict, rubric: Rubric, name: str, label: str, shares: Mapping[str, float]) -> None:
    if not shares:
        return
    flag = verdict.flags.get(name)
    if flag is not None:
        assert flag.value == (label not in ("false", "none"))
        assert flag.distribution == pytest.approx({**dict.fromkeys(flag.distribution or (), 0.0), **shares}, abs=1e-5)
    elif name in rubric.metric_names:
        score = verdict.scores[name]
        assert isinstance(score, NotApplicable) if label == NA else score == Scored(float(label), score.reading)  # type: ignore[union-attr]
        assert score.reading is not None  # type: ignore[union-attr]
        read = score.reading.distribution  # type: ignore[union-attr]
        assert read == pytest.approx({**dict.fromkeys(read, 0.0), **shares}, abs=1e-5)
        assert score.reading.legal_mass == pytest.approx(1.0, abs=1e-5)  # type: ignore[union-attr]


@given(seed=st.integers(0, 10**6))
@settings(max_examples=5, deadline=None)
@pytest.mark.parametrize("rubric", [RUBRIC, ODD], ids=lambda r: r.name)
@pytest.mark.parametrize("contract", [FULL, COMPACT, COMPACT_V2], ids=lambda c: c.name)
def test_a_judge_that_learnt_the_rows_is_read_as_the_targets_say(
    rubric: Rubric, contract: Contract, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    check(ToyModel(), rubric, contract, tmp_path_factory.mktemp("judge"), seed)


def test_rationales_are_written_where_and_as_the_engine_goes_on_with_them(tmp_path: Path) -> None:
    tokens = ToyModel()
    pen = pen_for(tokens, RUBRIC, FULL)
    seen = set()
    for seed in range(4):
        items = {n: drawn_target(RUBRIC, seed * 2 + n, whole=True, rationale=WORDS if n == 1 else None) for n in (1, 2)}
        rows = rows_of(tokens, pen, FULL, items)
        first, second = judged(tokens, rows, RUBRIC, FULL, tmp_path, rationale="always")
        spoken = any(t.kind == "rationale" for t in rows[0].targets)
        assert first.rationale == (plain_words(WORDS) if spoken else "")
        assert second.rationale == ""
        seen.add(spoken)
    assert True in seen


def smollm2_tokens() -> Iterator[tuple[Tokens, Tokens]]:
    """(what trains, what is asked): the tokenizer made from the file, and llama.cpp's of the same file."""
    from real_models import smollm2

    from aipsy_judge.backends.llamacpp import LlamaCpp
    from training.hf_tokens import base_tokens
    from training.recipe import Base

    served = LlamaCpp(smollm2())
    yield base_tokens(Base(gguf=str(smollm2()))), served
    served.close()


def gemma4_tokens() -> Iterator[tuple[Tokens, Tokens]]:
    """The checkpoint's own tokenizer of 262,144 tokens, and llama.cpp's of a GGUF with that vocabulary."""
    from gemma4_checkpoint import gemma4_checkpoint
    from real_models import gemma4_tiny

    from aipsy_judge.backends.llamacpp import LlamaCpp
    from training.hf_tokens import folder_tokens

    served = LlamaCpp(gemma4_tiny())
    yield folder_tokens(gemma4_checkpoint()), served
    served.close()


@pytest.fixture(scope="module", params=[smollm2_tokens, gemma4_tokens], ids=lambda f: f.__name__)
def both(request: pytest.FixtureRequest) -> Iterator[tuple[Tokens, Tokens]]:
    yield from request.param()


STAND_IN = "aipsy-bench-v1 with a stand-in for its prompt"
NAMES = ["full", "compact", "aipsy-bench-v1", STAND_IN]


def contract_or_skip(name: str, monkeypatch: pytest.MonkeyPatch) -> Contract:
    """The benchmark's frozen prompt need not be on this machine; its answer is known without it."""
    if name == STAND_IN:
        monkeypatch.setattr(bench_contract, "system_text", lambda: "You are a stand-in for the frozen prompt.")
        return bench_contract.load_bench_contract()
    try:
        return load_contract(name)
    except ContractError as error:
        pytest.skip(f"{error.message}; {error.hint}")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("hard", [False, True])
def test_rows_are_by_token_ids_those_of_the_vocabulary_that_is_served(
    both: tuple[Tokens, Tokens], name: str, hard: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    contract = contract_or_skip(name, monkeypatch)
    rows = []
    for tokens in both:
        pen = pen_for(tokens, RUBRIC, contract, hard)
        items = {n: drawn_target(RUBRIC, 7 + n, rationale=WORDS, whole=n == 1) for n in (1, 2)}
        rows.append(rows_of(tokens, pen, contract, items))
    assert rows[0] == rows[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", [1, 2])
def test_the_engine_over_the_served_vocabulary_sends_what_was_rendered(
    both: tuple[Tokens, Tokens], name: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained, served = both
    contract = contract_or_skip(name, monkeypatch)
    pen = pen_for(trained, RUBRIC, contract)
    items = {n: drawn(RUBRIC, contract, 100 * seed + n) for n in (1, 2)}
    rows = rows_of(trained, pen, contract, items)
    verdicts = judged(served, rows, RUBRIC, contract, tmp_path, rationale="never")
    for verdict, item in zip(verdicts, items.values(), strict=True):
        for form in pen.forms.values():
            for slot in write(pen, form, item).slots:
                expect(verdict, RUBRIC, slot.name, slot.wanted.label, slot.wanted.shares)


@pytest.mark.slow
def test_the_answer_opens_and_ends_as_the_template_of_the_base_says(both: tuple[Tokens, Tokens]) -> None:
    trained, _ = both
    opening, stop = {
        True: ("<|turn>model\n<|channel>thought\n<channel|>", "<turn|>"),
        False: ("<|im_start|>assistant\n", "<|im_end|>"),
    }["<|turn>" in trained.marker_texts]
    pen = pen_for(trained, RUBRIC, FULL)
    (row,) = rows_of(trained, pen, FULL, {1: drawn_target(RUBRIC, 5, rationale=WORDS, whole=True)})
    text = trained.tokenizer.decode  # type: ignore[attr-defined]
    assert text(row.tokens[: row.prompt_tokens]).endswith(opening)
    (end,) = (t for t in row.targets if t.kind == "end")
    assert text(end.tokens) == stop
    answer = text([row.tokens[i] for i in row.path(end.at)[row.prompt_tokens :]])
    assert answer.startswith('{"crisis_detected": "')
    assert answer.endswith('"}')
    if opening.startswith("<|turn>"):
        assert row.tokens[0] == 2
        assert row.tokens.count(2) == 1


def test_the_benchmarks_answer_is_rendered_as_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in for the frozen prompt, which need not be on this machine."""
    monkeypatch.setattr(bench_contract, "system_text", lambda: "You are a stand-in for the frozen prompt.")
    contract = bench_contract.load_bench_contract()
    for seed in range(2):
        check(ToyModel(), RUBRIC, contract, tmp_path, 1000 * seed)
