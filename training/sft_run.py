"""One training run in a folder: begun, or gone on with from its last checkpoint, to its adapter and temperatures."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import PrinterCallback, TrainerCallback

from aipsy_judge.atomic import write_text
from aipsy_judge.contracts import load_contract
from aipsy_judge.errors import InputError, JudgeError
from aipsy_judge.rubric import load_rubric
from aipsy_judge.strict_json import dumps

from .adapter_files import load_weights, save_adapter
from .backbone import backbone, hidden_states, logits_of
from .begin import begin, kept_trunk, start, the_device
from .collate import collate
from .curves import FILE as CURVES
from .curves import draw
from .data_files import conversations
from .first_batch import settle_first_batch
from .hf_tokens import base_tokens
from .judging import Exam, judge
from .last_good import LastGood
from .lora import without_gradient
from .loss import chosen_kind
from .processes import first_process, processes
from .progress import FILE as LOG
from .progress import Progress, read_log
from .quiet import without_notices
from .recipe import Recipe
from .render import pen_of
from .resuming import CHECKPOINTS, last_whole_checkpoint
from .row_trainer import NonFiniteLossError, RowTrainer
from .rows import Row, read_rows
from .sample_rows import FILE as SAMPLE_FILE
from .sample_rows import read_sample_rows
from .shared_prefix import joined
from .stage import finished
from .target_rows import FILE as TARGETS_FILE
from .target_rows import read_target_rows
from .temperature import FILE as TEMPERATURES
from .temperature import fit_all
from .validation import Validation

ADAPTER = "adapter"
Say = Callable[[str], None]


def run(recipe: Recipe, out: Path, base: Path, part: Path, say: Say) -> None:
    """Fill `part`. Raises InputError where there is nothing to train on, JudgeError where the loss is no number."""
    _wait_for_the_first()
    device = the_device()
    rows = read_rows(finished(out, "rows") / "train.jsonl")
    if not rows:
        raise InputError("no rows to train on", where=str(finished(out, "rows")))
    if recipe.train.joined_tokens is not None:
        rows, alone = joined(rows, recipe.train.joined_tokens), rows
        before, after = (sum(len(row.tokens) for row in some) for some in (alone, rows))
        say(f"{len(alone)} rows of {before} tokens as {len(rows)} of {after}")
    model = begin(recipe, base, device, say)
    exam = make_exam(recipe, out, base)
    validation = None
    if processes() > 1:
        say("several processes: the validation part is not judged, and no temperatures are fitted")
    elif recipe.validation.every is not None and exam.items:
        short = exam.shortened(recipe.validation.units, recipe.seed)
        validation = Validation(part, short, recipe.validation, base, say)
    trainer = make_trainer(recipe, model, exam.tokens.tokenizer, rows, part, device)
    settle_first_batch(trainer, recipe, device, say)
    trainer.trunk = kept_trunk(recipe, model, rows, say)
    if last_whole_checkpoint(part / CHECKPOINTS) is None:
        start(recipe, trainer, say)
    fit(trainer, part, validation, LastGood(), say, lambda: _keep_last_good(out, base, trainer, recipe))
    finish(recipe, trainer, exam, validation, part, base, say)


def make_exam(recipe: Recipe, out: Path, base: Path) -> Exam:
    """The whole validation part, as it is judged."""
    parts = {row.item_id: row.part for row in read_sample_rows(finished(out, "sample") / SAMPLE_FILE)}
    targets = read_target_rows(finished(out, "targets") / TARGETS_FILE)
    return Exam(
        rubric=load_rubric(recipe.rubric),
        contract=load_contract(recipe.contract),
        items=tuple(t for t in targets if parts.get(t.item_id) == "validation"),
        texts=conversations(recipe),
        tokens=base_tokens(recipe.base),
        window=recipe.render.window,
        base=base,
        autocast=recipe.train.precision == "bf16",
        max_tokens=recipe.render.max_tokens,
    )


def make_trainer(
    recipe: Recipe, model: Any, tokenizer: Any, rows: list[Row], part: Path, device: torch.device
) -> RowTrainer:
    """The loop over `rows`, each as often as it repeats."""
    from datasets import Dataset

    shown = [index for index, row in enumerate(rows) for _ in range(row.repeats)]
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id
    with without_notices():
        trainer = RowTrainer(
            model=model,
            args=_settings(recipe, len(shown), part, device),
            rows=rows,
            pad_token=pad or 0,
            train_dataset=Dataset.from_dict({"index": shown}),
            processing_class=tokenizer,
            loss_kind=chosen_kind(recipe.train.loss, device),
        )
    trainer.remove_callback(PrinterCallback)
    return trainer


def _settings(recipe: Recipe, shown: int, part: Path, device: torch.device) -> Any:
    """trl's settings of the loop over `shown` rows an epoch, which several processes share out."""
    from trl.trainer.sft_config import SFTConfig

    told = recipe.train
    together = told.batch * told.accumulate * processes()
    steps = told.steps or math.ceil(told.epochs * math.ceil(shown / together))
    return SFTConfig(
        output_dir=str(part / CHECKPOINTS),
        per_device_train_batch_size=told.batch,
        gradient_accumulation_steps=told.accumulate,
        max_steps=steps,
        learning_rate=told.learning_rate,
        lr_scheduler_type={"constant": "constant_with_warmup"}.get(told.schedule, told.schedule),
        warmup_steps=math.ceil(told.warmup * steps),
        weight_decay=told.weight_decay,
        optim={"adamw": "adamw_torch"}.get(told.optimiser, told.optimiser),
        max_grad_norm=told.max_grad_norm,
        bf16=told.precision == "bf16",
        use_cpu=device.type == "cpu",
        activation_checkpointing=told.checkpointing,
        activation_checkpointing_kwargs={"use_reentrant": False},
        save_steps=told.save_every,
        save_total_limit=2,
        seed=recipe.seed,
        data_seed=recipe.seed,
        logging_steps=1,
        logging_nan_inf_filter=False,
        report_to=[],
        disable_tqdm=True,
        packing=False,
        max_length=None,
        remove_unused_columns=False,
        dataset_kwargs={"skip_prepare_dataset": True},
        dataloader_pin_memory=device.type == "cuda",
    )


class _Rounds(TrainerCallback):
    """Judges when a round is due; checks once that everything that is to learn gets a gradient."""

    def __init__(self, validation: Validation | None, progress: Progress) -> None:
        self._validation, self._progress, self._checked = validation, progress, False

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        if not self._checked and (idle := without_gradient(model)):
            raise InputError(f"{len(idle)} weights of the adapter get no gradient, the first: {idle[0]}", where="lora")
        self._checked = True

    def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        found = self._validation
        if found is None:
            return
        last = state.global_step >= state.max_steps
        if found.due(state.global_step) or (last and not found.has(state.global_step)):
            begun = time.monotonic()
            found.run(model, state.global_step)
            self._progress.waited(time.monotonic() - begun)
        if found.exhausted:
            control.should_training_stop = True


def fit(
    trainer: RowTrainer,
    part: Path,
    validation: Validation | None,
    last_good: LastGood,
    say: Say,
    keep: Callable[[], Path],
) -> None:
    """Train to the end, or until validation says that it gets no better."""
    progress = Progress(part, lambda: trainer.tokens_seen, say)
    for callback in (last_good, _Rounds(validation, progress), progress):
        trainer.add_callback(callback)
    checkpoint = last_whole_checkpoint(part / CHECKPOINTS)
    step = int(checkpoint.name.rpartition("-")[2]) if checkpoint is not None else 0
    if validation is not None:
        validation.back_to(step)
    if checkpoint is not None:
        say(f"going on from step {step}")
        if step >= trainer.args.max_steps:  # killed after its last step
            load_weights(trainer.model, checkpoint)
            return
    try:
        with without_notices():
            trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint is not None else None)
    except NonFiniteLossError as error:
        steps = last_good.restore(trainer.model)
        where = "nothing was learnt yet"
        if steps is not None:
            where = f"the adapter after {steps} steps is kept in {keep()}"
        raise JudgeError(
            f"{error.what} is not finite after {error.step} steps; {where}",
            hint="Lower train.learning_rate, or look at the rows: a target of weight 0 or a broken file does this.",
        ) from error
    done = trainer.state.global_step
    if done < trainer.state.max_steps:
        say(f"stopped after {done} of {trainer.state.max_steps} steps: validation got no better")


def finish(
    recipe: Recipe,
    trainer: RowTrainer,
    exam: Exam,
    validation: Validation | None,
    part: Path,
    base: Path,
    say: Say,
) -> None:
    """Keep the best adapter, fit temperatures on the validation part, draw the curves."""
    model = trainer.model
    if processes() > 1:
        _save(trainer, part / ADAPTER, base, recipe)
        if first_process():
            draw(part / CURVES, read_log(part / LOG), [])
        return
    best = validation.best_adapter() if validation is not None else None
    if best is not None:
        load_weights(model, best)
        say(f"the adapter after {best.name} steps is kept: it agreed best")
    elif validation is not None and validation.rounds:
        say("the adapter of the last step is kept: no round of validation could be compared with the others")
    check_effect(model, trainer.rows[0])
    _save(trainer, part / ADAPTER, base, recipe)
    if exam.items:
        pen = pen_of(recipe, exam.tokens, exam.rubric, exam.contract)
        fitted = fit_all(judge(model, exam), exam, pen)
        write_text(part / TEMPERATURES, dumps(fitted, indent=1) + "\n")
        say("temperatures: " + ", ".join(f"{name} {t:g}" for name, t in fitted["temperatures"].items()))
    draw(part / CURVES, read_log(part / LOG), validation.rounds if validation is not None else [])


def check_effect(model: Any, row: Row) -> None:
    """An adapter that changes nothing was not trained, or is not in use. JudgeError then."""
    found = backbone(model)
    batch = collate([row], 0).to(found.head.device)
    training = model.training
    model.eval()
    with torch.no_grad():
        on = logits_of(found, batch.predicting(hidden_states(model, batch)))
        with model.disable_adapter():
            off = logits_of(found, batch.predicting(hidden_states(model, batch)))
    model.train(training)
    if torch.equal(on, off):
        raise JudgeError("the adapter changes nothing: with it and without it the model says the same")


def _save(trainer: RowTrainer, folder: Path, base: Path, recipe: Recipe) -> None:
    """The adapter as it stands; of several processes the first writes what is gathered from all of them."""
    named = recipe.base.gguf or recipe.base.checkpoint
    state = trainer.accelerator.get_state_dict(trainer.model) if processes() > 1 else None
    if first_process():
        model = trainer.accelerator.unwrap_model(trainer.model)
        save_adapter(model, folder, base, recipe.base.revision, named, state)


def _keep_last_good(out: Path, base: Path, trainer: RowTrainer, recipe: Recipe) -> Path:
    folder = out / "sft-last-good"
    _save(trainer, folder, base, recipe)
    return folder


def _wait_for_the_first() -> None:
    """The first process makes the stage's folder; the others wait until it has."""
    if processes() > 1:
        from accelerate import PartialState

        PartialState().wait_for_everyone()
