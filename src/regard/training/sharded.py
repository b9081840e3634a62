"""Training a model that does not fit one device: each process holds a part of every weight (FSDP).

Weights, gradients and Adam's running means are cut along their first axis, a part for each process. A layer's weights
are put together when it computes and let go again; its gradients are summed and cut at once. What is computed is the
same as where nothing is cut, but for the order of sums. Checkpoints are whole, so that they load on any number of
processes.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor

from regard.data.batches import Step, collate
from regard.data.store import Store
from regard.machine import Machine
from regard.model.transformer import Transformer
from regard.seeds import mix
from regard.settings import TrainingSettings
from regard.training.distributed import World
from regard.training.learner import TorchLearner
from regard.training.objective import consistency_at, training_loss
from regard.training.optimizer import AVERAGE, Adam, average_decay
from regard.training.step import Stepper, StepReport


def shard(model: Transformer, machine: Machine, world: World) -> None:
    """Cut a model's weights, layer by layer, and move this process's parts to its device."""
    mesh = init_device_mesh(machine.device.type, (world.size,))
    for layer in (*model.encoder.layers, *model.decoder.layers):
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.set_gradient_divide_factor(1.0)  # gradients are summed over tokens, never averaged over processes
            module.set_force_sum_reduction_for_comms(True)  # and gloo knows no other way


class ShardedAdam(Adam):
    """Adam over this process's part of each weight."""

    def __init__(self, model: nn.Module, settings: TrainingSettings) -> None:
        self.beta1, self.beta2, self.epsilon = settings.beta1, settings.beta2, settings.epsilon
        self.weight_decay = settings.weight_decay
        self.parts: dict[str, DTensor] = dict(model.named_parameters())  # type: ignore[arg-type]
        self.decay = average_decay(settings)
        kinds = ["mean", "square"] if self.decay is None else ["mean", "square", AVERAGE]
        # By kind, as a checkpoint names them; the average begins at the first step.
        self.running = {
            kind: {name: torch.zeros_like(part.to_local()) for name, part in self.parts.items()} for kind in kinds
        }
        self.steps = 0

    @torch.no_grad()
    def step(self, rate: float, scale: float = 1.0) -> None:
        """Change the weights by the gradient times `scale`, and clear the gradient; see `Adam`."""
        names = [name for name, part in self.parts.items() if part.to_local().numel()]  # a small weight has few parts
        weights = [self.parts[name].to_local() for name in names]
        gradients = [self.gradient_of(name) for name in names]
        running = {kind: [parts[name] for name in names] for kind, parts in self.running.items()}
        self._change(weights, gradients, running["mean"], running["square"], rate, scale)
        if AVERAGE in running:
            self._average(running[AVERAGE], weights)
        self.clear()

    def gradient_of(self, name: str) -> Tensor:
        """Return this process's part of a weight's gradient, summed over all processes."""
        gradient = self.parts[name].grad
        assert isinstance(gradient, DTensor)
        return gradient.to_local()

    def clear(self) -> None:
        """Forget the gradient."""
        for part in self.parts.values():
            part.grad = None

    def squared_norm(self) -> float:
        """Return the sum of squares of this process's part of the gradient."""
        return sum(float(self.gradient_of(name).double().square().sum()) for name in self.parts)

    def local_bytes(self) -> int:
        """Return the bytes of weights and running means that this process holds between two steps."""
        kept = [part.to_local() for part in self.parts.values()]
        kept += [part for parts in self.running.values() for part in parts.values()]
        return sum(part.numel() * part.element_size() for part in kept)


class ShardedStepper(Stepper):
    """A model of which each process holds a part, with its optimizer."""

    is_sharded = True
    optimizer: ShardedAdam

    def __init__(
        self,
        build: Callable[[], Transformer],
        store: Store,
        settings: TrainingSettings,
        machine: Machine,
        world: World,
    ) -> None:
        """Make one of the model that `build` returns; whole ones are built anew each time one is needed."""
        self.build = build
        self.model, self.store, self.settings, self.machine, self.world = build(), store, settings, machine, world
        shard(self.model, machine, world)
        self.optimizer = ShardedAdam(self.model, settings)
        self.learner = TorchLearner(self.model, settings.label_smoothing, machine)

    def take(self, step: Step, number: int, rate: float, stop: bool = False) -> StepReport:
        """Add up the gradients of all pieces, then change the weights once; see `Stepper`.

        Processes put layers together in step with each other. So one that has no piece left while others have, computes
        one again that counts for nothing.
        """
        sums = torch.zeros(5, dtype=torch.float64)  # the three losses, tokens, wishes to stop
        sums[4] = stop
        smoothing, consistency = self.settings.label_smoothing, consistency_at(number, self.settings)
        own = self.world.share(range(len(step)))
        for turn in range(-(-len(step) // self.world.size)):
            counts = turn < len(own)
            piece = own[turn] if counts else 0
            torch.manual_seed(mix(self.settings.seed, number, piece))
            batch = collate(self.store, step[piece])
            with self.machine.autocast():
                loss = training_loss(self.model, batch, self.machine.device, smoothing, consistency)
            (loss.objective if counts else 0 * loss.objective).backward()  # type: ignore[no-untyped-call]
            if counts:
                sums[:3] += torch.stack(loss).detach().to(sums)
                sums[3] += batch.tokens
        self.world.sum(sums)
        objective, smoothed, plain, tokens, stops = sums.tolist()
        norm = self._change_weights(tokens, rate, is_loss_finite=math.isfinite(objective))
        return StepReport(objective, smoothed, plain, int(tokens), norm, stop=stops > 0)

    def gradient_norm(self) -> float:
        """Return the norm of the gradient over all processes' parts."""
        squares = torch.tensor([self.optimizer.squared_norm()], dtype=torch.float64)
        self.world.sum(squares)
        return math.sqrt(squares.item())

    # ---- whole again -------------------------------------------------------------------------------------------------

    def whole(self) -> tuple[Transformer, Adam]:
        """Put the parts of all processes together, into a model and an optimizer that are not cut."""
        model = self.build()
        for name, weight in model.named_parameters():
            weight.detach().copy_(self.optimizer.parts[name].full_tensor().detach())
        optimizer = Adam(model, self.settings)
        state = optimizer.state()
        for name, part in self.optimizer.parts.items():
            for kind, running in self.optimizer.running.items():
                cut = DTensor.from_local(
                    running[name], part.device_mesh, part.placements, shape=part.shape, stride=part.stride()
                )
                state[f"{name}.{kind}"].copy_(cut.full_tensor())
        optimizer.steps = self.optimizer.steps
        return model, optimizer

    @torch.no_grad()
    def take_over(self, model: Transformer, optimizer: Adam) -> None:
        """Take this process's parts of a whole model's weights and of Adam's state."""
        state = optimizer.state()
        for name, weight in model.named_parameters():
            part = self.optimizer.parts[name].to_local()
            part.copy_(self._cut(weight, part))
            for kind, running in self.optimizer.running.items():
                running[name].copy_(self._cut(state[f"{name}.{kind}"], part))
        self.optimizer.steps = optimizer.steps

    def _cut(self, whole: Tensor, part: Tensor) -> Tensor:
        """Return the rows of a whole tensor that this process holds: each has as many, the last ones what is left."""
        rows = -(-whole.size(0) // self.world.size)
        start = min(self.world.rank * rows, whole.size(0))
        return whole.narrow(0, start, part.size(0))
