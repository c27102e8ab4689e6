"""Where an adapter starts: rows of A in which what is to be learnt can be told already.

The rows of a LoRA's A are commonly drawn at random, and all that B can learn from at first is what those few random
directions of a module's input happen to show. Beside a small model and a small corpus that is next to nothing: for
hundreds of steps the adapter learns base rates and flattens the rest (docs/log.md). Here most rows are directions that
a ridge regression finds, at the slots, from the module's input to the slot's target; data-driven starts such as EVA
(Paischer et al. 2024, arXiv:2410.07170) take the directions of most variance instead, told by no target. B is 0 as
ever: the adapter changes nothing before its first step.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aipsy_judge.agreement.library import stats_library
from aipsy_judge.errors import InputError

from .row_trainer import RowTrainer, batch_of
from .rows import Row

Floats = NDArray[np.float32]

ANSWERS = 3500  # slots that are looked at, at most
FEWEST = 100  # of one slot, for a regression
A_SLOT = 2  # directions of one slot: how good, and whether it applies
RANDOM_SHARE = 0.25  # of the rows stay random: what the slots do not tell, format among it, has to be learnt too
STRENGTHS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)  # of the ridge, in mean squares of the input; chosen by leaving one out
ALIKE = 1e-6  # of the inputs' mean square: they vary no more than rounding does
# What other tokens read of a token; at the slots themselves nothing is known of it.
_READ_BY_OTHERS = ("k_proj", "v_proj")


@dataclass(frozen=True)
class Slots:
    """N slots of some rows. names (N,); shares (N, L) of what each is to say, over all tokens that a slot may say;
    inputs: by adapted module its (N, in) input there, one array for modules that read the same."""

    names: NDArray[Any]
    shares: Floats
    inputs: dict[str, Floats]


def start_from_ridge(trainer: RowTrainer, seed: int) -> str:
    """Set rows of A of every adapted linear module; what was done, in words. InputError where no slot has FEWEST.

    Evaluates rows drawn by `seed` once. All else, and the random state, stays as it was.
    """
    slots = look_at(trainer, drawn(trainer.rows, seed))
    counts = {str(n): int((slots.names == n).sum()) for n in sorted(set(slots.names))}
    told = [name for name, count in counts.items() if count >= FEWEST]
    if not told:
        raise InputError(
            f"no slot has {FEWEST} answers to learn directions from", where="lora.start", hint="Use lora.start: random."
        )
    found: dict[int, Tensor] = {}
    told_by = 0
    modules = dict(_adapted(trainer.model))
    for name, inputs in slots.inputs.items():
        if id(inputs) not in found:
            found[id(inputs)] = torch.from_numpy(directions(inputs, slots, told))
        weight = modules[name].lora_A["default"].weight
        most = weight.shape[0] - int(np.ceil(RANDOM_SHARE * weight.shape[0]))
        chosen = found[id(inputs)][:most]
        told_by += bool(len(chosen))
        with torch.no_grad():
            weight[: len(chosen)] = chosen.to(weight)
    return f"start: rows of A of {told_by} modules from {len(slots.names)} answers of {', '.join(told)}"


def drawn(rows: Sequence[Row], seed: int) -> list[int]:
    """Places of rows with ANSWERS slots in all, or of all rows."""
    places = list(range(len(rows)))
    random.Random(seed).shuffle(places)
    found, answers = [], 0
    for place in places:
        if answers >= ANSWERS:
            break
        found.append(place)
        answers += sum(t.slot is not None for t in rows[place].targets)
    return found


def look_at(trainer: RowTrainer, places: Sequence[int]) -> Slots:
    """What the adapted modules read at the slots of these rows."""
    modules = {n: m for n, m in _adapted(trainer.model) if not n.endswith(_READ_BY_OTHERS)}
    read: dict[str, list[Tensor]] = {name: [] for name in modules}
    at: list[Tensor] = []

    def catch(name: str) -> Any:
        return lambda module, args: read[name].append(args[0][0, at[-1]].detach())

    handles = [module.register_forward_pre_hook(catch(name)) for name, module in modules.items()]
    targets = []
    training = trainer.model.training
    trainer.model.eval()
    try:
        for place in places:
            told = [t for t in trainer.rows[place].targets if t.slot is not None]
            if not told:
                continue
            targets += told
            inputs = trainer.data_collator([{"index": place}])
            inputs = {key: value.to(trainer.args.device) for key, value in inputs.items()}
            at.append(torch.tensor([t.at for t in told], device=trainer.args.device))
            with torch.no_grad():
                trainer.states(trainer.model, batch_of(inputs), inputs)
    finally:
        trainer.model.train(training)
        for handle in handles:
            handle.remove()
    tokens = sorted({token for t in targets for token in t.tokens})
    shares = np.zeros((len(targets), len(tokens)), dtype=np.float32)
    for row, target in enumerate(targets):
        for token, share in zip(target.tokens, target.shares, strict=True):
            shares[row, tokens.index(token)] += share
    return Slots(np.array([t.slot for t in targets]), shares, _joined(read))


def _joined(read: dict[str, list[Tensor]]) -> dict[str, Floats]:
    """By module one array; modules that were given the same tensors share it."""
    found: dict[str, Floats] = {}
    for name, parts in read.items():
        whole: Floats = torch.cat(parts).float().cpu().numpy()
        same = next((other for other in found.values() if np.array_equal(other, whole)), None)
        found[name] = whole if same is None else same
    return found


def directions(inputs: Floats, slots: Slots, told: Sequence[str]) -> Floats:
    """(D, in) directions in the inputs (N, in): the first of each slot in `told`, then the second.

    Along each the answers of its slot have a standard deviation of 1. What the slots' means have in common is taken
    out: it says which slot it is, not what belongs there.
    """
    by_slot = [_of_slot(inputs[slots.names == name], slots.shares[slots.names == name]) for name in told]
    rows = [some[n] for n in range(A_SLOT) for some in by_slot if n < len(some)]
    if not rows:
        return np.zeros((0, inputs.shape[1]), dtype=np.float32)
    means = np.stack([inputs[slots.names == name].mean(0) for name in sorted(set(slots.names))])
    constant = np.linalg.qr(means.T)[0]
    found = np.stack(rows)
    kept: Floats = (found - (found @ constant) @ constant.T).astype(np.float32)
    return kept


def _of_slot(inputs: Floats, shares: Floats) -> Floats:
    """(A_SLOT, in), those that tell most first; fewer where the shares hardly differ, none where the inputs do not: at
    the bottom of a model a slot's token is all that there is."""
    centred = inputs - inputs.mean(0)
    square = float((centred**2).sum(1).mean())
    if square <= ALIKE * float((inputs**2).sum(1).mean()):
        return np.zeros((0, inputs.shape[1]), dtype=np.float32)
    ridge = stats_library("sklearn.linear_model").RidgeCV
    model = ridge(alphas=[s * square for s in STRENGTHS], fit_intercept=False).fit(centred, shares - shares.mean(0))
    weights = np.atleast_2d(model.coef_).astype(np.float32)  # (L, in)
    _, strengths, axes = np.linalg.svd(centred @ weights.T, full_matrices=False)
    rows = axes[:A_SLOT][strengths[:A_SLOT] > 1e-6] @ weights
    along = (centred @ rows.T).std(0)
    found: Floats = rows / along[:, None]
    return found


def _adapted(model: Any) -> Iterator[tuple[str, Any]]:
    """Linear modules with a LoRA beside them."""
    for name, module in model.named_modules():
        if getattr(module, "lora_A", None) and not getattr(module, "parameter_name", None):
            yield name, module
