"""A batch keeps rows and branches apart, and trains what the rows name, whatever the padding is."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from training.backbone import SLIDING, batch_masks
from training.collate import ancestors, collate, within_window
from training.rows import Row, RowTree, Target

EOS = 1


def row(prompt: list[int], *answers: list[int]) -> Row:
    """Every answer's tokens are predicted; the last token of each is EOS."""
    tree = RowTree()
    root = tree.grow(-1, prompt)
    targets = []
    for answer in answers:
        at = root
        for token in [*answer, EOS]:
            targets.append(Target(at, (token,), (1.0,), 1.0, "end" if token == EOS else "skeleton"))
            at = tree.grow(at, [token])
    return tree.row("x", targets)


def attend(batch_mask: Tensor, ids: Tensor, positions: Tensor) -> Tensor:
    """One attention layer with random weights that depend on nothing but the seed."""
    generator = torch.Generator().manual_seed(0)
    embed = torch.randn(64, 8, generator=generator, dtype=torch.float64)
    place = torch.randn(64, 8, generator=generator, dtype=torch.float64)
    x = embed[ids] + place[positions]
    return torch.nn.functional.scaled_dot_product_attention(x, x.flip(-1), x, attn_mask=batch_mask)


def test_a_branch_gives_what_it_gives_alone_and_rows_do_not_see_each_other() -> None:
    tree = row([5, 6, 7], [8, 9], [10, 11, 12])
    batch = collate([tree, row([20], [21])], pad_token=EOS)
    mixed = attend(batch.visible, batch.input_ids, batch.position_ids)
    for answer in ([8, 9], [10, 11, 12]):
        alone = collate([row([5, 6, 7], answer)], pad_token=0)
        wanted = attend(alone.visible, alone.input_ids, alone.position_ids)[0]
        end = next(i for i, t in enumerate(tree.tokens) if t == answer[-1])
        torch.testing.assert_close(mixed[0, list(tree.path(end))], wanted[: 3 + len(answer)])


def test_padding_sees_itself_alone_and_nothing_is_nan() -> None:
    batch = collate([row([5, 6, 7], [8]), row([5], [])], pad_token=0)
    assert batch.visible[1, 3].tolist() == [False, False, False, True, False]
    assert not batch.visible[1, :2, 2:].any()
    assert torch.isfinite(attend(batch.visible, batch.input_ids, batch.position_ids)).all()


def test_the_end_is_trained_where_the_padding_is_the_same_token() -> None:
    rows = [row([5, 6, 7], [8, 9]), row([5], [8])]
    for pad in (EOS, 0):
        batch = collate(rows, pad_token=pad)
        ends = [n for n, kind in enumerate(batch.kinds) if kind == "end"]
        assert batch.tokens[ends].flatten().tolist() == [EOS, EOS]
        assert batch.weights[ends].tolist() == [1.0, 1.0]
        # the state that predicts the end is the answer's last token, in its own row
        assert batch.input_ids[batch.row[ends], batch.at[ends]].tolist() == [9, 8]


def test_targets_are_flat_and_padded_with_shares_of_nothing() -> None:
    soft = Row("s", (5, 6), (0, 1), (-1, 0), (Target(1, (7, 8, 9), (0.5, 0.25, 0.25), 2.0, "slot:a"),))
    batch = collate([row([5], []), soft], pad_token=0)
    assert batch.tokens.tolist() == [[EOS, 0, 0], [7, 8, 9]]
    assert batch.shares.tolist() == [[1.0, 0.0, 0.0], [0.5, 0.25, 0.25]]
    assert batch.weight == 3.0
    hidden = torch.arange(8.0).view(2, 2, 2)
    assert batch.predicting(hidden).tolist() == [[0.0, 1.0], [6.0, 7.0]]
    assert batch.to("cpu").kinds == batch.kinds


def test_a_row_without_targets_makes_an_empty_batch_of_them() -> None:
    batch = collate([Row("x", (5,), (0,), (-1,), ())], pad_token=0)
    assert batch.tokens.shape == (0, 1)
    assert batch.weight == 0.0


def test_the_window_counts_positions_so_that_a_late_branch_sees_the_prompt() -> None:
    tree = row([5, 6, 7], [8, 9, 10, 11], [12])
    batch = collate([tree], pad_token=0)
    late = tree.tokens.index(12)  # index 8, position 3: within a window of 3 it sees positions 1, 2 and 3
    near = within_window(batch.visible, batch.position_ids, 3)[0, late]
    assert [tree.tokens[i] for i in near.nonzero().flatten().tolist()] == [6, 7, 12]
    masks = batch_masks(3, batch)
    assert masks["full_attention"].shape == masks[SLIDING].shape == (1, 1, 10, 10)
    assert masks["full_attention"][0, 0, late].sum() == 4
    assert masks[SLIDING][0, 0, late].sum() == 3
    assert batch_masks(None, batch).equal(masks["full_attention"])


@given(st.lists(st.integers(0, 50), min_size=1, max_size=30))
def test_ancestors_are_those_found_by_walking_up(draws: list[int]) -> None:
    parents = [-1, *(draw % (i + 1) for i, draw in enumerate(draws))]
    seen = ancestors(parents, len(parents) + 2)
    for index in range(len(parents)):
        walked, here = set(), index
        while here >= 0:
            walked.add(here)
            here = parents[here]
        assert set(seen[index].nonzero()[0].tolist()) == walked
