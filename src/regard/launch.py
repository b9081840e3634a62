"""What torchrun tells a process that it has started: which of how many it is. Needs no torch."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from regard.errors import UserError

_MARK = "TORCHELASTIC_RUN_ID"  # torchrun's alone; RANK and its like are also set by others, for other ends


@dataclass(frozen=True)
class Launch:
    """A process among those that torchrun has started, on this machine and on others."""

    rank: int
    size: int
    local_rank: int  # among those of this machine
    local_size: int
    attempt: int = 0  # how often torchrun has started all of them anew

    @property
    def is_first(self) -> bool:
        """Say whether this is the one that reads the command, writes and shows."""
        return self.rank == 0

    @property
    def is_one_machine(self) -> bool:
        """Say whether all processes are on this machine."""
        return self.local_size == self.size

    def refuse_processes(self, processes: int | None) -> None:
        """Raise `UserError` if a number of processes was asked for: torchrun has started them already."""
        if processes is not None:
            raise UserError(
                f"--processes {processes} goes without torchrun, which has started {self.size} already; leave it out, "
                "or choose their number by --nproc-per-node"
            )


def read_launch(environment: Mapping[str, str] = os.environ) -> Launch | None:
    """Return what torchrun says about this process; None if it was not started by it.

    Raises `UserError` for an environment that makes no sense.
    """
    if _MARK not in environment:
        return None
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
    try:
        rank, size, local_rank, local_size = (int(environment[name]) for name in names)
        attempt = int(environment.get("TORCHELASTIC_RESTART_COUNT", 0))
    except (KeyError, ValueError):
        rank = size = local_rank = local_size = attempt = -1
    if not (0 <= local_rank < local_size <= size and 0 <= rank < size and attempt >= 0):
        told = ", ".join(f"{name}={environment.get(name, '')}" for name in names)
        raise UserError(f"{_MARK} is set, as torchrun does, but the rest is not what it says: {told}")
    return Launch(rank, size, local_rank, local_size, attempt)
