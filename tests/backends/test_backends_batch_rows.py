"""Feeds as rows of a batch, worked by hand, and where a batch is cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aipsy_judge.backends.batch_rows import chunks, rows
from aipsy_judge.backends.protocol import Feed


def test_feeds_follow_each_other_and_the_last_row_of_each_that_wants_them_has_logits() -> None:
    tokens, positions, sequences, wanted = rows(
        [Feed(3, 7, [5, 6]), Feed(0, 0, [9], True), Feed(2, 4, [1, 2, 3], True)]
    )
    assert tokens.tolist() == [5, 6, 9, 1, 2, 3]
    assert positions.tolist() == [7, 8, 0, 4, 5, 6]
    assert sequences.tolist() == [3, 3, 0, 2, 2, 2]
    assert wanted.tolist() == [0, 0, 1, 0, 0, 1]


def test_a_feed_of_no_tokens_is_an_error_not_the_logits_of_another() -> None:
    with pytest.raises(ValueError, match="no tokens"):
        Feed(1, 0, [], True)


@given(
    st.lists(st.tuples(st.integers(1, 9), st.booleans()), min_size=1, max_size=9), st.integers(1, 7), st.integers(1, 3)
)
def test_cuts_cover_every_row_once_and_no_pass_is_larger_than_it_may_be(
    feeds: list[tuple[int, bool]], most_tokens: int, most_outputs: int
) -> None:
    wanted = rows([Feed(n, 0, [1] * size, want) for n, (size, want) in enumerate(feeds)])[3]
    cuts = chunks(wanted, most_tokens, most_outputs)
    assert [row for start, stop in cuts for row in range(start, stop)] == list(range(len(wanted)))
    for start, stop in cuts:
        assert 0 < stop - start <= most_tokens
        assert wanted[start:stop].sum() <= most_outputs
