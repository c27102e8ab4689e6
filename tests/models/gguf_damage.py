"""Damage to GGUF files: where the fields of one lie, and what can be done to them.

Every maker gives damaged copies of a whole file; a kind of damage is one maker.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
STRING, ARRAY = 8, 9


@dataclass(frozen=True)
class Field:
    """what: the part of the format that lies there; key: of which metadata key or tensor; kind: type of a value."""

    what: str
    at: int
    size: int
    key: str = ""
    kind: int = -1


def fields_of(data: bytes) -> list[Field]:
    """Every field of the head, in order; the last, "data", is where the weights begin."""
    return list(_walk(data))


def _walk(data: bytes) -> Iterator[Field]:
    def number(form: str, at: int) -> int:
        return int(struct.unpack_from(form, data, at)[0])

    yield from (Field("magic", 0, 4), Field("version", 4, 4), Field("tensor_count", 8, 8), Field("key_count", 16, 8))
    at = 24

    def text(what: str, key: str = "") -> Iterator[Field]:
        nonlocal at
        length = number("<Q", at)
        yield Field(f"{what}_length", at, 8, key)
        yield Field(f"{what}_text", at + 8, length, key)
        at += 8 + length

    for _ in range(number("<Q", 16)):
        key = data[at + 8 : at + 8 + number("<Q", at)].decode()
        yield from text("key", key)
        kind = number("<I", at)
        yield Field("value_type", at, 4, key, kind)
        at += 4
        if kind == STRING:
            yield from text("string", key)
        elif kind != ARRAY:
            yield Field("scalar", at, SIZES[kind], key, kind)
            at += SIZES[kind]
        else:
            inner, length = number("<I", at), number("<Q", at + 4)
            yield Field("array_type", at, 4, key, inner)
            yield Field("array_length", at + 4, 8, key, inner)
            at += 12
            if inner == STRING:
                for _ in range(length):
                    yield from text("element", key)
            else:
                yield Field("numbers", at, length * SIZES[inner], key, inner)
                at += length * SIZES[inner]
    for _ in range(number("<Q", 8)):
        name = data[at + 8 : at + 8 + number("<Q", at)].decode()
        yield from text("name", name)
        axes = number("<I", at)
        yield Field("axes", at, 4, name)
        yield from (Field("dimension", at + 4 + 8 * i, 8, name) for i in range(axes))
        at += 4 + 8 * axes
        yield Field("tensor_type", at, 4, name)
        yield Field("tensor_offset", at + 4, 8, name)
        at += 12
    yield Field("data", at, 0)


class Damage:
    """A whole file, and ways to spoil copies of it. `wanted` copies are aimed at where a kind could give more."""

    def __init__(self, data: bytes, wanted: int = 30, seed: int = 0) -> None:
        self.data, self.wanted = data, wanted
        self.fields = fields_of(data)
        self.head = self.fields[-1].at
        self.random = random.Random(seed)

    def made(self) -> Iterator[tuple[str, bytes]]:
        """(kind, damaged copy), all kinds."""
        for name, make in KINDS.items():
            for copy in make(self):
                yield name, copy

    def of(self, *what: str) -> list[Field]:
        """Fields of these kinds, at most as many as wanted, spread over the file; few elements of a long list."""
        found = [f for f in self.fields if f.what in what and f.size]
        return found if len(found) <= self.wanted else self.random.sample(found, self.wanted)

    def put(self, field: Field, value: bytes, at: int = 0) -> bytes:
        start = field.at + at
        return self.data[:start] + value + self.data[start + len(value) :]

    def repadded(self, data: bytes) -> bytes:
        """After a change of the head's length the weights begin at a multiple of 32 again."""
        old = -(-self.head // 32) * 32
        end = self.head + len(data) - len(self.data)
        return data[:end] + bytes(-end % 32) + self.data[old:]

    def offsets(self) -> list[int]:
        """Places in the head: header, metadata and table of tensors each have their share."""
        table = next(f.at for f in self.fields if f.what == "name_length")
        share = self.wanted // 3
        parts = ((0, 24), (24, table), (table, self.head))
        return [self.random.randrange(*part) for part in parts for _ in range(max(share, 1))]


def flipped_bits(whole: Damage) -> Iterator[bytes]:
    for at in whole.offsets():
        for bit in (0, 3, 7):
            yield whole.data[:at] + bytes([whole.data[at] ^ (1 << bit)]) + whole.data[at + 1 :]


def bytes_of_ones(whole: Damage) -> Iterator[bytes]:
    for at in whole.offsets():
        yield whole.data[:at] + b"\xff" + whole.data[at + 1 :]


def words_of_zeros(whole: Damage) -> Iterator[bytes]:
    for at in whole.offsets():
        yield whole.data[:at] + bytes(4) + whole.data[at + 4 :]


def cut_off(whole: Damage) -> Iterator[bytes]:
    for at in whole.offsets():
        yield whole.data[:at]
    for share in (0.3, 0.6, 0.9, 0.999):
        yield whole.data[: int(len(whole.data) * share)]


def shifted_apart(whole: Damage) -> Iterator[bytes]:
    for at in whole.offsets():
        yield whole.data[:at] + bytes(8) + whole.data[at:]


def shifted_together(whole: Damage) -> Iterator[bytes]:
    for at in whole.offsets():
        yield whole.data[:at] + whole.data[at + 8 :]


def repeated_parts(whole: Damage) -> Iterator[bytes]:
    for at in whole.offsets():
        yield whole.data[: at + 100] + whole.data[at:]


def exchanged_parts(whole: Damage) -> Iterator[bytes]:
    places = whole.offsets()
    for first, second in zip(places, reversed(places), strict=True):
        low, high = sorted((first, second))
        if low + 16 <= high:
            copy = bytearray(whole.data)
            copy[low : low + 16], copy[high : high + 16] = copy[high : high + 16], copy[low : low + 16]
            yield bytes(copy)


HUGE = (2**63, 2**64 - 1, 2**32, 2**40, 2**31 - 1)


def huge_lengths(whole: Damage) -> Iterator[bytes]:
    for field in whole.of("key_length", "string_length", "element_length", "name_length", "array_length"):
        yield whole.put(field, struct.pack("<Q", whole.random.choice(HUGE)))


def lengths_off_by_little(whole: Damage) -> Iterator[bytes]:
    for field in whole.of("key_length", "string_length", "element_length", "name_length", "array_length"):
        (length,) = struct.unpack_from("<Q", whole.data, field.at)
        for other in (0, max(length - 1, 0), length + 1, length * 2):
            yield whole.put(field, struct.pack("<Q", other))


def huge_counts(whole: Damage) -> Iterator[bytes]:
    for field in whole.of("tensor_count", "key_count"):
        (count,) = struct.unpack_from("<Q", whole.data, field.at)
        for other in (*HUGE, 0, 1, count - 1, count + 1, count * 2, 2**16, 2**20):
            yield whole.put(field, struct.pack("<Q", other))


def other_value_types(whole: Damage) -> Iterator[bytes]:
    for field in whole.of("value_type", "array_type"):
        for kind in whole.random.sample(range(14), 4):
            yield whole.put(field, struct.pack("<I", kind))


def values_of_another_type(whole: Damage) -> Iterator[bytes]:
    """Well formed, but a text where a number should be, and so on: what a library may take for granted."""
    others = {
        STRING: struct.pack("<IQ", STRING, 3) + b"odd",
        4: struct.pack("<II", 4, 7),
        6: struct.pack("<If", 6, 0.5),
        7: struct.pack("<I?", 7, True),
        10: struct.pack("<IQ", 10, 7),
        ARRAY: struct.pack("<IIQ", ARRAY, 4, 2) + bytes(8),
        100: struct.pack("<IIQQ", ARRAY, STRING, 1, 1) + b"x",
        101: struct.pack("<IIQ", ARRAY, 6, 0),
    }
    for field in (f for f in whole.fields if f.what == "value_type"):
        following = next(f for f in whole.fields if f.at > field.at and f.what in ("key_length", "name_length"))
        for kind, value in others.items():
            if kind != field.kind:
                yield whole.repadded(whole.data[: field.at] + value + whole.data[following.at :])


def missing_keys(whole: Damage) -> Iterator[bytes]:
    for field in (f for f in whole.fields if f.what == "key_length"):
        following = next(f for f in whole.fields if f.at > field.at and f.what in ("key_length", "name_length"))
        (count,) = struct.unpack_from("<Q", whole.data, 16)
        start = whole.data[:16] + struct.pack("<Q", count - 1) + whole.data[24 : field.at]
        yield whole.repadded(start + whole.data[following.at :])


def keys_twice(whole: Damage) -> Iterator[bytes]:
    keys = [f for f in whole.fields if f.what == "key_length"]
    (count,) = struct.unpack_from("<Q", whole.data, 16)
    for field in keys:
        end = next(f for f in whole.fields if f.at > field.at and f.what in ("key_length", "name_length")).at
        start = whole.data[:16] + struct.pack("<Q", count + 1) + whole.data[24:end]
        yield whole.repadded(start + whole.data[field.at : end] + whole.data[end:])


def texts_not_utf8(whole: Damage) -> Iterator[bytes]:
    for field in whole.of("key_text", "string_text", "element_text", "name_text"):
        yield whole.put(field, b"\xff", whole.random.randrange(field.size))


def texts_with_nul(whole: Damage) -> Iterator[bytes]:
    for field in whole.of("key_text", "string_text", "element_text", "name_text"):
        yield whole.put(field, b"\0", whole.random.randrange(field.size))


def odd_numbers(whole: Damage) -> Iterator[bytes]:
    """Negative read as unsigned, zero, one, far too many, just too many."""
    for field in (f for f in whole.fields if f.what == "scalar" and f.kind in (4, 5)):
        (value,) = struct.unpack_from("<I", whole.data, field.at)
        for other in (0, 1, 2, 3, value - 1, value + 1, value * 2, 2**16, 2**31 - 1, 2**31, 2**32 - 1):
            yield whole.put(field, struct.pack("<I", other % 2**32))


def odd_fractions(whole: Damage) -> Iterator[bytes]:
    for field in (f for f in whole.fields if f.what == "scalar" and f.kind == 6):
        for other in (0.0, -1.0, float("nan"), float("inf"), -float("inf"), 1e38, 1e-45):
            yield whole.put(field, struct.pack("<f", other))
    for field in (f for f in whole.fields if f.what == "numbers" and f.kind == 6):
        for at in range(0, field.size, max(4, field.size // 80 * 4)):
            yield whole.put(field, struct.pack("<f", float("nan")), at)


def odd_token_types(whole: Damage) -> Iterator[bytes]:
    for field in (f for f in whole.fields if f.what == "numbers" and f.kind == 5):
        for _ in range(whole.wanted):
            at = whole.random.randrange(field.size // 4) * 4
            yield whole.put(field, struct.pack("<i", whole.random.choice((-1, 0, 1, 2, 3, 4, 5, 6, 7, 2**31 - 1))), at)


def equal_tokens(whole: Damage) -> Iterator[bytes]:
    tokens = [f for f in whole.fields if f.what == "element_text" and f.key.endswith(".tokens")]
    for _ in range(whole.wanted if tokens else 0):
        first, second = whole.random.sample(tokens, 2)
        if first.size == second.size:
            yield whole.put(first, whole.data[second.at : second.at + second.size])


def other_texts(whole: Damage) -> Iterator[bytes]:
    """A letter of a text that means something to the library becomes another."""
    for field in whole.of("string_text", "key_text", "name_text"):
        yield whole.put(field, b"Z", whole.random.randrange(field.size))


def odd_axes(whole: Damage) -> Iterator[bytes]:
    for field in whole.of("axes"):
        yield whole.put(field, struct.pack("<I", whole.random.choice((0, 1, 3, 4, 5, 255, 2**31, 2**32 - 1))))


def odd_dimensions(whole: Damage) -> Iterator[bytes]:
    for field in whole.of("dimension"):
        (size,) = struct.unpack_from("<Q", whole.data, field.at)
        for other in (0, 1, size - 1, size + 1, size * 2, 2**32, 2**40, 2**62, 2**63, 2**64 - 1):
            yield whole.put(field, struct.pack("<Q", other % 2**64))


def turned_matrices(whole: Damage) -> Iterator[bytes]:
    """As many numbers, the axes exchanged: all within the file."""
    dimensions = [f for f in whole.fields if f.what == "dimension"]
    for first, second in pairwise(dimensions):
        if first.key == second.key:
            both = whole.data[second.at : second.at + 8] + whole.data[first.at : first.at + 8]
            yield whole.put(first, both)


def other_tensor_types(whole: Damage) -> Iterator[bytes]:
    for field in whole.of("tensor_type"):
        for kind in whole.random.sample(range(45), 6):
            yield whole.put(field, struct.pack("<I", kind))


def overlapping_tensors(whole: Damage) -> Iterator[bytes]:
    offsets = [f for f in whole.fields if f.what == "tensor_offset"]
    for first, second in pairwise(offsets):
        (start,) = struct.unpack_from("<Q", whole.data, first.at)
        for other in (start, start + 32, start + 1, 2**63, 2**64 - 32, len(whole.data)):
            yield whole.put(second, struct.pack("<Q", other))


def exchanged_tensors(whole: Damage) -> Iterator[bytes]:
    """One tensor under the name of another of as many letters."""
    names = [f for f in whole.fields if f.what == "name_text"]
    for first in names:
        second = next((f for f in names if f.size == first.size and f.at > first.at), None)
        if second is not None:
            copy = whole.put(first, whole.data[second.at : second.at + second.size])
            yield copy[: second.at] + whole.data[first.at : first.at + first.size] + copy[second.at + second.size :]
            yield whole.put(first, b"#" * first.size)


def odd_alignments(whole: Damage) -> Iterator[bytes]:
    (count,) = struct.unpack_from("<Q", whole.data, 16)
    start = whole.data[:16] + struct.pack("<Q", count + 1)
    key = struct.pack("<Q", 17) + b"general.alignment"
    rest = whole.data[24:]
    for value in (0, 1, 2, 3, 8, 16, 24, 31, 33, 48, 64, 96, 128, 4096, 2**16, 2**20, 2**31, 2**31 + 1, 2**32 - 1):
        yield start + key + struct.pack("<II", 4, value) + rest
    for kind, value in ((10, struct.pack("<Q", 32)), (5, struct.pack("<i", -32)), (6, struct.pack("<f", 32.0))):
        yield start + key + struct.pack("<I", kind) + value + rest


KINDS: dict[str, Callable[[Damage], Iterator[bytes]]] = {
    make.__name__: make
    for make in (
        flipped_bits, bytes_of_ones, words_of_zeros, cut_off, shifted_apart, shifted_together, repeated_parts,
        exchanged_parts, huge_lengths, lengths_off_by_little, huge_counts, other_value_types, values_of_another_type,
        missing_keys, keys_twice, texts_not_utf8, texts_with_nul, odd_numbers, odd_fractions, odd_token_types,
        equal_tokens, other_texts, odd_axes, odd_dimensions, turned_matrices, other_tensor_types, overlapping_tensors,
        exchanged_tensors, odd_alignments,
    )
}  # fmt: skip
