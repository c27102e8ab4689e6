"""Damaged and hostile heads of GGUF files: each is refused with a reason before any library sees it."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from gguf import GGUFWriter
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aipsy_judge.errors import WeightsError
from aipsy_judge.gguf_header import (
    STRING,
    GgufHeader,
    array_numbers,
    array_texts,
    cell_bytes,
    read_gguf_header,
)


def write(path: Path) -> Path:
    writer = GGUFWriter(path, "toy")
    writer.add_token_list(["a", "bc"])
    writer.add_token_scores([1.5, -2.0])
    writer.add_tensor("blk.0.w", np.zeros((4, 8), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> bytes:
    return write(tmp_path_factory.mktemp("gguf") / "m.gguf").read_bytes()


@pytest.fixture
def file(tmp_path):
    def make(data: bytes) -> Path:
        path = tmp_path / "x.gguf"
        path.write_bytes(data)
        return path

    return make


def test_a_whole_file_is_read_as_it_was_written(file, whole):
    path = file(whole)
    header = read_gguf_header(path)
    assert header.metadata["general.architecture"] == "toy"
    assert header.kinds["general.architecture"] == STRING
    assert header.lengths == {"tokenizer.ggml.tokens": 2, "tokenizer.ggml.scores": 2}
    assert list(array_texts(path, header.arrays["tokenizer.ggml.tokens"])) == [b"a", b"bc"]
    assert array_numbers(path, header.arrays["tokenizer.ggml.scores"]).tolist() == [1.5, -2.0]
    assert header.metadata["tokenizer.ggml.scores"] == [1.5, -2.0]
    ((tensor),) = header.tensors
    assert (tensor.name, tensor.shape, tensor.size_bytes) == ("blk.0.w", (8, 4), 128)


def test_a_file_cut_off_anywhere_is_refused(file, whole):
    end = read_gguf_header(file(whole)).tensors[0]
    for length in range(end.start + end.size_bytes):
        with pytest.raises(WeightsError):
            read_gguf_header(file(whole[:length]))


@given(st.data())
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_a_flipped_byte_is_refused_or_read_but_never_a_crash(file, whole, data):
    at = data.draw(st.integers(0, len(whole) - 1))
    damaged = bytearray(whole)
    damaged[at] = data.draw(st.integers(0, 255))
    try:
        header = read_gguf_header(file(bytes(damaged)))
    except WeightsError:
        return
    assert all(t.start + t.size_bytes <= len(whole) for t in header.tensors)


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def pair(key: str, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


def tensor(name: str, shape: tuple[int, ...], kind: int = 0, offset: int = 0) -> bytes:
    axes = struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
    return text(name) + axes + struct.pack("<IQ", kind, offset)


def gguf(pairs: list[bytes], tensors: list[bytes], version: int = 3, keys: int | None = None) -> bytes:
    start = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(pairs) if keys is None else keys)
    return start + b"".join(pairs) + b"".join(tensors) + bytes(512)


HUGE = 2**63
ARCH = pair("general.architecture", 8, text("toy"))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "empty"),
        (b"  <!DOCTYPE html><html>", "web page"),
        (b"<html><body>sign in</body>", "web page"),
        (b"version https://git-lfs.github.com/spec/v1\n", "pointer to a large file"),
        (b"PK\x03\x04" + bytes(100), "not a GGUF file"),
        (b"GGUF" + bytes(8), "cut off after 12 bytes"),
        (gguf([ARCH], [], version=1), "version 1"),
        (gguf([ARCH], [], version=0x03000000), "GGUF version"),
        (gguf([ARCH], [], keys=HUGE), "do not fit a file"),
        (gguf([ARCH, ARCH], []), "stands twice"),
        (gguf([pair("k", 99, b"")], []), "unknown value type 99"),
        (gguf([pair("k", 8, struct.pack("<Q", HUGE))], []), "a length of"),
        (gguf([pair("k", 8, struct.pack("<Q", 2) + b"\xff\xfe")], []), "not UTF-8"),
        (gguf([pair("k", 9, struct.pack("<IQ", 9, 1))], []), "an array of type 9"),
        (gguf([pair("k", 9, struct.pack("<IQ", 8, HUGE))], []), "elements that is not so"),
        (gguf([pair("k", 9, struct.pack("<IQ", 4, 2**61))], []), "elements that is not so"),
        (gguf([pair("k", 9, struct.pack("<IQQ", 8, 2, HUGE))], []), "a text longer than the file"),
        (gguf([pair("", 4, struct.pack("<I", 1))], []), "a key without a name"),
        (gguf([pair("k", 7, b"\x02")], []), "neither 0 nor 1"),
        (gguf([pair("k", 6, struct.pack("<f", float("nan")))], []), "a number that is none"),
        (gguf([pair("general.alignment", 10, struct.pack("<Q", 32))], []), "an alignment of 32"),
        (gguf([ARCH], [tensor("t" * 64, (4,))]), "a tensor's name of 64 bytes"),
        (gguf([ARCH], [tensor("t", (4,)), tensor("u", (4,))]), "'u' overlaps the one before"),
        (gguf([ARCH], [tensor("t", (4,)), tensor("u", (4,), offset=64)]), "'u' leaves a gap behind"),
        (gguf([ARCH], [tensor("t", (4,), offset=32)]), "'t' leaves a gap behind"),
        (gguf([pair("general.alignment", 4, struct.pack("<I", 0))], []), "an alignment of 0"),
        (gguf([pair("general.alignment", 4, struct.pack("<I", 24))], []), "an alignment of 24"),
        (gguf([pair("general.alignment", 8, text("32"))], []), "an alignment of '32'"),
        (gguf([ARCH], [tensor("t", ())]), "0 axes"),
        (gguf([ARCH], [tensor("t", (2, 2, 2, 2, 2))]), "5 axes"),
        (gguf([ARCH], [tensor("t", (0, 4))]), "the shape"),
        (gguf([ARCH], [tensor("t", (2**40, 2**40))]), "the shape"),
        (gguf([ARCH], [tensor("t", (4,), kind=77)]), "unknown type 77"),
        (gguf([ARCH], [tensor("t", (33,), kind=8)]), "does not lie within"),
        (gguf([ARCH], [tensor("t", (4,), offset=2**40)]), "does not lie within"),
        (gguf([ARCH], [tensor("t", (4,), offset=7)]), "does not lie within"),
        (gguf([ARCH], [tensor("t", (4,)), tensor("t", (4,), offset=32)]), "stands twice"),
    ],
)
def test_damage_is_named(file, data, said):
    with pytest.raises(WeightsError, match=said):
        read_gguf_header(file(data))


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    for path in (tmp_path / "none.gguf", tmp_path):
        with pytest.raises(WeightsError, match="cannot be read"):
            read_gguf_header(path)


def shape(**given) -> GgufHeader:
    keys = {
        "block_count": 2,
        "embedding_length": 64,
        "attention.head_count": 4,
        "attention.head_count_kv": 2,
    } | {k.replace("__", "."): v for k, v in given.items()}
    metadata = {"general.architecture": "toy"} | {f"toy.{k}": v for k, v in keys.items() if v is not None}
    return GgufHeader(metadata, {}, ())


def test_the_bytes_of_a_cache_cell_by_hand():
    # 2 layers x 2 heads x (16 + 16) x 2 bytes
    assert cell_bytes(shape()) == 256
    # without key-value heads of their own: 4 heads
    assert cell_bytes(shape(attention__head_count_kv=None)) == 512
    # one layer without attention, one of 2 heads
    assert cell_bytes(shape(attention__head_count_kv=[0, 2], attention__head_count=[0, 4])) == 128
    # sliding layer 2 x (8 + 8), full layer 2 x (32 + 32), 2 bytes each
    sliding = shape(
        attention__sliding_window_pattern=[True, False],
        attention__key_length_swa=8,
        attention__value_length_swa=8,
        attention__key_length=32,
        attention__value_length=32,
    )
    assert cell_bytes(sliding) == (2 * 16 + 2 * 64) * 2


@pytest.mark.parametrize(
    "given_keys",
    [
        {"block_count": None},
        {"embedding_length": "64"},
        {"attention__head_count": None, "attention__head_count_kv": None},
        {"attention__head_count_kv": [2]},
        {"attention__head_count_kv": [0, 0]},
    ],
)
def test_a_cache_of_unknown_size_is_refused_not_divided_by(given_keys):
    with pytest.raises(WeightsError, match="does not say how large"):
        cell_bytes(shape(**given_keys))


def test_a_file_that_wants_much_time_or_memory_for_its_head_is_refused_before_it_gets_them(tmp_path):
    """Sparse files, so that the lengths lie within them."""
    claims = {
        "an array of 4194305 elements": pair("k", 9, struct.pack("<IQ", 0, 2**22 + 1)),
        "a text of 4194305 bytes": pair("k", 8, struct.pack("<Q", 2**22 + 1)),
    }
    for said, claim in claims.items():
        path = tmp_path / "sparse.gguf"
        with path.open("wb") as made:
            made.write(gguf([claim], []))
            made.truncate(2**32)
        with pytest.raises(WeightsError, match=said):
            read_gguf_header(path)
    with path.open("r+b") as made:
        made.write(b"GGUF" + struct.pack("<IQQ", 3, 2**20, 2**20))
    with pytest.raises(WeightsError, match="no model has so many"):
        read_gguf_header(path)
