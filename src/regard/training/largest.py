"""The largest batch, tried before the first step, and the budget that fits if it does not.

Memory that runs out shows itself in two ways. A GPU, or a limit of the system, refuses an allocation; then smaller
budgets are tried until one fits. An operating system that promises more than it has kills the process instead, and
nobody is left to say why; so pieces are tried from small to large, and a size that the measured growth says will not
fit into the memory that is left is not tried at all.
"""

import os

import torch

from regard.data.batches import Batch, collate, largest_pieces
from regard.data.store import Rows
from regard.errors import UserError
from regard.system import memory_available, memory_peak
from regard.training.step import Stepper

_SHARE = 0.95  # of the memory that is left: others want some as well
_MARGIN = 0.7  # of the largest budget that fitted: memory falls to pieces over many batches of many shapes
_TRIES = 6  # halvings of the interval in which the budget that fits lies


def try_largest_batch(stepper: Stepper) -> None:
    """Compute the largest pieces once, before hours are spent.

    All processes try together, as they will train together. Raises `UserError` in all of them, with the budget that
    fits, if memory runs out in one.
    """
    wanted, store, trial = stepper.settings.piece_tokens, stepper.store, _Trial(stepper)
    if trial.fits(wanted):
        return
    smallest = store.longest  # a piece holds one pair at least
    if smallest >= wanted or not trial.fits(smallest):
        raise UserError(
            f"not even a piece of one pair ({smallest:,} tokens) fits into memory; lower data.max_length, choose a "
            "smaller model, or fewer --processes"
        )
    fitting, too_many = smallest, wanted
    for _ in range(_TRIES):
        middle = (fitting + too_many) // 2
        fitting, too_many = (middle, too_many) if trial.fits(middle) else (fitting, middle)
    fitting = max(smallest, int(_MARGIN * fitting))
    raise UserError(
        f"a piece of {wanted:,} tokens does not fit into memory, one of {fitting:,} does: --set "
        f"training.micro_batch_tokens={fitting} (pieces add up, so that the batch stays the same)"
    )


def is_out_of_memory(error: Exception) -> bool:
    """Say whether this is how Python or torch tell that memory has run out."""
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "memory" in str(error).lower())


class _Trial:
    """Tries pieces, and learns from them what a larger one will take."""

    def __init__(self, stepper: Stepper) -> None:
        self.stepper = stepper
        self._most = 0  # positions of the largest piece so far; what it took is kept in the process (machine.py)
        self._bytes = 0.0  # for each position more
        # torchrun tells how many processes share this machine's memory, where there are several machines.
        self._neighbours = int(os.environ.get("LOCAL_WORLD_SIZE", stepper.world.size))

    def fits(self, piece_tokens: int) -> bool:
        """Say whether the largest pieces of a budget can be computed in all processes at once."""
        return all(self._try_growing(rows) for rows in largest_pieces(self.stepper.store, piece_tokens))

    def _try_growing(self, rows: Rows) -> bool:
        """Compute a piece, from a few of its rows to all."""
        count = 1
        while count < len(rows):
            if not self._try(rows[:count]):
                return False
            count *= 2
        return self._try(rows)

    def _try(self, rows: Rows) -> bool:
        """Compute a piece, unless what others took says that it will not fit into the memory that is left."""
        batch = collate(self.stepper.store, rows)
        more = batch.src.size + batch.tgt.size - self._most
        needed = self._bytes * more if more > 0 else 0
        if not self._everywhere(needed <= _SHARE * memory_available() / self._neighbours):
            return False
        before = memory_peak()
        if not self._everywhere(_compute(self.stepper, batch)):
            return False
        if more > 0:
            self._most += more
            self._bytes = max(self._bytes, (memory_peak() - before) / more)
        return True

    def _everywhere(self, holds: bool) -> bool:
        """Say whether something holds in all processes, so that they go on alike."""
        failures = torch.tensor([0.0 if holds else 1.0], dtype=torch.float64)
        self.stepper.world.sum(failures)
        return float(failures) == 0


def _compute(stepper: Stepper, batch: Batch) -> bool:
    """Compute a batch's gradients and forget them; False if memory runs out.

    As many of them as a step has to hold at the same time.
    """
    pieces = stepper.world.share(range(stepper.settings.pieces))
    together = max(1, min(len(pieces), stepper.learner.at_once))
    try:
        stepper.learn([batch] * together, range(together), stepper.settings.consistency)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        return False
    finally:
        stepper.forget()
    return True
