"""What computes the gradients of a batch: the compiled library, where it knows the model, or torch."""

from collections.abc import Sequence
from typing import Protocol

import torch

from regard.data.batches import Batch
from regard.machine import Machine
from regard.model.loss import Loss
from regard.model.transformer import Transformer
from regard.native.library import Library, find_library
from regard.training.native_learner import NativeLearner, can_learn
from regard.training.objective import training_loss
from regard.training.optimizer import Adam
from regard.training.output_sample import OutputSampler


class Learner(Protocol):
    """Adds up gradients of a model's weights."""

    @property
    def at_once(self) -> int:
        """How many batches' numbers it may hold at the same time, of those that it is given together."""

    def learn(
        self,
        batches: Sequence[Batch],
        seeds: Sequence[int],
        consistency: float = 0.0,
        sampler: OutputSampler | None = None,
    ) -> Loss:
        """Return the loss of some batches (objective.py), summed over their target tokens, and add its gradient.

        What dropout drops in a batch depends on its seed; with a sampler, so does what its softmax is over.
        """

    def gather(self) -> None:
        """Put everything that was added where the optimizer finds it."""


class TorchLearner:
    """Learns by torch's automatic differentiation: any model, any device."""

    def __init__(self, model: Transformer, smoothing: float, machine: Machine) -> None:
        self._model, self._smoothing, self._machine = model, smoothing, machine
        self.at_once = 1

    def learn(
        self,
        batches: Sequence[Batch],
        seeds: Sequence[int],
        consistency: float = 0.0,
        sampler: OutputSampler | None = None,
    ) -> Loss:
        """See `Learner`."""
        sums = torch.zeros(len(Loss._fields), dtype=torch.float64)
        for batch, seed in zip(batches, seeds, strict=True):
            torch.manual_seed(seed)
            sample = None if sampler is None else sampler.draw(batch.tgt, seed)
            with self._machine.autocast():
                loss = training_loss(self._model, batch, self._machine.device, self._smoothing, consistency, sample)
            loss.objective.backward()  # type: ignore[no-untyped-call]
            sums += torch.stack(loss).detach().to(sums)
        return Loss(*sums)

    def gather(self) -> None:
        """Do nothing: torch has put it there."""


def choose_learner(model: Transformer, optimizer: Adam, smoothing: float, machine: Machine) -> Learner:
    """Return what learns fastest here; the model's weights lie where the optimizer has laid them."""
    library = native_library_for(model, machine)
    if library is None:
        return TorchLearner(model, smoothing, machine)
    return NativeLearner(model, optimizer.weights, optimizer.gradient, smoothing, library)


def native_library_for(model: Transformer, machine: Machine) -> Library | None:
    """Return the compiled library, if there is one here that can train such a model."""
    library = find_library()
    if library is None or machine.device.type != "cpu" or machine.precision != "float32":
        return None
    return library if can_learn(model, library) else None
