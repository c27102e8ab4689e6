"""What a recipe needs of memory, by part, before anything is loaded: python -m training.memory RECIPE

Worked out from the recipe and the base's config.json alone; loads neither weights nor torch.
"""

from __future__ import annotations

import json
from pathlib import Path

import click

from aipsy_judge.errors import InputError

from .base_folder import checkpoint_folder
from .memory_advice import Advice, as_data, to_save, with_room
from .memory_parts import Part, Prediction, predict, total
from .model_sizes import Sizes, read_gguf_sizes, read_sizes
from .program import recipe_program
from .recipe import Recipe

SHIPPED = {"gemma-4-26b-a4b": Path(__file__).parent / "data" / "gemma-4-26b-a4b.config.json"}
EXIT_DOES_NOT_FIT = 1


@recipe_program
def main(recipe: Recipe, out: Path, as_json: bool) -> None:
    """Say what RECIPE needs of memory, by part, whether it fits memory.device_gb and memory.host_gb, and which
    setting would help by how much. Ends with 1 where it does not fit.

    The figures are arithmetic from the recipe and the base's config.json, for the longest row that the recipe allows.
    On CPUs they were held against PyTorch's allocator: weights to the byte, activations within 8 %. No card has
    confirmed them; "supposed" marks what no arithmetic gives.
    """
    source, sizes = sizes_of(recipe)
    prediction = predict(recipe, sizes)
    if as_json:
        click.echo(json.dumps(_data(recipe, sizes, source, prediction), indent=2))
    else:
        click.echo("\n".join(_text(recipe, sizes, source, prediction)))
    if not prediction.fits:
        raise SystemExit(EXIT_DOES_NOT_FIT)


main.params.append(click.Option(["--json", "as_json"], is_flag=True, help="The prediction as JSON, in bytes."))


def sizes_of(recipe: Recipe) -> tuple[str, Sizes]:
    """Where the sizes come from, and the sizes: base.config, the base itself, or a config that is shipped here."""
    if recipe.base.config is not None:
        return recipe.base.config, read_sizes(Path(recipe.base.config).expanduser())
    if recipe.base.gguf is not None:
        from .dequantised import gguf_path

        path = gguf_path(recipe.base.gguf)
        return path.name, read_gguf_sizes(path)
    folder = checkpoint_folder(recipe.base)
    if (folder / "config.json").is_file():
        return str(folder / "config.json"), read_sizes(folder / "config.json")
    for name, shipped in SHIPPED.items():
        if folder.name.lower().startswith(name):
            return f"the shipped config of {name} ({folder} is not here)", read_sizes(shipped)
    raise InputError(
        "there is no config.json, so nothing is known of the model's sizes",
        where=str(folder),
        hint="Fetch the checkpoint, or name a config.json: --set base.config=FILE.",
    )


def _text(recipe: Recipe, sizes: Sizes, source: str, prediction: Prediction) -> list[str]:
    rows = f"{recipe.train.batch} x {recipe.render.max_tokens:,} tokens"
    lines = [f"{recipe.name}: {rows}, base in {recipe.memory.base_bits} bits; sizes from {source}", ""]
    lines += _table("on the device at the peak", on_device(prediction), prediction.peak, prediction.device_budget)
    lines += _otherwise(prediction)
    lines += ["", *_table("in the machine's memory", prediction.host, prediction.on_host, prediction.host_budget)]
    lines += [*_kept_states(recipe), ""]
    if prediction.fits:
        lines.append(f"Fits{_staging(prediction)}. With room for, each alone:")
        lines += _advised(with_room(recipe, sizes), sign=1) or ["  nothing more of what is asked here"]
        lines.append("What would take less:")
        return lines + _advised(to_save(recipe, sizes), sign=-1)
    lines.append(f"Does not fit: {prediction.missing / 1e9:.2f} GB too much{_staging(prediction)}. What would help:")
    return lines + _advised(to_save(recipe, sizes), sign=-1)


def _table(title: str, parts: tuple[Part, ...], total: int, budget: int) -> list[str]:
    lines = [f"GB     {title}"]
    lines += [f"{part.bytes / 1e9:6.2f} {part.name:26} {part.how}" for part in parts]
    return [*lines, f"{total / 1e9:6.2f} of {budget / 1e9:.2f}"]


def on_device(prediction: Prediction) -> tuple[Part, ...]:
    """What is on the device at the peak, whether that is a training step or the judging of the validation part."""
    return prediction.resident + max(prediction.training, prediction.judging, key=total)


def _otherwise(prediction: Prediction) -> list[str]:
    trains = total(prediction.training) >= total(prediction.judging)
    other = prediction.judging if trains else prediction.training
    if not other:
        return []
    when = "judging the validation part" if trains else "a training step"
    parts = ", ".join(f"{part.name} {part.bytes / 1e9:.2f}" for part in other)
    return [f"       ({when} has instead of the last lines: {parts})"]


def _kept_states(recipe: Recipe) -> list[str]:
    """How many tokens the rows will have is not known before they are made."""
    if not recipe.train.keep_trunk:
        return []
    most = recipe.memory.host_gb / 2
    return [f"       (train.keep_trunk holds the rows' states besides, at most {most:.2f}: told when training begins)"]


def _staging(prediction: Prediction) -> str:
    return f", with the experts of {prediction.staged} layers in the machine's memory" if prediction.staged else ""


def _advised(advices: list[Advice], sign: int) -> list[str]:
    return [
        f"  {a.setting}: {str(a.value).lower()}".ljust(42)
        + f"{sign * a.bytes / 1e9:6.2f} GB {'more' if sign > 0 else 'less'}; {_standing(a.then)}"
        for a in advices
    ]


def _standing(then: Prediction) -> str:
    if not then.fits:
        return f"still {then.missing / 1e9:.2f} GB too much"
    return f"fits{_staging(then)}"


def _data(recipe: Recipe, sizes: Sizes, source: str, prediction: Prediction) -> dict[str, object]:
    return {
        "recipe": recipe.name,
        "sizes_from": source,
        "fits": prediction.fits,
        "device": {part.name: part.bytes for part in on_device(prediction)},
        "judging": {part.name: part.bytes for part in prediction.judging},
        "device_peak": prediction.peak,
        "device_budget": prediction.device_budget,
        "host": {part.name: part.bytes for part in prediction.host},
        "host_budget": prediction.host_budget,
        "layers_on_host": prediction.staged,
        "to_save": list(as_data(to_save(recipe, sizes))),
        "with_room": list(as_data(with_room(recipe, sizes))) if prediction.fits else [],
    }


if __name__ == "__main__":
    main()
