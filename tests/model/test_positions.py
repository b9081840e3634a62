"""Positions (§3.5): values by hand, a table without end, learned rows."""

import math

import pytest
import torch

from regard.model.positions import LearnedPositions, SinusoidalPositions, sinusoids

ROUNDING = 1e-7  # the table is float32, made from float64


def test_sinusoids_are_the_papers_written_out_by_hand():
    # d_model 4: i = 0 turns once in 2π positions, i = 1 at pos / 10000^(2/4) = pos / 100.
    expected = [
        [0.0, 1.0, 0.0, 1.0],
        [math.sin(1), math.cos(1), math.sin(0.01), math.cos(0.01)],
        [math.sin(2), math.cos(2), math.sin(0.02), math.cos(0.02)],
    ]
    torch.testing.assert_close(sinusoids(3, 4), torch.tensor(expected), atol=ROUNDING, rtol=0)


@pytest.mark.parametrize(("position", "column"), [(7, 0), (7, 1), (100, 256), (100, 257), (5000, 510), (5000, 511)])
def test_any_entry_of_the_papers_table_follows_the_formula(position, column):
    angle = position / 10_000 ** (2 * (column // 2) / 512)
    expected = math.cos(angle) if column % 2 else math.sin(angle)
    assert sinusoids(position + 1, 512)[position, column].item() == pytest.approx(expected, abs=ROUNDING)


def test_an_odd_width_ends_in_a_sine():
    assert sinusoids(2, 3)[1].tolist() == pytest.approx(
        [math.sin(1), math.cos(1), math.sin(1 / 10_000 ** (2 / 3))], abs=ROUNDING
    )


def test_the_table_grows_and_its_beginning_stays():
    positions = SinusoidalPositions(8, length=4)
    first = positions(0, 4)
    assert positions(3, 6).shape == (6, 8)
    assert torch.equal(positions(0, 4), first)
    assert torch.equal(positions(0, 1000), sinusoids(1000, 8))
    assert torch.equal(positions(998, 2), sinusoids(1000, 8)[998:])


def test_a_table_that_grew_in_search_can_be_written_to_in_training():
    # As torch.distributed does when it gives all processes the same buffers.
    positions = SinusoidalPositions(8, length=4)
    with torch.inference_mode():
        positions(0, 9)
    assert not positions.table.is_inference()
    positions.table.copy_(sinusoids(positions.table.size(0), 8))


def test_the_table_grows_in_the_type_and_place_of_the_model():
    positions = SinusoidalPositions(8, length=4).to(torch.bfloat16)
    assert positions(0, 9).dtype == torch.bfloat16


def test_sinusoids_are_no_part_of_a_models_weights():
    positions = SinusoidalPositions(8)
    assert not positions.state_dict()
    assert not list(positions.parameters())


def test_learned_positions_are_rows_of_a_trained_table():
    positions = LearnedPositions(8, length=5)
    assert torch.equal(positions(1, 3), positions.table[1:4])
    positions(2, 2).sum().backward()
    assert positions.table.grad.sum(dim=1).tolist() == [0, 0, 8, 8, 0]


def test_past_the_end_the_last_learned_row_serves_on():
    positions = LearnedPositions(8, length=5)
    assert torch.equal(positions(3, 4), positions.table[[3, 4, 4, 4]])
    assert torch.equal(positions(100, 1), positions.table[4:])
