"""Sizes of a model from its config.json alone, and how many parameters each part of it has. No torch."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aipsy_judge.errors import WeightsError
from aipsy_judge.gguf_header import read_gguf_header

_MOST_LAYERS = 10_000  # far beyond any model; a number that is none ends here, not in the memory
FULL, SLIDING = "full_attention", "sliding_attention"


@dataclass(frozen=True)
class Layer:
    """One decoder layer's attention: query entries (heads x size), key entries, and if values are projected."""

    query: int
    key: int
    own_values: bool
    head: int
    sliding: bool

    @property
    def heads(self) -> int:
        """Query heads."""
        return self.query // self.head


@dataclass(frozen=True)
class Sizes:
    """What memory depends on. `experts` 0 is a dense model; `vision` counts the parameters of the other tower."""

    kind: str
    hidden: int
    layers: tuple[Layer, ...]
    inner: int
    vocabulary: int
    tied: bool
    experts: int
    chosen: int
    expert_inner: int
    vision: int

    @property
    def parameters(self) -> dict[str, int]:
        """Parameters by part; their sum is the whole model, the tied head counted once."""
        gemma = self.kind == "gemma4"
        norms = (7 if self.experts else 4) if gemma else 2
        heads = sum(layer.head * 2 for layer in self.layers) if gemma else 0
        router = self.experts * self.hidden + self.hidden + self.experts if self.experts else 0
        return {
            "experts": len(self.layers) * self.experts * 3 * self.hidden * self.expert_inner,
            "attention": sum(sum(i * o for i, o in self.attention(layer).values()) for layer in self.layers),
            "dense MLP": len(self.layers) * sum(i * o for i, o in self.mlp.values()),
            "embedding": self.vocabulary * self.hidden * (1 if self.tied else 2),
            "router and norms": len(self.layers) * (norms * self.hidden + router) + heads + self.hidden,
            "vision": self.vision,
        }

    def attention(self, layer: Layer) -> dict[str, tuple[int, int]]:
        """(inputs, outputs) of a layer's projections."""
        found = {"q_proj": (self.hidden, layer.query), "k_proj": (self.hidden, layer.key)}
        if layer.own_values:
            found["v_proj"] = (self.hidden, layer.key)
        return found | {"o_proj": (layer.query, self.hidden)}

    @property
    def mlp(self) -> dict[str, tuple[int, int]]:
        """(inputs, outputs) of the dense MLP's projections."""
        return {
            "gate_proj": (self.hidden, self.inner),
            "up_proj": (self.hidden, self.inner),
            "down_proj": (self.inner, self.hidden),
        }


def read_sizes(path: Path) -> Sizes:
    """Sizes from a config.json. WeightsError for what is no config or of a kind whose sizes are not known."""
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise WeightsError("there is no such config.json", where=str(path)) from None
    except ValueError as error:
        raise WeightsError(f"not JSON: {error}", where=str(path)) from error
    kind = config.get("model_type") if isinstance(config, dict) else None
    try:
        if kind in ("gemma4", "gemma4_text"):
            return _sound(_gemma(config.get("text_config") or config, config.get("vision_config")))
        if kind == "llama":
            return _sound(_llama(config))
    except KeyError as error:
        raise WeightsError(f"the config has no {error.args[0]!r}", where=str(path)) from error
    except (TypeError, ValueError, AttributeError, ZeroDivisionError) as error:
        raise WeightsError(f"the config's sizes cannot be used: {error}", where=str(path)) from error
    raise WeightsError(f"memory is predicted for gemma4 and llama, not for {kind!r}", where=str(path))


def read_gguf_sizes(path: Path) -> Sizes:
    """Sizes of the checkpoint that a GGUF file would be dequantised to; llama's architecture alone."""
    header = read_gguf_header(path)
    found = header.metadata
    kind = found.get("general.architecture")
    if kind != "llama":
        raise WeightsError(
            f"memory is predicted for GGUF files of llama's architecture, not of {kind!r}", where=str(path)
        )
    names = {
        "hidden_size": "embedding_length",
        "num_attention_heads": "attention.head_count",
        "num_key_value_heads": "attention.head_count_kv",
        "num_hidden_layers": "block_count",
        "intermediate_size": "feed_forward_length",
    }
    config = {ours: found[f"llama.{theirs}"] for ours, theirs in names.items()}
    tied = "output.weight" not in header.shapes()
    return _llama(config | {"vocab_size": header.lengths["tokenizer.ggml.tokens"], "tie_word_embeddings": tied})


def _sound(sizes: Sizes) -> Sizes:
    """A size that is no whole number from 1 would make a prediction that looks like one. ValueError then."""
    told = {"hidden_size": sizes.hidden, "intermediate_size": sizes.inner, "vocab_size": sizes.vocabulary}
    if sizes.experts:
        told |= {"num_experts": sizes.experts, "top_k_experts": sizes.chosen}
        told |= {"moe_intermediate_size": sizes.expert_inner}
    for layer in sizes.layers:
        told |= {"attention heads": layer.query, "key heads": layer.key, "head_dim": layer.head}
        for name, value in told.items():
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} gives {value!r}, not a whole number from 1")
    return sizes


def _layer_count(config: dict[str, Any]) -> int:
    count = config["num_hidden_layers"]
    if not isinstance(count, int) or not 1 <= count <= _MOST_LAYERS:
        raise ValueError(f"num_hidden_layers is {count!r}, not a whole number from 1 to {_MOST_LAYERS}")
    return count


def _gemma(text: dict[str, Any], vision: dict[str, Any] | None) -> Sizes:
    _no_more_than_known(text)
    count = _layer_count(text)
    kinds = text.get("layer_types") or [SLIDING if (i + 1) % 6 else FULL for i in range(count)]
    if len(kinds) != count:
        raise ValueError(f"layer_types names {len(kinds)} layers, num_hidden_layers {count}")
    return Sizes(
        kind="gemma4",
        hidden=text["hidden_size"],
        layers=tuple(_gemma_layer(text, kind, i) for i, kind in enumerate(kinds)),
        inner=text["intermediate_size"],
        vocabulary=text["vocab_size"],
        tied=text.get("tie_word_embeddings", True),
        experts=text["num_experts"] if text.get("enable_moe_block") else 0,
        chosen=text["top_k_experts"] if text.get("enable_moe_block") else 0,
        expert_inner=text["moe_intermediate_size"] if text.get("enable_moe_block") else 0,
        vision=_vision(vision, text["hidden_size"]) if vision else 0,
    )


def _no_more_than_known(text: dict[str, Any]) -> None:
    """Per-layer embeddings and shared keys are other models of the family, with parts that are not counted here."""
    for key, plain in (("hidden_size_per_layer_input", 256), ("num_kv_shared_layers", 0)):
        if text.get(key, plain):
            raise WeightsError(f"a Gemma 4 with {key} {text.get(key, plain)} is not one whose memory is predicted here")


def _gemma_layer(text: dict[str, Any], kind: str, index: int) -> Layer:
    own = (text.get("per_layer_config") or {}).get(str(index), {})  # how transformers writes the two keys back
    sliding = kind == SLIDING
    shared = bool(text.get("attention_k_eq_v")) and not sliding
    head, keys = text["head_dim"], text["num_key_value_heads"]
    if not sliding:
        head = own.get("head_dim") or text.get("global_head_dim", 512)
        if shared:
            keys = own.get("num_key_value_heads") or text.get("num_global_key_value_heads") or keys
    return Layer(text["num_attention_heads"] * head, keys * head, not shared, head, sliding)


def _vision(vision: dict[str, Any], hidden: int) -> int:
    """Parameters of the vision tower and its projection into the text model."""
    width, inner = vision["hidden_size"], vision["intermediate_size"]
    head = vision["head_dim"]
    queries, keys = vision["num_attention_heads"] * head, vision["num_key_value_heads"] * head
    layer = 2 * width * (queries + keys) + 3 * width * inner + 4 * width + 2 * head
    patches = 2 * vision["position_embedding_size"] * width + 3 * vision["patch_size"] ** 2 * width
    return int(vision["num_hidden_layers"] * layer + patches + hidden * width)


def _llama(config: dict[str, Any]) -> Sizes:
    heads = config["num_attention_heads"]
    head = config.get("head_dim") or config["hidden_size"] // heads
    layer = Layer(heads * head, config.get("num_key_value_heads", heads) * head, True, head, False)
    return Sizes(
        kind="llama",
        hidden=config["hidden_size"],
        layers=(layer,) * _layer_count(config),
        inner=config["intermediate_size"],
        vocabulary=config["vocab_size"],
        tied=config.get("tie_word_embeddings", False),
        experts=0,
        chosen=0,
        expert_inner=0,
        vision=0,
    )
