"""What of a base is loaded, what of it is adapted, and what never is."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from gemma4_checkpoint import gemma4_checkpoint
from real_models import smollm2
from safetensors.torch import load_file, save_file

from aipsy_judge.errors import InputError, WeightsError
from training.backbone import backbone, hidden_states, logits_of
from training.collate import collate
from training.dequantised import dequantised
from training.lora import adapt, adapted_weights, lines, without_gradient
from training.model import load_base
from training.recipe import Lora
from training.rows import RowTree, Target

pytestmark = pytest.mark.slow
CPU = torch.device("cpu")


def loaded(folder: Path) -> Any:
    return load_base(folder, precision="fp32", device=CPU)


@cache
def _gemma() -> Any:
    return loaded(gemma4_checkpoint())


def gemma() -> Any:
    """The test's own to change; read and checked once."""
    return copy.deepcopy(_gemma())


def llama() -> Any:
    return loaded(dequantised(smollm2()))


def copied(folder: Path, change: Callable[[dict[str, torch.Tensor]], None]) -> Path:
    """The tiny checkpoint with its second shard changed."""
    shutil.copytree(gemma4_checkpoint(), folder, dirs_exist_ok=True)
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    shard = folder / index["weight_map"]["model.language_model.layers.0.router.scale"]
    tensors = load_file(shard)
    change(tensors)
    shard.unlink()
    save_file(tensors, shard, metadata={"format": "pt"})
    return folder


def test_the_text_part_of_the_published_layout_is_loaded_with_its_own_weights() -> None:
    """Not with random ones, which is what transformers does without being told of the other names."""
    model = gemma()
    files = [load_file(f) for f in sorted(gemma4_checkpoint().glob("*.safetensors"))]
    stored = {k.replace("model.language_model.", "model."): v for f in files for k, v in f.items()}
    own = {k: v for k, v in model.state_dict().items() if k != "lm_head.weight"}
    assert len(own) > 100
    for name, tensor in own.items():
        torch.testing.assert_close(tensor, stored[name].float(), rtol=0, atol=0)
    assert not any("vision" in name for name in own)
    assert not any(p.requires_grad for p in model.parameters())


def test_a_tensor_that_is_missing_or_unknown_is_an_error_that_names_it(tmp_path: Path) -> None:
    name = "model.language_model.layers.3.mlp.up_proj.weight"

    def rename(tensors: dict[str, torch.Tensor]) -> None:
        tensors[name + "_other"] = tensors.pop(name)

    folder = copied(tmp_path / "base", rename)
    index = folder / "model.safetensors.index.json"
    index.write_text(index.read_text().replace(f'"{name}"', f'"{name}_other"'))
    with pytest.raises(WeightsError, match=r"1 tensors are missing, the first: model\.layers\.3\.mlp\.up_proj"):
        loaded(folder)


def test_pickled_weights_are_not_read(tmp_path: Path) -> None:
    shutil.copytree(gemma4_checkpoint(), tmp_path / "base")
    for shard in (tmp_path / "base").glob("*.safetensors*"):
        shard.unlink()
    torch.save({}, tmp_path / "base" / "pytorch_model.bin")
    with pytest.raises(WeightsError, match="cannot be loaded"):
        loaded(tmp_path / "base")


def test_attention_and_dense_mlp_are_adapted_and_their_shares_are_said() -> None:
    model = adapt(gemma(), Lora(), 1)
    rows = {row.name.rpartition(".")[2]: row for row in adapted_weights(model)}
    assert set(rows) == {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}
    assert rows["v_proj"].count == 5  # in the full layer keys serve as values
    assert rows["q_proj"].count == 6
    trainable = [name for name, p in model.named_parameters() if p.requires_grad]
    assert sum(r.trained for r in rows.values()) == model.get_nb_trainable_parameters()[0]
    assert not any(word in name for name in trainable for word in ("router", "experts", "vision", "head", "embed"))
    assert "routed experts stay frozen" in lines(model)[-1]


def test_experts_are_adapted_when_asked_each_with_its_own_rank_at_the_common_scale() -> None:
    model = adapt(gemma(), Lora(experts=True, rank=8, alpha=16, expert_rank=2), 1)
    rows = {row.name: row for row in adapted_weights(model)}
    experts = [row for name, row in rows.items() if ".experts." in name]
    assert [r.count for r in experts] == [6, 6]
    # rank 2 for each of 8 experts: A (16, in) and B (out, 16), over 6 layers
    wanted = {"gate_up_proj": 6 * 16 * (96 + 96), "down_proj": 6 * 16 * (48 + 96)}
    assert {r.name.rpartition(".")[2]: r.trained for r in experts} == wanted
    scales = {s for m in model.modules() if hasattr(m, "lora_A") for s in m.scaling.values()}
    assert scales == {2.0}


@pytest.mark.parametrize(
    ("modules", "message"),
    [
        (r".*\.no_such_proj", "no module of the base matches"),
        ("q_proj", "no module of the base matches"),  # a name is a pattern for the whole name
        (r".*router\.proj", "the router stays frozen"),
        (r".*(q_proj|router\.proj)", "the router stays frozen"),
        ("lm_head", "the head stays frozen"),
        (r".*experts\.gate_up_proj", "no module of the base matches"),
    ],
)
def test_a_name_that_matches_nothing_or_what_stays_frozen_is_an_error(modules: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        adapt(gemma(), Lora(modules=modules), 1)


def test_experts_asked_of_a_model_without_any_are_an_error() -> None:
    with pytest.raises(InputError, match="no stacked experts"):
        adapt(llama(), Lora(experts=True), 1)


def test_the_same_seed_begins_the_same_and_leaves_the_callers_draws_alone() -> None:
    first, before = adapt(gemma(), Lora(), 7), torch.random.get_rng_state()
    second, other = adapt(gemma(), Lora(), 7), adapt(gemma(), Lora(), 8)
    assert torch.equal(before, torch.random.get_rng_state())
    name = next(n for n, p in first.named_parameters() if "lora_A" in n)
    weights = [dict(m.named_parameters())[name] for m in (first, second, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


@pytest.mark.parametrize("experts", [False, True])
def test_every_weight_that_is_to_learn_gets_a_gradient(experts: bool) -> None:
    model = adapt(gemma(), Lora(experts=experts), 1)
    assert without_gradient(model)
    tree = RowTree()
    end = tree.grow(-1, list(range(300, 420)))
    batch = collate([tree.row("a", [Target(end, (236771,), (1.0,), 1.0, "slot:x")])], 0)
    found = backbone(model)
    logits_of(found, batch.predicting(hidden_states(model, batch))).logsumexp(1).sum().backward()
    assert without_gradient(model) == []


@pytest.mark.parametrize("load", [gemma, llama])
def test_branches_of_a_row_see_the_prompt_and_themselves_alone(load: Callable[[], Any]) -> None:
    """Each branch's state is what it is when the branch follows the prompt alone, beyond the sliding window too."""
    model = load()
    tree = RowTree()
    trunk = tree.grow(-1, list(range(1000, 1100)))
    ends = [tree.grow(trunk, b) for b in ([2000, 2001, 2002], [2000, 2003], [2004] * 70)]
    whole = tree.row("whole", ())
    found = backbone(model)
    with torch.no_grad():
        states = hidden_states(model, collate([whole], 0))[0]
        for end in ends:
            path = whole.path(end)
            alone = found.inner(input_ids=torch.tensor([[whole.tokens[i] for i in path]])).last_hidden_state[0]
            torch.testing.assert_close(
                logits_of(found, states[list(path)]), logits_of(found, alone), atol=2e-3, rtol=1e-3
            )
