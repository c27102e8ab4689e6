"""What `doctor` does: ask the machine, weigh the known judges, estimate a file, replay golden turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from ..backends.mlx_library import mlx_versions
from ..backends.server_name import parse_server_name
from ..backends.slot_window import slot_window
from ..backends.trap import honours_schema
from ..errors import EXIT_JUDGE, EXIT_OK, InputError
from ..forecast import Forecast, forecast
from ..golden import Replayed, load_golden, replay
from ..judge_folder import judge_folder, judge_places
from ..known_judges import fit, installed_at, known_judges
from ..local_judge import LocalJudge
from ..machine import GIB, LlamaBuild, Machine, llama_build, this_machine
from ..manifest import MANIFEST
from ..report.visible import visible
from ..served_judge import ServedJudge
from ..weights import find_weights
from .inputs import check_inputs, stdin_read_again
from .json_output import write_json
from .judge_options import JudgeChoice

# Weights up to this size are probed without being asked: loading and a few turns take seconds.
SMALL_BYTES = 2 * 10**9

Say = Callable[[str], None]


def examine(files: Sequence[str], choice: JudgeChoice, probe: bool | None, json_file: str | None) -> None:
    """Machine, judges and, with `files`, what judging them will take."""
    say = _speaker(json_file)
    machine, build = this_machine(), llama_build()
    for line in (*machine_words(machine, build), *mlx_words(machine, mlx_versions())):
        say(line)
    say("judges:")
    judges = list(_judges(machine))
    for found in judges:
        here = "installed" if found["installed"] else "not installed"
        say(f"  {found['name']}: {here}; {found['fit']}: {found['why']}")
    data: dict[str, Any] = {
        "machine": asdict(machine),
        "llama_cpp": asdict(build) if build is not None else None,
        "mlx": mlx_versions(),
        "judges": judges,
    }
    if choice.judge is not None and choice.judge.split(":", 1)[0].lower() in ("openai", "ollama"):
        data["server"] = examine_server(choice, say)
    if files:
        data["forecast"] = _examine_files(files, choice, probe, say)
    write_json(json_file, data)


def examine_server(choice: JudgeChoice, say: Say) -> dict[str, Any]:
    """What the server named by --judge really does. No text of a transcript is sent to it."""
    server = parse_server_name(choice.judge or "")
    window = slot_window(server) if server.kind == "openai" else None
    with choice.open() as judge:
        assert isinstance(judge, ServedJudge)
        constrained = honours_schema(judge.backend)
    say(f"server: {visible(server.text)}")
    if constrained:
        say("  holds its model to a JSON schema")
    else:
        say("  does NOT hold its model to a JSON schema: replies are validated, and more of them will be unscored")
    if window is not None:
        say(f"  one request may have {window.tokens} tokens, prompt and answer ({window.slots} slots)")
    return {"name": server.text, "constrained": constrained, "window": asdict(window) if window is not None else None}


def machine_words(machine: Machine, build: LlamaBuild | None) -> Iterator[str]:
    """The machine in lines, with what to do where the build of llama.cpp leaves a GPU idle."""
    free = f", {machine.free_bytes / GIB:.1f} free" if machine.free_bytes is not None else ""
    yield f"machine: {machine.system}, {machine.processor}, {machine.processors} processors"
    yield f"memory: {machine.memory_bytes / GIB:.1f} GiB{free}"
    for gpu in machine.gpus:
        own = f", {gpu.memory_bytes / GIB:.0f} GiB" if gpu.memory_bytes is not None else ", shared memory"
        yield f"gpu: {gpu.name}{own}"
    if not machine.gpus:
        yield "gpu: none found"
    if build is None:
        yield "llama.cpp: not installed, or it does not load; only judges on servers can be used"
        return
    yield f"llama.cpp: llama-cpp-python {build.version}, computes on {', '.join(build.backends) or 'unknown'}"
    yield f"  processor features: {', '.join(build.features) or 'unknown'}"
    if machine.gpus and not build.gpu_offload:
        flag = "GGML_METAL" if machine.is_apple_silicon else "GGML_CUDA"
        yield "  this build leaves the GPU idle; to use it:"
        yield f"  CMAKE_ARGS=-D{flag}=on pip install --force-reinstall --no-cache-dir llama-cpp-python"


def mlx_words(machine: Machine, versions: str | None) -> Iterator[str]:
    """The installed MLX; on a Mac without it, how to get it. Elsewhere it is no loss."""
    if versions is not None:
        where = "the Mac's GPU" if machine.is_apple_silicon else "the processor, slowly"
        yield f"mlx: {versions}, computes on {where}; runs folders of safetensors"
    elif machine.is_apple_silicon:
        yield "mlx: not installed; it runs folders of safetensors: pip install 'aipsy-judge[mlx]'"


def prove_judge(name: str, choice: JudgeChoice, json_file: str | None) -> int:
    """Replay golden turns; EXIT_OK where every slot is within its tolerance, EXIT_JUDGE where one is not."""
    say = _speaker(json_file)
    manifest = find_golden(name)
    turns = load_golden(manifest)
    with replace(choice, judge=name).open() as judge:
        say(f"judge {judge.lane.judge}, {len(turns)} golden turns from {manifest}")
        found = replay(judge, turns)
        lane = judge.lane.to_dict()
    proven = all(r.ok for r in found)
    for item in found:
        if not item.ok:
            say(f"  turn {item.item}, {item.name}: {_difference_words(item)}")
    worst = max((r.difference for r in found if r.difference is not None), default=None)
    said = f"largest difference of a probability {worst:.4f}" if worst is not None else "nothing could be compared"
    say(f"{'proven' if proven else 'NOT proven'}: {sum(r.ok for r in found)} of {len(found)} slots the same; {said}")
    rows = [{**asdict(r), "ok": r.ok} for r in found]
    write_json(json_file, {"lane": lane, "manifest": str(manifest), "proven": proven, "slots": rows})
    return EXIT_OK if proven else EXIT_JUDGE


def find_golden(name: str) -> Path:
    """The file with a judge's golden turns: its manifest, or what is shipped for a judge without one. InputError."""
    folder = judge_folder(name)
    if folder is not None:
        return folder / MANIFEST
    shipped = Path(__file__).parents[1] / "data" / "golden" / f"{name}.yaml"
    if any(judge_places(name)) and shipped.is_file():
        return shipped
    places = ", ".join(str(p / MANIFEST) for p in judge_places(name)) or str(Path(name) / MANIFEST)
    raise InputError(
        f"no manifest of the judge {name!r} is here, so there is nothing to prove this machine by",
        hint=f"Looked for {places}, and in the package.",
    )


def _difference_words(item: Replayed) -> str:
    if item.difference is None:
        return "no probabilities over the same options: another rubric, contract or kind of judge"
    return f"differs by {item.difference:.4f}, tolerance {item.tolerance:g}"


def _judges(machine: Machine) -> Iterator[dict[str, Any]]:
    for judge in known_judges():
        found = fit(judge, machine)
        yield {
            "name": judge.name,
            "installed": installed_at(judge) is not None,
            "fit": found.word,
            "why": found.why,
        }


def _examine_files(files: Sequence[str], choice: JudgeChoice, probe: bool | None, say: Say) -> dict[str, Any]:
    with stdin_read_again(files):
        inputs = check_inputs(files, choice.load_rubric())
        say(f"input: {inputs.conversations} conversations, {inputs.units} to judge")
        with choice.open() as judge:
            say(visible(f"judge: {judge.lane.judge}"))
            data: dict[str, Any] = {"lane": judge.lane.to_dict(), "units": inputs.units}
            if not isinstance(judge, LocalJudge):
                say("  it does not run in this process: time and memory are not estimated, nothing was sent")
                return {**data, "conversations": inputs.conversations}
            small = find_weights(choice.judge, unblessed=choice.unblessed).size_bytes <= SMALL_BYTES
            probe = small if probe is None else probe
            found = forecast(judge, inputs.read(), inputs.conversations, probe=probe)
    for line in forecast_words(found, inputs.units):
        say(f"  {line}")
    return {**data, **asdict(found)}


def forecast_words(found: Forecast, units: int) -> Iterator[str]:
    """An estimate in lines, and on what it rests."""
    if found.counted < found.conversations:
        yield f"counted on the first {found.counted} of {found.conversations} conversations"
    yield f"about {found.tokens} tokens to evaluate"
    cache = f"{found.cache_bytes / GIB:.2f} GiB for the cache of the longest conversation"
    if found.memory_bytes is None:
        yield f"{cache}, beside the weights"
    else:
        yield f"about {found.memory_bytes / GIB:.1f} GiB of memory, of it {cache}"
    if found.too_long:
        yield f"{found.too_long} conversations do not fit the cache allowed: more with --memory-gb"
    if found.seconds is None:
        yield "no probe was made, so no time is given (--probe makes one)"
    elif found.seconds_to_start is not None:
        a_turn = (found.seconds - found.seconds_to_start) / units
        start = _duration(found.seconds_to_start)
        yield f"about {_duration(found.seconds)} in all: {start} to start, then {a_turn:.1f} s each"
        yield "an estimate from a short probe, without rationales; other work on this machine changes it"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _speaker(json_file: str | None) -> Say:
    def say(line: str) -> None:
        click.echo(line, err=json_file == "-")

    return say
