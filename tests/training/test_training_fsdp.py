"""Sharded over two processes the model trains as in one; the committed configuration is what accelerate reads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from gemma4_small import small_model

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "recipes" / "fsdp2.yaml"


def _trained(folder: Path, processes: int) -> dict[str, Any]:
    program = [sys.executable, "-W", "ignore", "tests/training/sharded_training.py", str(folder / f"store{processes}")]
    out = folder / f"{processes}.pt"
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    running = [
        subprocess.Popen(
            [*program, str(rank), str(processes), str(out)],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(processes)
    ]
    for process in running:
        _, said = process.communicate(timeout=300)
        assert process.returncode == 0, said[-3000:]
    found: dict[str, Any] = torch.load(out, weights_only=True)
    return found


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return _trained(tmp_path_factory.mktemp("alone"), 1)


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return _trained(tmp_path_factory.mktemp("together"), 2)


@pytest.mark.slow
def test_every_parameter_is_sharded_over_both_processes(together: dict[str, Any], alone: dict[str, Any]) -> None:
    assert not any(sharded for sharded, _, _ in alone["parameters"].values())
    assert all(sharded for sharded, _, _ in together["parameters"].values())
    here = sum(local for _, local, _ in together["parameters"].values())
    whole = sum(full for _, _, full in together["parameters"].values())
    assert whole == sum(full for _, _, full in alone["parameters"].values())
    assert 0.49 < here / whole < 0.52  # a vector of odd length gives one of the two an entry more


@pytest.mark.slow
def test_losses_and_the_adapter_are_those_of_one_process(together: dict[str, Any], alone: dict[str, Any]) -> None:
    assert alone["losses"][0] > alone["losses"][-1] + 0.1  # something is learnt, so equality says something
    assert together["losses"] == pytest.approx(alone["losses"], rel=1e-4)
    assert together["adapter"].keys() == alone["adapter"].keys()
    for name, weight in alone["adapter"].items():
        assert (together["adapter"][name] - weight).norm() < 1e-3 * weight.norm(), name


def test_the_configuration_is_one_that_accelerate_reads() -> None:
    from accelerate.commands.config.config_args import ClusterConfig, load_config_from_file
    from accelerate.commands.launch import launch_command_parser

    config = load_config_from_file(str(CONFIG))
    assert isinstance(config, ClusterConfig)
    known = {action.dest for action in launch_command_parser()._actions}
    assert set(config.fsdp_config) <= known
    assert config.fsdp_config["fsdp_version"] == 2
    assert config.fsdp_config["fsdp_activation_checkpointing"] is False


def test_the_layer_that_is_wrapped_is_what_the_model_is_made_of() -> None:
    name = yaml.safe_load(CONFIG.read_text())["fsdp_config"]["fsdp_transformer_layer_cls_to_wrap"]
    layers = [m for m in small_model().modules() if type(m).__name__ == name]
    assert len(layers) == 6


def test_the_configuration_says_that_no_gpu_has_run_it() -> None:
    assert "UNPROVEN" in CONFIG.read_text()
