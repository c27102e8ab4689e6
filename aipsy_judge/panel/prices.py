"""Prices, from a small YAML that the user gives; none are built in, for they change.

currency: USD
judges:                      # by the judge's whole name, or by the model's own name
  gpt-5.4-mini: {input: 0.25, output: 2.00}      # per million tokens
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..errors import InputError
from ..strict_yaml import load_yaml
from .member import Member

PER_TOKENS = 1_000_000
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Price(_Model):
    """What a million tokens cost, read and written."""

    input: Amount
    output: Amount

    def of(self, input_tokens: int, output_tokens: int) -> float:
        """The price of so many tokens."""
        return (input_tokens * self.input + output_tokens * self.output) / PER_TOKENS


class Prices(_Model):
    """Prices by judge or model name, all in one currency."""

    currency: Annotated[str, Field(min_length=1, max_length=12)]
    judges: Mapping[str, Price]

    def of(self, member: Member) -> Price | None:
        """The price of a judge: by its whole name, else by its model's; None where none is given."""
        return self.judges.get(member.name) or self.judges.get(member.model)

    def unused(self, members: tuple[Member, ...]) -> list[str]:
        """Names in the file that mean none of these judges."""
        meant = {n for m in members for n in (m.name, m.model)}
        return [name for name in self.judges if name not in meant]


def load_prices(path: str | Path) -> Prices:
    """Prices from a YAML file. Raises InputError with every fault at once."""
    where = str(path)
    hint = "Write `currency: USD` and `judges: {MODEL: {input: 0.25, output: 2.0}}`, per million tokens."
    try:
        data = load_yaml(Path(path).read_text(encoding="utf-8-sig"))
        return Prices.model_validate(data)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the price file cannot be read: {error}", where=where) from error
    except yaml.YAMLError as error:
        raise InputError(f"not valid YAML: {error}", where=where, hint=hint) from error
    except ValidationError as error:
        faults = [f"  {'.'.join(map(str, e['loc'])) or 'prices'}: {e['msg']}" for e in error.errors()]
        raise InputError("not valid prices:\n" + "\n".join(faults), where=where, hint=hint) from error
