"""The processes that train together: which of them this is, how they add up, and how they agree.

A step's pieces are dealt out to the processes, and gradients are summed over all of them, so that what is computed does
not depend on how many there are (but for the order of sums). Only the first process writes files and shows progress.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import HashStore, Store  # type: ignore[attr-defined]

from regard.children import MEETING
from regard.errors import LostOthersError

Item = TypeVar("Item")

_TIMEOUT = timedelta(minutes=30)  # the longest one process may be busy alone: validating, writing, preparing
_INTERFACE = "GLOO_SOCKET_IFNAME"


@dataclass(frozen=True)
class World:
    """A process among those that train together."""

    rank: int = 0
    size: int = 1
    local_rank: int | None = None  # under torchrun: its number on its machine, which is also that of its GPU

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

    def meet(self) -> None:
        """Wait until all processes are here."""
        self.sum(torch.zeros(1))


@contextmanager
def joined(
    rank: int, size: int, store: Store, *, local_rank: int | None = None, far: bool = False, cuda: bool = False
) -> Iterator[World]:
    """Join the other processes while the block runs; they find each other by the store.

    They are on this machine, unless they are `far`. What is on GPUs is added up by NCCL with `cuda`, everything else by
    gloo. Raises `LostOthersError` if one of the others is lost.
    """
    hook = sys.excepthook
    try:
        with nullcontext() if far else _loopback():
            _meet(rank, size, store, "cpu:gloo,cuda:nccl" if cuda else "gloo")
        yield World(rank, size, local_rank)
    except RuntimeError as error:
        if "gloo" not in str(error) and not isinstance(error, dist.DistError):
            raise
        reason = str(error).splitlines()[0]
        raise LostOthersError(f"process {rank + 1} of {size} lost the others: {reason}") from error
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()
        sys.excepthook = hook  # torch has put one of its own there


def _meet(rank: int, size: int, store: Store, backend: str) -> None:
    try:
        dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=MEETING)
    except RuntimeError:
        # Torch numbers the groups of a process, and those of the same number meet. One that failed is counted; only the
        # end of one that did not makes the count start anew. Without that, this process would never meet others again.
        dist.init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
        raise
    dist.distributed_c10d._set_pg_timeout(_TIMEOUT)


@contextmanager
def _loopback() -> Iterator[None]:
    """Let gloo talk over the machine's own network, which needs no name that resolves; unless somebody has chosen."""
    if _INTERFACE in os.environ:
        yield
        return
    os.environ[_INTERFACE] = "lo0" if sys.platform == "darwin" else "lo"
    try:
        yield
    finally:
        del os.environ[_INTERFACE]
