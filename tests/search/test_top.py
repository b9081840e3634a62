"""The largest scores of a row, against torch's own."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.search.top import top


@given(
    rows=st.integers(1, 5),
    width=st.sampled_from([1, 2, 63, 64, 65, 400, 640, 1000, 4097]),
    count=st.integers(1, 9),
    seed=st.integers(0, 10**6),
)
def test_values_and_places_are_those_of_topk(rows, width, count, seed):
    count = min(count, width)
    scores = torch.randn(rows, width, generator=torch.Generator().manual_seed(seed))
    values, places = top(scores, count)
    expected = scores.topk(count, dim=1)
    assert torch.equal(values, expected.values)
    assert torch.equal(places, expected.indices)  # no two of these numbers are the same


@given(st.integers(0, 10**6))
def test_equal_scores_and_minus_infinity_are_found_at_their_places(seed):
    scores = torch.randint(-2, 2, (3, 1000), generator=torch.Generator().manual_seed(seed)).float()
    scores[scores == -2] = float("-inf")
    values, places = top(scores, 5)
    assert torch.equal(values, scores.topk(5, dim=1).values)
    assert torch.equal(values, scores.gather(1, places))
    assert all(len(set(row)) == 5 for row in places.tolist())


@pytest.mark.parametrize("column", [0, 70, 999])
def test_a_score_that_is_no_number_comes_first_so_that_it_is_noticed(column):
    scores = torch.zeros(2, 1000)
    scores[1, column] = float("nan")
    values, _ = top(scores, 2)
    assert values.isnan().tolist() == [[False, False], [True, False]]
