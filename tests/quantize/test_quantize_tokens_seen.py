"""What a model's tokenizer makes of prompts and texts."""

from __future__ import annotations

import pytest
from toy_model import ToyModel

from quantize.tokens_seen import HARD_TEXTS, begins_once, look


class Beginning(ToyModel):
    """Wants a begin token or not; its text stands in the template or not."""

    def __init__(self, wants: bool, bos: str = "<|start|>", written: bool = True) -> None:
        super().__init__()
        self.special_tokens = {"bos_token": bos, "eos_token": "<|end|>"}
        self.begin_token = self.tokenize("<|start|>", special=True)[0] if wants else None
        self.chat_template = ToyModel.chat_template if written else "{{ messages }}"


@pytest.mark.parametrize(
    ("model", "prompt", "right"),
    [
        (Beginning(wants=True), "<|start|>user", True),
        (Beginning(wants=True), "<|start|>user<|end|><|start|>model", True),
        (Beginning(wants=True), "<|start|><|start|>user", False),
        (Beginning(wants=True), "user", False),
        (Beginning(wants=False), "<|start|>user", True),  # the template writes it
        (Beginning(wants=False), "user", False),
        (Beginning(wants=False, written=False), "user", True),
        (Beginning(wants=False, written=False), "<|start|><|start|>user", False),
        (Beginning(wants=False, bos=""), "user", True),
    ],
)
def test_a_prompt_begins_with_the_begin_token_exactly_once(model, prompt, right):
    assert begins_once(model, model.tokenize(prompt, special=True)) is right


def test_texts_are_spelled_by_their_tokens_and_one_that_is_not_is_counted():
    assert look(ToyModel(), HARD_TEXTS, []).not_round_trip == 0

    class Lossy(ToyModel):
        def tokenize(self, text, *, special):
            return super().tokenize(text.replace("  ", " "), special=special)

    assert look(Lossy(), HARD_TEXTS, []).not_round_trip == 1
