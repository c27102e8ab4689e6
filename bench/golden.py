"""Make golden turns again, after the prompt or the rubric changed on purpose: `python -m bench.golden FILE.yaml`.

FILE.yaml is rewritten: its conversations stay, what is read at their slots on this machine is new. Its name is that of
the judge. `--json FILE` also writes how far the probabilities moved.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import yaml

from aipsy_judge import open_judge
from aipsy_judge.atomic import write_text
from aipsy_judge.golden import golden_turns, load_golden, replay
from aipsy_judge.machine import llama_build, this_machine
from aipsy_judge.strict_json import dumps

HEAD = """\
# Golden turns of {name}: what was read at every slot on the machine named below. `aipsy-judge doctor --prove {name}`
# judges them again and compares. tolerance: the largest difference of one probability that counts as the same; other
# processors and GPUs round otherwise.
#
# made by `python -m bench.golden` on {machine}
"""


@click.command()
@click.argument("file", type=click.Path(exists=True, path_type=Path))
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write the figures here too.")
def main(file: Path, json_file: Path | None) -> None:
    """Make the golden turns in FILE again on this machine."""
    old = load_golden(file)
    with open_judge(file.stem) as judge:
        moved = [r.difference for r in replay(judge, old) if r.difference is not None]
        made: list[dict[str, Any]] = []
        for messages in _conversations(old):
            made += golden_turns(judge, messages, tolerance=old[0].tolerance)
        lane = judge.lane
    machine = f"{_machine()}; rubric {lane.rubric[:12]}, contract {lane.contract}"
    body = yaml.safe_dump({"golden_turns": made}, sort_keys=False, allow_unicode=True, width=110)
    write_text(file, HEAD.format(name=file.stem, machine=machine) + body)
    figures = {"slots": sum(len(t["readings"]) for t in made), "largest_move": max(moved, default=None)}
    click.echo(f"{figures['slots']} slots; largest move of a probability {figures['largest_move']}")
    if json_file is not None:
        write_text(json_file, dumps(figures) + "\n")


def _conversations(old: list[Any]) -> list[list[dict[str, str]]]:
    found = [[{"role": m.role, "content": m.content} for m in turn.conversation] for turn in old]
    return [c for n, c in enumerate(found) if c not in found[:n]]


def _machine() -> str:
    machine, build = this_machine(), llama_build()
    library = f"llama-cpp-python {build.version} ({', '.join(build.backends)})" if build is not None else "no llama.cpp"
    return f"{machine.system}, {machine.processor}, {library}"


if __name__ == "__main__":
    main()
