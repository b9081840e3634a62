"""A stream of work that several processes share: whoever is free takes the next piece, and results come back in order.

The first process deals pieces out and gathers results, both through a store; meanwhile it works as the others do.
Pieces and results are what JSON can hold. Never more than some pieces a process are under way, so memory is bounded
however long the stream is.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch.distributed as dist
from torch.distributed import PrefixStore, Store  # type: ignore[attr-defined]
from torch.distributed.rendezvous import rendezvous

from regard.children import MEETING
from regard.errors import LostOthersError
from regard.launch import Launch

_AHEAD = 3  # pieces a process that are dealt out before the oldest is done: nobody waits while the first works
_BLOCK = 1 << 22  # bytes of one value in the store, which takes no more than 16 MiB
_PAUSES = (0.001, 0.05)  # seconds between two looks into the store: at first, and after a while
_LONGEST_PAUSE = 1.0  # seconds between two looks for a word that may take hours, as many processes look
_END = object()

Do = Callable[[Any], Any]


@dataclass(frozen=True)
class Crew:
    """The processes that share a stream, seen from one of them; `check` raises if another is lost."""

    store: Store
    size: int
    check: Callable[[], None] = lambda: None


@contextmanager
def torchrun_store(launch: Launch) -> Iterator[Store]:
    """Connect to the store that torchrun keeps; raises `LostOthersError` if torchrun is lost while the block runs."""
    try:
        store, _, _ = next(rendezvous("env://", timeout=MEETING))
        # What an earlier attempt has left there has other names.
        yield PrefixStore(f"regard/{launch.attempt}/{launch.size}", store)
    except dist.DistError as error:
        reason = str(error).splitlines()[0]
        raise LostOthersError(f"process {launch.rank + 1} of {launch.size} lost torchrun: {reason}") from error


def await_word(store: Store, *words: str) -> str:
    """Wait for the first process to say one of some words; torchrun ends this one if that never comes."""
    pause = 0.02
    while True:
        for word in words:
            if store.check([word]):
                return word
        time.sleep(pause)
        pause = min(1.5 * pause, _LONGEST_PAUSE)


def share_out(crew: Crew, pieces: Iterable[Any], do: Do) -> Iterator[Any]:
    """Yield `do(piece)` for each piece, in order; this is the first process, and the others run `take_part`."""
    waiting = iter(pieces)
    own: dict[int, Any] = {}  # what this process has taken and done
    taken = _take(crew)
    dealt = done = 0
    ended = False
    while not ended or done < dealt:
        while not ended and dealt - done < _AHEAD * crew.size:
            piece = next(waiting, _END)
            ended = piece is _END
            if ended:
                crew.store.set("end", str(dealt))
            else:
                _put(crew.store, f"piece/{dealt}", piece)
                dealt += 1
        if done in own:
            yield own.pop(done)
            done += 1
        elif done < dealt and crew.store.check([f"result/{done}"]):
            yield _get(crew.store, f"result/{done}")
            done += 1
        elif taken < dealt:
            own[taken] = do(_get(crew.store, f"piece/{taken}"))
            taken = _take(crew)
        elif done < dealt:
            _await(crew, f"result/{done}")


def take_part(crew: Crew, do: Do) -> None:
    """Do pieces as long as there are any; this is not the first process."""
    while True:
        number = _take(crew)
        if not _await(crew, f"piece/{number}", number):
            return
        _put(crew.store, f"result/{number}", do(_get(crew.store, f"piece/{number}")))


def _take(crew: Crew) -> int:
    """Return the number of a piece that nobody else will do; it may not be there yet, or never."""
    return int(crew.store.add("taken", 1)) - 1


def _await(crew: Crew, key: str, number: int | None = None) -> bool:
    """Wait for a value to be there; False if it is that of a piece after the last."""
    pause, longest = _PAUSES
    while not crew.store.check([key]):
        if number is not None and crew.store.check(["end"]) and number >= int(crew.store.get("end")):
            return False
        crew.check()
        time.sleep(pause)
        pause = min(1.5 * pause, longest)
    return True


def _put(store: Store, key: str, value: Any) -> None:
    data = json.dumps(value)  # ASCII, so a character is a byte
    blocks = range(0, len(data), _BLOCK)
    for number, start in enumerate(blocks):
        store.set(f"{key}/{number}", data[start : start + _BLOCK])
    store.set(key, str(len(blocks)))  # last, as it says that all is there


def _get(store: Store, key: str) -> Any:
    """Return a value that is there, and remove it."""
    names = [f"{key}/{number}" for number in range(int(store.get(key)))]
    value = json.loads(b"".join(store.get(name) for name in names))
    for name in (key, *names):
        store.delete_key(name)
    return value
