"""One step of training: the gradients of a batch, piece by piece, and one change of the weights."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from regard.data.batches import Batch, Step, collate
from regard.data.store import Store
from regard.machine import Machine
from regard.model.loss import Loss
from regard.model.transformer import Transformer
from regard.seeds import mix
from regard.settings import TrainingSettings
from regard.training.distributed import World
from regard.training.learner import Learner, choose_learner
from regard.training.objective import consistency_at
from regard.training.optimizer import Adam
from regard.training.output_sample import OutputSampler, make_sampler
from regard.training.risk import RiskLearner


@dataclass(frozen=True)
class StepReport:
    """What a step did: losses summed over its target tokens, and the norm of the mean gradient a token."""

    objective: float
    smoothed: float
    plain: float
    tokens: int
    norm: float
    stop: bool  # a process was asked to stop

    @property
    def is_finite(self) -> bool:
        """Say whether loss and gradient were finite, so that the weights were changed."""
        return math.isfinite(self.norm) and math.isfinite(self.objective)


class Stepper:
    """A model with its optimizer: what changes the weights. Steps behind the last of `settings.steps` lower risk."""

    is_sharded = False  # every process has all of the model
    sampler: OutputSampler | None = None  # of the tokens that a softmax is over; None: all

    def __init__(
        self,
        model: Transformer,
        store: Store,
        settings: TrainingSettings,
        machine: Machine,
        world: World,
        risk: RiskLearner | None = None,
    ) -> None:
        self.model, self.store, self.settings, self.machine, self.world = model, store, settings, machine, world
        self.optimizer = Adam(model, settings)
        self.learner: Learner = choose_learner(model, self.optimizer, settings.label_smoothing, machine)
        self.sampler = make_sampler(store, model.output.weight.size(0), settings.softmax_tokens)
        self.risk = risk

    def learn(self, batches: Sequence[Batch], seeds: Sequence[int], consistency: float) -> Loss:
        """Return the loss of some batches and add its gradient to what was added up before."""
        return self.learner.learn(batches, seeds, consistency, self.sampler)

    def forget(self) -> None:
        """Forget the gradients that were added up."""
        self.learner.gather()
        self.optimizer.clear()

    def take(self, step: Step, number: int, rate: float, stop: bool = False) -> StepReport:
        """Add up the gradients of this process's pieces and of the others', then change the weights once.

        Random numbers depend on (seed, step number, piece) alone, so it does not matter which process has a piece.
        `stop` is this process's wish; the report says whether any process has it.
        """
        sums = torch.zeros(5, dtype=torch.float64)  # the three losses, tokens, wishes to stop
        sums[4] = stop
        own = self.world.share(range(len(step)))
        if own:
            batches = [collate(self.store, step[piece]) for piece in own]
            seeds = [mix(self.settings.seed, number, piece) for piece in own]
            if number > self.settings.steps and self.risk is not None:
                losses = self.risk.learn(self.learner, batches, seeds, self.sampler)
            else:
                losses = self.learn(batches, seeds, consistency_at(number, self.settings))
            sums[:3] += torch.stack(losses)
            sums[3] += sum(batch.tokens for batch in batches)
        self.learner.gather()
        self.world.sum(sums)
        self.world.sum(self.optimizer.gradient)
        objective, smoothed, plain, tokens, stops = sums.tolist()
        norm = self._change_weights(tokens, rate, is_loss_finite=math.isfinite(objective))
        return StepReport(objective, smoothed, plain, int(tokens), norm, stop=stops > 0)

    def _change_weights(self, tokens: float, rate: float, is_loss_finite: bool) -> float:
        """Step by the mean gradient a token, if it and the loss are finite; return its norm; clear the gradients."""
        norm = self.gradient_norm() / tokens
        if not (is_loss_finite and math.isfinite(norm)):
            self.optimizer.clear()
            return norm
        largest = self.settings.clip_norm
        clip = largest / norm if largest is not None and norm > largest else 1.0
        self.optimizer.step(rate, clip / tokens)
        return norm

    def gradient_norm(self) -> float:
        """Return the norm of the gradient as it was added up."""
        return float(torch.linalg.vector_norm(self.optimizer.gradient))

    def whole(self) -> tuple[Transformer, Adam]:
        """Return the model and its optimizer, as a checkpoint holds them; all processes call this together."""
        return self.model, self.optimizer

    def take_over(self, model: Transformer, optimizer: Adam) -> None:
        """Go on with what has been read into the model and the optimizer that `whole` returned."""
