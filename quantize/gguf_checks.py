"""Whether a converted file still is the model it was made from, as far as files can tell: template, markers, ends.

Each of these has gone wrong in the field without any message: a marker of type "normal" is split into letters and every
prompt is broken; a lost end token lets a reply run on; another template asks another question.
"""

from __future__ import annotations

import ctypes
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from aipsy_judge.errors import WeightsError
from aipsy_judge.gguf_header import GgufHeader, array_numbers, array_texts
from aipsy_judge.gguf_model import check_model
from aipsy_judge.model_folder import folder_template

from .checkpoint import read_json

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6  # llama.h, enum llama_token_type
_F16 = 1  # ggml.h, enum ggml_type
_AT_ONCE = 1 << 22  # values

# What stands between angle brackets in a template is a marker if the vocabulary has it as one token.
_MARKER = re.compile(r"<[^<>\s]{1,40}>")
_HINT = "Copy the base's own tokenizer files into the folder and convert again."
# Gemma 4: control tokens shape the talk and are never text; the others are text that its reader must see.
_GEMMA4 = {
    CONTROL: ("<bos>", "<eos>", "<|turn>", "<turn|>", "<|think|>", "<|tool>", "<tool|>"),
    USER_DEFINED: (
        "<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", "<|tool_response>", "<tool_response|>", '<|"|>',
    ),
}  # fmt: skip


def check_converted(file: Path, folder: Path) -> GgufHeader:
    """The header of `file`, made from `folder`. Raises WeightsError with what was lost on the way."""
    header = check_model(file)
    _check_template(header, folder)
    _check_markers(file, header, folder)
    _check_ends(file, header, folder)
    return header


def _check_template(header: GgufHeader, folder: Path) -> None:
    wanted, found = folder_template(folder), header.metadata.get("tokenizer.chat_template")
    if wanted != found:
        state = "is missing from" if found is None else "is another in"
        raise WeightsError(f"the chat template of {folder} {state} the converted file", hint=_HINT)


def _check_markers(file: Path, header: GgufHeader, folder: Path) -> None:
    """Types as they are written in the file: the library corrects some while loading, which hides the fault."""
    texts = array_texts(file, header.arrays["tokenizer.ggml.tokens"])
    ids = {text.decode("utf-8", "replace"): i for i, text in enumerate(texts)}
    types = array_numbers(file, header.arrays["tokenizer.ggml.token_type"])
    special = {token["content"]: token["id"] for token in _added_tokens(folder) if token.get("special")}
    moved = [text for text, i in special.items() if ids.get(text) != i]
    if moved:
        raise WeightsError(
            f"the token {moved[0]!r} has the id {ids.get(moved[0])}, not {special[moved[0]]}", hint=_HINT
        )
    template = str(header.metadata.get("tokenizer.chat_template", ""))
    marks = {text for text in _MARKER.findall(template) if text in ids} | set(special)
    split = sorted(text for text in marks if types[ids[text]] in (NORMAL, BYTE))
    if split:
        raise WeightsError(f"the markers {split[:5]} became ordinary text, which is split into pieces", hint=_HINT)
    if header.metadata.get("general.architecture") == "gemma4":
        for kind, marks_of_kind in _GEMMA4.items():
            wrong = [text for text in marks_of_kind if text in ids and types[ids[text]] != kind]
            if wrong:
                raise WeightsError(f"the markers {wrong} have type {types[ids[wrong[0]]]}, not {kind}", hint=_HINT)


def _added_tokens(folder: Path) -> list[dict[str, Any]]:
    path = folder / "tokenizer.json"
    if not path.is_file():
        return []
    return list(json.loads(path.read_text(encoding="utf-8")).get("added_tokens") or [])


def end_tokens(folder: Path) -> tuple[int, ...]:
    """Ids that end a reply, from generation_config.json, else config.json. Raises WeightsError where neither says
    or what it says is no id."""
    configs = []
    for name in ("generation_config.json", "config.json"):
        if (folder / name).is_file():
            data = read_json(folder / name)
            configs += [data, data.get("text_config") or {}]
    for config in configs:
        found = config.get("eos_token_id")
        if found is not None:
            ids = found if isinstance(found, list) else [found]
            if not ids or not all(isinstance(i, int) for i in ids):
                raise WeightsError(f"eos_token_id is {found!r}, no token id or list of them", where=str(folder))
            return tuple(ids)
    raise WeightsError("neither generation_config.json nor config.json names the end token", where=str(folder))


def _check_ends(file: Path, header: GgufHeader, folder: Path) -> None:
    wanted = end_tokens(folder)
    eos = header.metadata.get("tokenizer.ggml.eos_token_id")
    if eos not in wanted:
        raise WeightsError(
            f"the converted file ends replies with token {eos}; the model with {list(wanted)}", hint=_HINT
        )
    ends = _ends_of_generation(file, wanted)
    running_on = [i for i in wanted if i not in ends]
    if running_on:
        raise WeightsError(f"llama.cpp does not take the tokens {running_on} for the end of a reply", hint=_HINT)


def _ends_of_generation(file: Path, ids: Iterable[int]) -> set[int]:
    import llama_cpp

    from aipsy_judge.backends.llamacpp_library import last_errors, quiet_library

    quiet_library()
    params = llama_cpp.llama_model_default_params()
    params.vocab_only = True
    model = llama_cpp.llama_model_load_from_file(str(file).encode(), params)
    if not model:
        raise WeightsError(f"llama.cpp cannot read the converted file: {last_errors()[-1:]}", where=str(file))
    try:
        vocabulary = llama_cpp.llama_model_get_vocab(model)
        size = int(llama_cpp.llama_vocab_n_tokens(vocabulary))
        return {i for i in ids if 0 <= i < size and llama_cpp.llama_vocab_is_eog(vocabulary, ctypes.c_int32(i))}
    finally:
        llama_cpp.llama_model_free(model)


def check_finite(file: Path, header: GgufHeader) -> None:
    """Raise WeightsError for a 16-bit value that is not finite: beyond 65504 a value becomes infinite unsaid."""
    import numpy as np

    for tensor in header.tensors:
        if tensor.kind == _F16:
            values = np.memmap(file, dtype="<f2", mode="r", offset=tensor.start, shape=(tensor.size_bytes // 2,))
            for begin in range(0, len(values), _AT_ONCE):
                if not np.isfinite(values[begin : begin + _AT_ONCE]).all():
                    raise WeightsError(f"{tensor.name!r} holds values that F16 cannot", hint="Use F32 or Q8_0.")
