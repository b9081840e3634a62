"""The processes that train together: which of them this is, how they add up, and how they agree.

A step's pieces are dealt out to the processes, and gradients are summed over all of them, so that what is computed does
not depend on how many there are (but for the order of sums). Only the first process writes files and shows progress.
"""

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, TypeVar

import torch.distributed as dist
from torch import Tensor, multiprocessing

from regard.errors import TrainingError

Item = TypeVar("Item")

_TIMEOUT = timedelta(minutes=30)  # the longest one process may be busy alone: validating, writing, preparing


@dataclass(frozen=True)
class World:
    """This process among those that train together."""

    rank: int = 0
    size: int = 1

    @property
    def is_first(self) -> bool:
        """Say whether this is the one that writes."""
        return self.rank == 0

    def share(self, items: Sequence[Item]) -> Sequence[Item]:
        """Return this process's part of items that all have."""
        return items[self.rank :: self.size]

    def gather(self, part: Sequence[Item]) -> list[Item]:
        """Put the parts together again that `share` dealt out, in their order, for every process."""
        if self.size == 1:
            return list(part)
        parts: list[list[Item]] = [[] for _ in range(self.size)]
        dist.all_gather_object(parts, list(part))
        total = sum(map(len, parts))
        return [parts[i % self.size][i // self.size] for i in range(total)]

    def sum(self, tensor: Tensor) -> None:
        """Add up a tensor over all processes, in place; all get the same bits."""
        if self.size > 1:
            dist.all_reduce(tensor)

    def from_first(self, value: Item) -> Item:
        """Return the first process's value in all of them."""
        if self.size == 1:
            return value
        box = [value]
        dist.broadcast_object_list(box, src=0)
        return box[0]


@contextmanager
def joined(rank: int, size: int, rendezvous: str, backend: str = "gloo") -> Iterator[World]:
    """Join the other processes while the block runs; says which process failed whom if one is lost."""
    if size == 1:
        yield World()
        return
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group(backend, init_method=rendezvous, rank=rank, world_size=size, timeout=_TIMEOUT)
    try:
        yield World(rank, size)
    except RuntimeError as error:
        if "gloo" not in str(error) and "Connection" not in str(error):
            raise
        raise TrainingError(f"process {rank} of {size} lost the others: {str(error).splitlines()[0]}") from error
    finally:
        dist.destroy_process_group()


@contextmanager
def helped(processes: int, work: Callable[..., None], arguments: tuple[Any, ...]) -> Iterator[World]:
    """Be the first of `processes` processes while the block runs; the others run `work(rank, size, rendezvous, …)`.

    They are started here, on this machine, and end with this process however it ends.
    """
    if processes == 1:
        yield World()
        return
    with tempfile.TemporaryDirectory(prefix="regard-") as folder:
        rendezvous = f"file://{Path(folder) / 'rendezvous'}"
        context = multiprocessing.get_context("spawn")
        others: list[SpawnProcess] = [
            context.Process(target=work, args=(rank, processes, rendezvous, *arguments), daemon=True)
            for rank in range(1, processes)
        ]
        for other in others:
            other.start()
        try:
            with joined(0, processes, rendezvous) as world:
                yield world
        finally:
            for other in others:
                other.join(timeout=5)
                if other.is_alive():
                    other.terminate()
