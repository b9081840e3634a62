"""Training under torchrun: it has started all processes, here and elsewhere, and watches over them.

The first process reads the command, prepares the data and chooses; the others wait for its word, however long that
takes, and then do as helpers do. If one is lost, torchrun ends the others and, with --max-restarts, starts all anew:
they go on from the last checkpoint as after any other kill.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch.distributed import Store  # type: ignore[attr-defined]

from regard.launch import Launch
from regard.sharing import await_word, torchrun_store
from regard.training.distributed import World, joined
from regard.training.helpers import Work, helped

Meeting = Callable[[int, Work, tuple[Any, ...]], AbstractContextManager[World]]
"""Brings the first process together with the others, whoever starts them; see `helped`."""

_TASK, _FINISHED = "task", "finished"


@contextmanager
def leading(launch: Launch | None) -> Iterator[Meeting]:
    """Give the first process what brings it together with the others: torchrun's, or helpers that it starts itself.

    When the block ends well, those that torchrun has started are told that all is done.
    """
    if launch is None:
        yield helped
        return
    with torchrun_store(launch) as store:

        def call(processes: int, work: Work, arguments: tuple[Any, ...]) -> AbstractContextManager[World]:
            store.set(_TASK, json.dumps(arguments))
            return _joined(launch, store)

        yield call
        store.set(_FINISHED, "")


def follow(launch: Launch, work: Work) -> None:
    """Wait for the first process's word, run `work(world, *arguments)`, and return when the first has finished.

    Raises `LostOthersError` if the others are lost.
    """
    with torchrun_store(launch) as store:
        if await_word(store, _TASK, _FINISHED) == _TASK:
            with _joined(launch, store) as world:
                work(world, *json.loads(store.get(_TASK)))
            await_word(store, _FINISHED)


def _joined(launch: Launch, store: Store) -> AbstractContextManager[World]:
    if launch.size == 1:
        return nullcontext(World(local_rank=launch.local_rank))
    far, cuda = not launch.is_one_machine, torch.cuda.is_available()
    return joined(launch.rank, launch.size, store, local_rank=launch.local_rank, far=far, cuda=cuda)
