"""The other processes that train on this machine: children of the first, told apart by their rank."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from torch.distributed import Store  # type: ignore[attr-defined]

from regard.children import import_function, start_children
from regard.errors import ProcessError, TrainingError
from regard.training.distributed import World, joined
from regard.training.stop import TrainingStopped

Work = Callable[..., None]
"""What a helper does, called with its `World` and the arguments; a function of a module, which helpers import."""

_ADVICE = "run the same command again to go on from the last checkpoint"


@contextmanager
def helped(processes: int, work: Work, arguments: tuple[Any, ...]) -> Iterator[World]:
    """Be the first of `processes` processes while the block runs; the others run `work(world, *arguments)`.

    Arguments are what JSON can hold. Raises what a helper raised, if that is the user's mistake, or `TrainingError`.
    """
    if processes == 1:
        yield World()
        return
    task = (f"{work.__module__}:{work.__name__}", arguments)
    try:
        with start_children(processes, join_and_work, task, _ADVICE) as children:
            children.await_all()
            with joined(0, processes, children.store) as world:
                yield world
    except ProcessError as error:
        raise TrainingError(str(error)) from error


def join_and_work(rank: int, size: int, store: Store, work: str, arguments: Sequence[Any]) -> None:
    """Do a helper's work, `module:function`, among the others."""
    with joined(rank, size, store) as world:
        with suppress(TrainingStopped):  # the first process says so
            import_function(work)(world, *arguments)
        threading.Event().wait()  # one that is slower may still need this one; the first knows when all are done
