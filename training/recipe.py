"""The recipe: everything a judge is made from, as data. `recipe_reading.load_recipe` reads one.

Every key's `description` says its unit and what is legal; it is what a fault message shows. Sections are frozen. A
section's name is the key in the file, but for `validate`, which is `Recipe.validation` (pydantic owns the word).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self, get_args

import yaml
from pydantic import Field, model_validator

from aipsy_judge.contracts import CONTRACTS

from .recipe_section import Name, Number, Section, Text, Words

Contract = Literal["full", "compact", "compact-v2", "aipsy-bench-v1"]
assert get_args(Contract) == CONTRACTS

# The published failure of advice and boundaries: 69 % of all failures lay there, and training on more of them led to
# over-flagging (the sister project's report on aipsy-judge-1.0).
KEPT_APART = ("advice_safety", "boundary_safety")


class Base(Section):
    """What is adapted."""

    checkpoint: Text | None = Field(
        default=None, description="folder with config.json, *.safetensors and the tokenizer; or give gguf"
    )
    gguf: Text | None = Field(
        default=None, description="PACKAGE:FILE or a path; dequantised once to such a folder; or give checkpoint"
    )
    revision: Text | None = Field(
        default=None, description="the base's revision (a commit), recorded and checked at merging"
    )
    config: Text | None = Field(
        default=None, description="a config.json to predict memory from where the checkpoint is not on this machine"
    )

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.checkpoint is None) == (self.gguf is None):
            raise ValueError("exactly one of checkpoint and gguf is needed")
        return self


class Data(Section):
    """Paths are relative to the folder the program is run in; * and ** stand for any name and any folders."""

    conversations: Words = Field(
        min_length=1, description="transcript files, folders or patterns, anything `aipsy-judge score` reads"
    )
    ratings: Words = Field(min_length=1, description="ratings tables, runs or panels, files, folders or patterns")
    items: Text | None = Field(
        default=None, description="CSV or JSONL with item_id, conversation, turn and, if known, scenario and generator"
    )
    turns: Literal["told", "last"] = Field(
        default="told", description="told, or last: an item that names no turn is the last one of its conversation"
    )


class Targets(Section):
    """What a slot is to say."""

    source: Annotated[str, Field(pattern=r"^(correction|mean|rater:.+)$")] = Field(
        default="correction", description="correction, mean (of all judges), or rater:NAME"
    )
    anchors: Words = Field(
        default=("adjudicated", "expert"),
        description="raters or kinds of raters who are right; a correction is fitted to them",
    )
    correction: Text | None = Field(
        default=None, description="a correction's file, instead of fitting one to the anchors"
    )
    fit_on: Literal["train", "all"] = Field(
        default="train", description="train (the anchors of the train part alone) or all (the test part is then seen)"
    )
    spread: Annotated[Number, Field(ge=0)] = Field(
        default=0.5, description="standard deviation of a soft label around its target, points of the scale, 0 and up"
    )

    @model_validator(mode="after")
    def _used(self) -> Self:
        if self.correction is not None and self.source != "correction":
            raise ValueError(f"a correction is named, yet source is {self.source!r} and would not use it")
        return self

    @property
    def rater(self) -> str | None:
        """The rater that `rater:NAME` names, else None."""
        return self.source.removeprefix("rater:") if self.source.startswith("rater:") else None


class Split(Section):
    """Whole groups go to one part; groups are joined where they share a conversation or are near duplicates."""

    by: Literal["scenario", "conversation"] = Field(default="scenario", description="scenario or conversation")
    train: Annotated[Number, Field(gt=0, le=1)] = Field(default=0.7, description="share of the items, above 0 up to 1")
    validation: Annotated[Number, Field(ge=0, lt=1)] = Field(default=0.1, description="share of the items, 0 up to 1")
    test: Annotated[Number, Field(ge=0, lt=1)] = Field(default=0.2, description="share of the items, 0 up to 1")
    file: Text | None = Field(
        default=None,
        description="a frozen split: CSV or JSONL with item_id or group, and part; the shares are not used then",
    )
    near_duplicate: Annotated[Number, Field(gt=0, le=1)] = Field(
        default=0.8,
        description="Jaccard similarity of five-word shingles from which two texts are one, above 0 up to 1",
    )

    @model_validator(mode="after")
    def _whole(self) -> Self:
        total = self.train + self.validation + self.test
        if abs(total - 1) > 1e-9:
            raise ValueError(f"train + validation + test is {total:g}, not 1")
        return self


class Strata(Section):
    """Which failures are shown more often while training. Validation and test stay as they are."""

    oversample: Literal["tail", "all", "none"] = Field(
        default="tail",
        description="tail (failures beyond those of kept_apart alone), all (failures: known to hurt), or none",
    )
    factor: Annotated[int, Field(ge=1, le=100)] = Field(
        default=4, description="how often such an item is shown, 1 to 100"
    )
    kept_apart: Words = Field(
        default=KEPT_APART,
        description="metrics of the rubric; an item that fails on these alone is never shown more often",
    )


class Render(Section):
    """How an item becomes tokens."""

    labels: Literal["soft", "hard"] = Field(default="soft", description="soft or hard")
    max_tokens: Annotated[int, Field(ge=16)] = Field(
        default=4096,
        description="tokens of prompt and answers together, 16 and up; a longer item is dropped and counted",
    )
    window: Annotated[int, Field(ge=1)] | None = Field(
        default=None,
        description="newest messages shown, 1 and up, or null for all; the judge is then asked the same way",
    )
    rationale: Literal["agreeing", "never"] = Field(
        default="agreeing", description="agreeing (only words of a rater who says what the target says) or never"
    )
    skeleton_weight: Annotated[Number, Field(gt=0, le=1)] = Field(
        default=0.1, description="weight of fixed text and of the end token, against 1 for a slot; above 0 up to 1"
    )
    augment: Annotated[Number, Field(ge=0, le=1)] = Field(
        default=0.0,
        description="share of the train part's conversations in another dress (training/augment.py), 0 up to 1",
    )


class Lora(Section):
    """What is learnt."""

    rank: Annotated[int, Field(ge=1, le=1024)] = Field(default=16, description="1 to 1024")
    alpha: Annotated[Number, Field(gt=0)] = Field(
        default=32, description="above 0; the adapter is scaled by alpha / rank"
    )
    dropout: Annotated[Number, Field(ge=0, lt=1)] = Field(default=0.0, description="0 up to 1; 0 with experts: true")
    experts: bool = Field(default=False, description="true or false: adapt the stacked tensors of routed experts too")
    expert_rank: Annotated[int, Field(ge=1, le=1024)] = Field(default=2, description="rank per expert, 1 to 1024")
    start: Literal["random", "ridge"] = Field(
        default="random",
        description="random, or ridge (rows of A that tell the targets already, see training/ridge_start.py)",
    )
    modules: Text = Field(
        default="default",
        description="default (attention and dense MLP), or a regular expression over whole module names",
    )

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if self.experts and self.dropout:
            raise ValueError("dropout must be 0 with experts: true; stacked expert tensors cannot have it (peft)")
        if self.modules != "default":
            try:
                re.compile(self.modules)
            except (re.error, OverflowError, RecursionError) as error:
                raise ValueError(f"modules is not a regular expression: {error}") from error
        return self


class Train(Section):
    """How it is learnt."""

    epochs: Annotated[Number, Field(gt=0)] = Field(default=2, description="passes over the train part, above 0")
    steps: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="optimiser steps instead of epochs, 1 and up, or null"
    )
    batch: Annotated[int, Field(ge=1)] = Field(default=1, description="rows a forward pass, 1 and up")
    accumulate: Annotated[int, Field(ge=1)] = Field(
        default=16, description="forward passes an optimiser step, 1 and up"
    )
    learning_rate: Annotated[Number, Field(gt=0, le=1)] = Field(default=1e-4, description="above 0 up to 1")
    schedule: Literal["cosine", "linear", "constant"] = Field(
        default="cosine", description="cosine, linear or constant"
    )
    warmup: Annotated[Number, Field(ge=0, lt=1)] = Field(default=0.03, description="share of the steps, 0 up to 1")
    weight_decay: Annotated[Number, Field(ge=0)] = Field(default=0.0, description="0 and up")
    optimiser: Literal["adamw", "paged_adamw_8bit"] = Field(
        default="adamw", description="adamw or paged_adamw_8bit (CUDA)"
    )
    precision: Literal["bf16", "fp32"] = Field(
        default="bf16", description="bf16 or fp32; not fp16: activations of Gemma overflow in it"
    )
    checkpointing: bool = Field(
        default=True, description="true or false: compute activations again instead of keeping them"
    )
    # One legal value: whoever comes from another trainer looks for this key, and reads here why it is off.
    packing: Literal[False] = Field(
        default=False,
        description="false: a row is a tree with its own mask, which packed attention would not keep apart",
    )
    joined_tokens: Annotated[int, Field(ge=16)] | None = Field(
        default=None,
        description="rows of one conversation are laid over one another up to so many tokens, 16 and up; null: not",
    )
    keep_trunk: bool = Field(
        default=False,
        description="true or false: keep the states that enter the first adapted layer from one epoch to the next",
    )
    loss: Literal["auto", "chunked", "liger", "plain"] = Field(
        default="auto", description="auto (liger on CUDA, else chunked), chunked, liger (CUDA) or plain"
    )
    save_every: Annotated[int, Field(ge=1)] = Field(default=50, description="optimiser steps, 1 and up")
    max_grad_norm: Annotated[Number, Field(gt=0)] = Field(default=1.0, description="above 0")


class Validate(Section):
    """Validation by judging units of the validation part."""

    every: Annotated[int, Field(ge=1)] | None = Field(
        default=50, description="optimiser steps, 1 and up, or null for none while training"
    )
    units: Annotated[int, Field(ge=1)] = Field(default=64, description="units judged each time at most, 1 and up")
    patience: Annotated[int, Field(ge=1)] | None = Field(
        default=3, description="validations without a gain before training stops, 1 and up, or null for never"
    )
    # One legal value, so that a finished run's recipe goes on saying what it was stopped by if there is ever another.
    measure: Literal["agreement"] = Field(
        default="agreement", description="agreement (mean ICC(A,1) over metrics and flags, see training/measures.py)"
    )


class Memory(Section):
    """What the machine has. `python -m training.memory RECIPE` predicts what is needed."""

    device_gb: Annotated[Number, Field(gt=0)] = Field(
        default=16, description="memory of the accelerator, GB (1e9 bytes), above 0"
    )
    host_gb: Annotated[Number, Field(gt=0)] = Field(
        default=32, description="memory of the machine, GB (1e9 bytes), above 0"
    )
    base_bits: Literal[16, 4] = Field(default=16, description="16, or 4 (NF4, routed experts too)")


class Export(Section):
    """What is made of the adapter: files that a judge can be opened from."""

    gguf: Annotated[tuple[Literal["Q8_0", "F16", "BF16", "Q6_K", "Q4_K_M"], ...], Field(strict=False)] = Field(
        default=("Q8_0",), description="a list of Q8_0, F16, BF16, Q6_K, Q4_K_M"
    )
    adapter_gguf: bool = Field(default=False, description="true or false: the adapter as a small GGUF by itself")
    mlx: Annotated[tuple[Literal[8, 4], ...], Field(strict=False)] = Field(
        default=(), description="a list of 8 and 4 (bits)"
    )
    verify: bool = Field(default=True, description="true or false: hold each file against the full model")
    verify_units: Annotated[int, Field(ge=1)] = Field(
        default=100, description="turns of the validation part that it is held on at least, 1 and up"
    )


class Recipe(Section):
    """A whole recipe. Sections that are left out have their defaults; name, base and data have none."""

    name: Name = Field(description="lower case letters, digits, '.', '_' and '-', at most 64")
    seed: Annotated[int, Field(ge=0, lt=2**32)] = Field(default=14, description="a whole number from 0")
    rubric: Text = Field(default="aipsy-judge-v1", description="a shipped rubric's name or a YAML file")
    contract: Contract = Field(default="full", description="full, compact, compact-v2 or aipsy-bench-v1")
    base: Base
    data: Data
    targets: Targets = Targets()
    split: Split = Split()
    strata: Strata = Strata()
    render: Render = Render()
    lora: Lora = Lora()
    train: Train = Train()
    validation: Validate = Field(default=Validate(), alias="validate")
    memory: Memory = Memory()
    export: Export | None = None

    def to_dict(self) -> dict[str, Any]:
        """The resolved recipe as plain data, every default filled in; reads back to an equal recipe."""
        return self.model_dump(mode="json", by_alias=True)

    def part(self, *keys: str) -> dict[str, Any]:
        """Some of its top-level keys as plain data: what a stage depends on. KeyError on an unknown one."""
        whole = self.to_dict()
        return {key: whole[key] for key in keys}


def resolved_text(recipe: Recipe) -> str:
    """The resolved recipe as YAML, keys in the order of this file."""
    return yaml.safe_dump(recipe.to_dict(), sort_keys=False, allow_unicode=True, width=120)


def keys(section: type[Section] = Recipe, before: str = "") -> Iterator[tuple[str, str]]:
    """Every key as (dotted path, what is legal), sections left out but for what is in them."""
    for name, field in section.model_fields.items():
        path = before + (field.alias or name)
        inner = section_of(field.annotation)
        if inner is not None:
            yield from keys(inner, path + ".")
        else:
            yield path, field.description or ""


def section_of(annotation: Any) -> type[Section] | None:
    """The section a field holds, where it holds one (or None)."""
    found = [t for t in (annotation, *get_args(annotation)) if isinstance(t, type) and issubclass(t, Section)]
    return found[0] if found else None
