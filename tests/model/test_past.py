"""What self-attention has seen: appended in place, and yet nobody's past is changed by another's future."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.model.past import Past


def position(number, sequences=2):
    keys = torch.full((sequences, 1, 1, 3), float(number))
    return keys, -keys[..., :2]


def grown(numbers, sequences=2):
    past = Past.empty(*position(0, sequences))
    for number in numbers:
        past = past.append(*position(number, sequences))
    return past


def read(past, sequence=0, count=None):
    keys, values = past.last(count)
    assert torch.equal(keys[..., :2], -values)
    return keys[sequence, 0, :, 0].tolist()


@given(st.lists(st.integers(1, 99), max_size=60), st.integers(1, 70))
def test_what_was_appended_is_there_in_order(numbers, count):
    past = grown(numbers)
    assert read(past) == numbers
    assert read(past, count=count) == numbers[-count:]


def test_appending_writes_into_room_that_is_there():
    past = grown([1, 2, 3])
    assert past.append(*position(4)).buffers is past.buffers


def test_two_futures_of_one_past_do_not_meet():
    past = grown([1, 2, 3])
    one, other = past.append(*position(4)), past.append(*position(5))
    assert (read(past), read(one), read(other)) == ([1, 2, 3], [1, 2, 3, 4], [1, 2, 3, 5])
    assert read(one.append(*position(6))) == [1, 2, 3, 4, 6]
    assert read(other) == [1, 2, 3, 5]


def test_selected_sequences_have_buffers_of_their_own():
    def numbers(*each):
        keys = torch.tensor(each, dtype=torch.float32).view(-1, 1, 1, 1)
        return keys, keys

    past = Past.empty(*numbers(0, 0, 0)).append(*numbers(1, 2, 3))
    chosen = past.select(torch.tensor([2, 2, 0])).append(*numbers(7, 8, 9))
    assert chosen.last()[0][:, 0, :, 0].tolist() == [[3, 7], [3, 8], [1, 9]]
    assert past.append(*numbers(4, 5, 6)).last()[0][:, 0, :, 0].tolist() == [[1, 4], [2, 5], [3, 6]]


@given(st.integers(1, 20), st.integers(1, 80))
def test_what_need_not_be_remembered_is_forgotten_in_time(remember, length):
    past = Past.empty(*position(0))
    for number in range(length):
        past = past.append(*position(number), remember)
        assert read(past, count=remember) == list(range(max(0, number + 1 - remember), number + 1))
        assert past.buffers.keys.size(2) <= remember + 16
