"""Files that are whole and yet no model that can be run: refused with a reason before the library sees them."""

from __future__ import annotations

import numpy as np
import pytest
from small_gguf import CONTROL, bpe_vocabulary, byte_letters, spm_vocabulary, write_small_gguf

from aipsy_judge.errors import WeightsError
from aipsy_judge.gguf_model import check_model


def refused(tmp_path, **made) -> str:
    with pytest.raises(WeightsError) as caught:
        check_model(write_small_gguf(tmp_path / "bad.gguf", **made))
    assert caught.value.where == str(tmp_path / "bad.gguf")
    return caught.value.message


@pytest.mark.parametrize("made", [{}, {"vocabulary": spm_vocabulary()}, {"quantised": True}, {"template": None}])
def test_a_whole_model_passes(tmp_path, made):
    header = check_model(write_small_gguf(tmp_path / "m.gguf", **made))
    assert header.metadata["llama.block_count"] == 2


def test_a_file_that_changed_is_looked_at_again(tmp_path):
    path = write_small_gguf(tmp_path / "m.gguf")
    check_model(path)
    data = path.read_bytes()
    path.write_bytes(data[:-4])
    with pytest.raises(WeightsError, match="does not lie within"):
        check_model(path)


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ({"block_count": None}, "block_count is missing"),
        ({"block_count": 0}, "block_count is 0"),
        ({"block_count": 513}, "block_count is 513"),
        ({"block_count": 3}, "layer 2 of 3 has no tensors"),
        ({"block_count": 1}, "tensors of layer 1, of 1 layers"),
        ({"embedding_length": 0}, "embedding_length is 0"),
        ({"embedding_length": 64}, "token_embd.weight has the shape"),
        ({"embedding_length": "32"}, "embedding_length is '32'"),
        ({"context_length": 0}, "context_length is 0"),
        ({"attention.head_count": 0}, "no heads"),
        ({"attention.head_count": [2, 2, 2]}, "no heads"),
        ({"attention.head_count_kv": 0}, "no heads"),
        ({"attention.head_count": 3, "attention.head_count_kv": 2}, "no whole number each"),
        ({"attention.head_count": 3, "attention.head_count_kv": 1}, "do not divide into 3 heads"),
        ({"attention.layer_norm_rms_epsilon": -1.0}, "a number above 0 is wanted"),
        ({"rope.freq_base": 0.0}, "a number above 0 is wanted"),
        ({"rope.scaling.type": "spiral"}, "known are none, linear"),
        ({"expert_count": 2000, "expert_used_count": 2}, "expert_count is 2000"),
        ({"expert_count": 2, "expert_used_count": 3}, "3 of 2 experts"),
        ({"expert_count": 2}, "0 of 2 experts"),
        ({"expert_count": 4, "expert_used_count": 2, "expert_group_count": 3}, "3 groups of 4 experts"),
        ({"nextn_predict_layers": 2}, "nextn_predict_layers is 2 of 2"),
    ],
)
def test_numbers_that_would_end_the_process_or_mean_nothing_are_refused(tmp_path, numbers, said):
    assert said in refused(tmp_path, numbers=numbers)


def test_layers_may_differ_in_heads(tmp_path):
    check_model(write_small_gguf(tmp_path / "m.gguf", numbers={"attention.head_count_kv": [1, 1]}))


def words(**changed):
    return bpe_vocabulary() | changed


def types(**at):
    made = bpe_vocabulary()["types"]
    return [at.get(f"t{i}", kind) for i, kind in enumerate(made)]


@pytest.mark.parametrize(
    ("vocabulary", "said"),
    [
        (words(tokens=[*bpe_vocabulary()["tokens"][:-1], "a"]), "has the token 'a' twice (the second is 263)"),
        (words(tokens=[*bpe_vocabulary()["tokens"][:-2], "", "[EMPTY_262]"]), "'[EMPTY_262]' twice"),
        (words(tokens=[*bpe_vocabulary()["tokens"][:-1], "a\0b"]), "has the token 'a' twice (the second is 263)"),
        (words(types=[1, 1]), "2 token types of type 5 for 264 tokens"),
        (words(types=types(t7=9)), "token 7 is of the unknown type 9"),
        (words(types=types(t7=-1)), "token 7 is of the unknown type -1"),
        (words(types=types(t7=6)), "token 7 stands for a byte"),
        (words(scores=[0.0]), "1 scores of type 6 for 264 tokens"),
        (words(scores=[float("inf")] * 264), "a token's score is no number"),
        (words(merges=[]), "wants merges"),
        (words(merges=["th"]), "merge 0 joins nothing: 'th'"),
        (words(ids={"bos": 264}), "bos_token_id is 264; the vocabulary has 264 tokens"),
        (words(ids={"padding": 2**32 - 1}), "padding_token_id is 4294967295"),
        (spm_vocabulary() | {"tokens": ["x" + t for t in spm_vocabulary()["tokens"]], "types": None}, "the byte 0x00"),
    ],
)
def test_a_vocabulary_that_is_not_whole_is_refused(tmp_path, vocabulary, said):
    assert said in refused(tmp_path, vocabulary=vocabulary)


def test_a_vocabulary_of_another_length_than_the_embedding_is_refused(tmp_path):
    rows = len(CONTROL) + len(byte_letters())
    short = {"token_embd.weight": np.ones((rows, 32), np.float32)}
    assert f"shape (32, {rows}); embedding and vocabulary want (32, 264)" in refused(tmp_path, tensors=short)
    assert "no embedding" in refused(tmp_path, tensors={"token_embd.weight": None})


@pytest.mark.parametrize(
    ("template", "said"),
    [
        (" ", "empty"),
        ("{% for m in messages %}", "cannot be parsed"),
        ("{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}", "cannot be parsed"),
        ("x" * (2**18 + 1), "has 262145 bytes"),
    ],
)
def test_a_template_that_is_none_is_refused(tmp_path, template, said):
    assert said in refused(tmp_path, template=template)


def test_weights_of_a_type_that_nothing_is_calculated_with_are_refused(tmp_path):
    whole = {"blk.0.attn_q.weight": np.ones((32, 32), np.int32)}
    assert "is of type 26, which no weights are" in refused(tmp_path, tensors=whole)
    half = {"output_norm.weight": np.ones(32, np.float16)}
    assert "has one axis and is of type 1" in refused(tmp_path, tensors=half)


def test_a_file_of_another_kind_is_named_as_what_it_is(tmp_path):
    assert "of type 'adapter'" in refused(tmp_path, texts={"general.type": "adapter"})
    assert "no architecture" in refused(tmp_path, arch="")
    no_words = {"vocabulary": bpe_vocabulary() | {"tokens": []}, "tensors": {"token_embd.weight": np.ones((1, 32))}}
    assert "no vocabulary" in refused(tmp_path, **no_words)
    assert "one of 3 parts" in refused(tmp_path, parts=3)
