"""A Gemma 4 of the true architecture (sliding and full attention, mixture of experts, soft-capped logits) with its
true vocabulary and template, few layers and random weights, written as GGUF.

Random weights understand nothing, but they react to every token; for the questions asked of it (do two ways of
evaluating agree?) that is what counts. The embedding is small beside what the layers add, so that the context, not
the last token, decides. All experts are used: were there a choice, two evaluations of the same tokens in other
batches would now and then choose different ones, and nothing could be compared.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGUFReader, GGUFValueType, GGUFWriter

HIDDEN, LAYERS, HEADS, EXPERTS, USED, FF, FF_EXPERT = 64, 6, 4, 8, 8, 96, 32
HEAD, HEAD_SLIDING, KV, KV_SLIDING, WINDOW, CONTEXT = 32, 16, 1, 2, 256, 16384
SLIDING = [True, True, True, True, True, False]


def write_gemma4_tiny(vocabulary: Path, target: Path, seed: int = 0) -> None:
    reader = GGUFReader(vocabulary)
    writer = GGUFWriter(target, "gemma4")
    for key, field in reader.fields.items():
        if key.startswith("tokenizer."):
            kind = field.types[0]
            inner = field.types[1] if kind == GGUFValueType.ARRAY else None
            writer.add_key_value(key, field.contents(), kind, inner)
    _add_shape(writer)
    rng = np.random.default_rng(seed)
    for name, tensor in _tensors(rng):
        writer.add_tensor(name, tensor.astype(np.float32))
    part = target.with_suffix(".part")
    writer.write_header_to_file(part)
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    part.rename(target)


def _add_shape(writer: GGUFWriter) -> None:
    numbers: dict[str, int] = {
        "block_count": LAYERS,
        "context_length": CONTEXT,
        "embedding_length": HIDDEN,
        "feed_forward_length": FF,
        "attention.head_count": HEADS,
        "expert_count": EXPERTS,
        "expert_used_count": USED,
        "attention.key_length": HEAD,
        "attention.value_length": HEAD,
        "attention.key_length_swa": HEAD_SLIDING,
        "attention.value_length_swa": HEAD_SLIDING,
        "attention.sliding_window": WINDOW,
        "attention.shared_kv_layers": 0,
        "embedding_length_per_layer_input": 0,
        "expert_feed_forward_length": FF_EXPERT,
        "rope.dimension_count": HEAD,
        "rope.dimension_count_swa": HEAD_SLIDING,
    }
    for key, number in numbers.items():
        writer.add_uint32(f"gemma4.{key}", number)
    floats = {
        "rope.freq_base": 1e6,
        "rope.freq_base_swa": 1e4,
        "attention.layer_norm_rms_epsilon": 1e-6,
        "final_logit_softcapping": 30.0,
    }
    for key, value in floats.items():
        writer.add_float32(f"gemma4.{key}", value)
    writer.add_array("gemma4.attention.head_count_kv", [KV_SLIDING if s else KV for s in SLIDING])
    writer.add_array("gemma4.attention.sliding_window_pattern", SLIDING)


def _tensors(rng: np.random.Generator) -> list[tuple[str, Any]]:
    def matrix(*shape: int) -> Any:
        return rng.normal(0.0, shape[-1] ** -0.5, shape)

    def norm(size: int) -> Any:
        return 1.0 + rng.normal(0.0, 0.1, size)

    # llama.cpp scales embeddings by sqrt(hidden) and ties the output to them
    tensors = [("token_embd.weight", rng.normal(0.0, 0.2, (262144, HIDDEN))), ("output_norm.weight", norm(HIDDEN))]
    tensors.append(("rope_freqs.weight", np.ones(HEAD // 2)))
    for layer, sliding in enumerate(SLIDING):
        head, kv = (HEAD_SLIDING, KV_SLIDING) if sliding else (HEAD, KV)
        block = {
            "attn_norm.weight": norm(HIDDEN),
            "attn_q.weight": matrix(HEADS * head, HIDDEN),
            "attn_k.weight": matrix(kv * head, HIDDEN),
            "attn_output.weight": matrix(HIDDEN, HEADS * head),
            "attn_q_norm.weight": norm(head),
            "attn_k_norm.weight": norm(head),
            "post_attention_norm.weight": norm(HIDDEN),
            "layer_output_scale.weight": np.ones(1),
            "ffn_norm.weight": norm(HIDDEN),
            "ffn_gate.weight": matrix(FF, HIDDEN),
            "ffn_up.weight": matrix(FF, HIDDEN),
            "ffn_down.weight": matrix(HIDDEN, FF),
            "post_ffw_norm.weight": norm(HIDDEN),
            "ffn_gate_inp.weight": matrix(EXPERTS, HIDDEN),
            "ffn_gate_inp.scale": norm(HIDDEN),
            "pre_ffw_norm_2.weight": norm(HIDDEN),
            "post_ffw_norm_1.weight": norm(HIDDEN),
            "post_ffw_norm_2.weight": norm(HIDDEN),
            "ffn_gate_up_exps.weight": matrix(EXPERTS, 2 * FF_EXPERT, HIDDEN),
            "ffn_down_exps.weight": matrix(EXPERTS, HIDDEN, FF_EXPERT),
            "ffn_down_exps.scale": np.ones(EXPERTS),
        }
        if sliding:  # full layers take their values from the keys
            block["attn_v.weight"] = matrix(kv * head, HIDDEN)
        tensors += [(f"blk.{layer}.{name}", tensor) for name, tensor in block.items()]
    return tensors
