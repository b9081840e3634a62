"""A stream that processes share: all results, in order, whoever does what, and never much of it at a time."""

import threading
import time
from collections.abc import Iterator

import pytest
from torch.distributed import HashStore

from regard import sharing
from regard.errors import LostOthersError
from regard.sharing import Crew, share_out, take_part


def double(piece: list[int]) -> list[int]:
    return [2 * number for number in piece]


def shared(pieces, size: int, do=double, slow=0.0) -> Iterator:
    """Share a stream with threads in the place of the other processes."""
    crew = Crew(HashStore(), size)

    def slowly(piece):
        time.sleep(slow)
        return do(piece)

    others = [threading.Thread(target=take_part, args=(crew, slowly)) for _ in range(size - 1)]
    for one in others:
        one.start()
    yield from share_out(crew, pieces, do)
    for one in others:
        one.join()
    assert crew.store.num_keys() <= 2  # how many were taken, and where the end is


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("pieces", [0, 1, 2, 3, 13])
def test_results_come_in_order_whoever_is_slow(size, pieces):
    expected = [[2 * number] for number in range(pieces)]
    assert list(shared(([number] for number in range(pieces)), size)) == expected
    assert list(shared(([number] for number in range(pieces)), size, slow=0.01)) == expected


def test_everybody_works():
    workers = set()

    def remember(piece):
        workers.add(threading.get_ident())
        time.sleep(0.01)
        return piece

    assert list(shared(iter(range(30)), 3, do=remember)) == list(range(30))
    assert len(workers) == 3


def test_a_large_piece_goes_through_in_blocks(monkeypatch):
    monkeypatch.setattr(sharing, "_BLOCK", 7)
    texts = ["", "ä🦊\x00" * 50, "x" * 7]
    assert list(shared(iter(texts), 2, do=lambda text: text + "!")) == [f"{text}!" for text in texts]


def test_only_some_pieces_are_read_ahead():
    read = 0

    def endless():
        nonlocal read
        while True:
            read += 1
            yield read

    crew = Crew(HashStore(), 2)
    found = share_out(crew, endless(), lambda piece: piece)
    for number in range(1, 50):
        assert next(found) == number
        assert read - number <= 6
    assert crew.store.num_keys() < 20


def test_a_lost_process_ends_the_sharing():
    def lost() -> None:
        raise LostOthersError("gone")

    crew = Crew(HashStore(), 2, lost)
    crew.store.add("taken", 1)  # by somebody who is no more
    with pytest.raises(LostOthersError):
        list(share_out(crew, iter("abc"), str.upper))
