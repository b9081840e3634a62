"""The training loop (§5): the only one.

Every random number is a function of the seed, the step and the piece of the step. So a resumed run needs no saved
generator, and a killed one continues bit for bit.
"""

import math
import time
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path

import torch

from regard.data.batches import Position, Step, steps
from regard.data.prepare import Prepared, open_prepared, prepare
from regard.errors import TrainingError, UserError
from regard.launch import Launch, read_launch
from regard.machine import Machine, choose_machine, release_freed_memory
from regard.model.build import build_model
from regard.model.transformer import Transformer, count_weights
from regard.model_folder import FACTS, read_settings
from regard.progress import Display, QuietDisplay, open_display
from regard.seeds import mix
from regard.settings import Settings
from regard.system import memory_used
from regard.training.checkpoint import (
    TrainingState,
    read_checkpoint,
    write_checkpoint,
)
from regard.training.distributed import World
from regard.training.finish import finish
from regard.training.kept import KeptCheckpoints
from regard.training.largest import is_out_of_memory, try_largest_batch
from regard.training.log import Interval, Log, require_tensorboard
from regard.training.optimizer import learning_rate
from regard.training.origin import Origin
from regard.training.processes import Workforce, choose_workforce, launched_workforce
from regard.training.retranslation import retranslate
from regard.training.risk import RiskLearner
from regard.training.run import Run, open_run, with_absolute_paths
from regard.training.step import Stepper, StepReport
from regard.training.stop import StopRequest, TrainingStopped, stop_on_signal
from regard.training.torchrun import follow, leading
from regard.training.validation import pick_sentences, validate, validations_since_best

_SKIPS_IN_A_ROW = 20  # steps without a finite gradient, after which training ends
_LOCK_PATIENCE = 30.0  # seconds in which processes that torchrun ends have ended: then it kills them
_LINES_SHOWN = 8
_TIDY_STEPS = 100  # after which free memory is handed back to the system


def train(
    settings: Settings,
    out: Path | str,
    *,
    origin: Origin | None = None,
    display: Display | None = None,
    device: str = "auto",
    processes: int | None = None,
    threads: int | None = None,
    tensorboard: bool = False,
) -> Path:
    """Train a model by a recipe, or go on with a training that was stopped; return the finished model's folder.

    With `origin` the first weights are that model's (finetune.py). On a CPU, unset `processes` and `threads` are chosen
    to suit the machine. Under torchrun every process calls this, and all return when the model is there.
    """
    launch = read_launch()
    if launch is not None:
        launch.refuse_processes(processes)
        if not launch.is_first:
            follow_training(launch)
            return Run(Path(out)).model
    display = display or open_display()
    if not settings.data.train:
        raise UserError("data.train: no training corpus; give --train SOURCE TARGET, or [[data.train]] in the recipe")
    if settings.data.retranslation_steps and (launch is not None or origin is not None):
        raise UserError(
            "data.retranslation_steps: only for a training from nothing that is not started by torchrun; write such "
            "text with 'regard translate', and name it in [[data.train]]"
        )
    if tensorboard:
        require_tensorboard()
    settings = with_absolute_paths(settings)
    # Those that torchrun has ended in order to start all anew may still hold the folder, on another machine.
    patience = 0.0 if launch is None else _LOCK_PATIENCE
    with leading(launch) as meeting, open_run(Path(out), settings, origin, patience) as run:
        train_helper = partial(train, display=display, device=device, processes=processes, threads=threads)
        text = retranslate(settings, run, train_helper, display, device, threads)
        prepared = prepare(text, run.folder, display)
        if (run.model / FACTS).exists():
            display.say(f"this training is finished: {run.model}")
            return run.model
        workforce = _choose_workforce(run, settings, prepared, launch, device, processes, threads)
        local_rank = None if launch is None else launch.local_rank
        machine = choose_machine(device, settings.training.precision, workforce.threads, local_rank)
        display.say(f"{machine.describe()} · {workforce.describe()}")
        if (pieces := settings.training.pieces) < workforce.processes:
            display.say(
                f"a step is cut into {pieces} pieces for {workforce.processes} processes: some have nothing to do; "
                f"try --set training.micro_batch_tokens={settings.training.batch_tokens // workforce.processes}"
            )
        with meeting(workforce.processes, _help, (str(run.folder), device, workforce.threads)) as world:
            training = Training(settings, run, prepared, machine, world, display)
            display.say(f"model: {count_weights(training.model):,} weights")
            training.go_on()
            board = run.tensorboard if tensorboard else None
            with stop_on_signal() as stop, Log(run.log, training.state.step, board) as log:
                training.run_steps(log, stop)
            state = training.state
            del training  # weights, gradients and Adam's means: the model is made of what checkpoints hold
        release_freed_memory()
        return finish(run, settings, prepared, state, machine, display)


def _choose_workforce(
    run: Run,
    settings: Settings,
    prepared: Prepared,
    launch: Launch | None,
    device: str,
    processes: int | None,
    threads: int | None,
) -> Workforce:
    if launch is not None:
        return launched_workforce(run, launch, threads)
    machine = choose_machine(device, settings.training.precision, threads)
    return choose_workforce(run, settings, prepared, machine, processes, threads)


def follow_training(launch: Launch) -> None:
    """Train as one of the processes that torchrun has started, not the first; return when the model is there."""
    follow(launch, _help)


def _help(world: World, folder: str, device: str, threads: int) -> None:
    """Train as one of the processes that are not the first; that one has prepared everything."""
    run = Run(Path(folder))
    if not run.settings.exists():
        raise UserError(f"{folder}: not there; a training on several machines needs a disk that all of them share")
    settings = read_settings(run.settings)
    machine = choose_machine(device, settings.training.precision, threads, world.local_rank)
    training = Training(settings, run, open_prepared(run.folder), machine, world, QuietDisplay())
    training.go_on()
    with stop_on_signal() as stop:  # from torchrun; helpers ignore signals, as the first process decides
        training.run_steps(None, stop)


class Training:
    """A model in training, in one of the processes that train it, and how far it is."""

    def __init__(
        self, settings: Settings, run: Run, data: Prepared, machine: Machine, world: World, display: Display
    ) -> None:
        self.settings, self.run, self.data, self.world, self.display = settings, run, data, world, display
        self.machine = machine
        self.store = data.training_store(settings.training.seed)
        torch.manual_seed(mix(settings.training.seed))
        self.stepper = self._make_stepper()
        release_freed_memory()  # the weights as they were built, before the optimizer laid them out
        self.model = self.stepper.model
        self.state = TrainingState(data=self.store.fingerprint)
        self.kept = KeptCheckpoints(run.checkpoints, settings.training)
        self.pairs = pick_sentences(settings.data.valid, settings.training.validation_sentences)

    def _make_stepper(self) -> Stepper:
        def build() -> Transformer:
            return build_model(self.settings.model, len(self.data.vocabulary))

        training, store, machine = self.settings.training, self.store, self.machine
        if training.shard and self.world.size > 1:
            from regard.training.sharded import ShardedStepper  # what it needs of torch takes seconds to import

            return ShardedStepper(build, store, training, machine, self.world)
        model = build().to(machine.device)
        risk = RiskLearner(model, self.data.vocabulary, self.settings, machine) if training.risk_steps else None
        return Stepper(model, store, training, machine, self.world, risk)

    def go_on(self) -> None:
        """Load the newest checkpoint that is whole, if there is one; the first process decides, for all."""
        newest = self.world.from_first(self.kept.survey(self.display) if self.world.is_first else None)
        if newest is not None:
            model, optimizer = self.stepper.whole()
            self.state = read_checkpoint(newest, model, optimizer)
            self.stepper.take_over(model, optimizer)
            if self.state.data not in ("", self.store.fingerprint):
                raise UserError(f"{newest}: trained on other data than {self.store.folder} holds; choose another --out")
            self.display.say(f"going on from {newest}")
            if self.world.is_first:  # a kill may have come between writing a checkpoint and removing another
                self.kept.tidy(self.state.validations)
        elif (origin := Origin.read(self.run.origin)) is not None:
            model, optimizer = self.stepper.whole()
            origin.load_into(model)
            self.stepper.take_over(model, optimizer)

    def run_steps(self, log: Log | None, stop: StopRequest) -> None:
        """Take steps until the last one, or until validation has not improved for too long."""
        training, state = self.settings.training, self.state
        self.model.train()
        if state.step == 0:
            try_largest_batch(self.stepper)
        plan = self.plan()
        interval, clock = Interval(), Clock(training.checkpoint_minutes)
        with self.display.job("training", training.all_steps, "steps", done=state.step) as job:
            while state.step < training.all_steps and not self.out_of_patience():
                if state.step == training.steps:
                    self.begin_to_lower_risk()
                following, step = next(plan)
                report = self.take_step(step, stop.requested, log)
                state.position, state.seconds = following, state.seconds + clock.lap()
                interval.add(report)
                job.advance(1, note=self._note(interval))
                if state.step % _TIDY_STEPS == 0:
                    release_freed_memory()
                if log is not None and state.step % training.log_steps == 0:
                    log.write("training", self._facts(interval))
                    interval = Interval()
                if state.step % training.checkpoint_steps == 0 or state.step in (training.steps, training.all_steps):
                    self.validate(log)
                    self.write_checkpoint(regular=True)
                    interval = Interval()
                    clock.restart()
                elif report.stop or self._is_checkpoint_due(clock):
                    self.write_checkpoint(regular=False)
                    clock.restart()
                if report.stop:
                    self.world.meet()  # nobody leaves before the checkpoint is there
                    raise TrainingStopped(self.run.folder, state.step, stop.signal_number)

    def plan(self) -> Iterator[tuple[Position, Step]]:
        """Yield the steps that are left: those of all text, then those that lower risk, of the text that was given."""
        training, state = self.settings.training, self.state
        planned = partial(steps, piece_tokens=training.piece_tokens, pieces=training.pieces, seed=training.seed)
        before = state.step <= training.steps
        if before:
            yield from islice(planned(self.store, start=state.position), training.steps - state.step)
        given = self.store.of_first(len(self.settings.data.train))
        yield from planned(given, start=None if before else state.position)

    def begin_to_lower_risk(self) -> None:
        """Begin the second kind of steps with a new optimizer, from what the first kind has made of the weights."""
        self.stepper.optimizer.begin_anew()
        self.display.say(f"{self.settings.training.risk_steps:,} steps that lower risk begin (training.risk_steps)")

    def take_step(self, step: Step, stop: bool, log: Log | None) -> StepReport:
        """Take the next step and count it; raises `TrainingError` after too many without a finite gradient.

        What is not finite in one process is not finite in the sum, so all processes skip and count alike.
        """
        state = self.state
        state.step += 1
        try:
            report = self.stepper.take(step, state.step, self.rate(), stop)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            raise TrainingError(
                f"memory ran out in step {state.step:,}: run the same command again when more is free, or begin anew "
                f"with a smaller training.micro_batch_tokens. {self.kept.describe_newest()}"
            ) from error
        state.target_tokens += report.tokens
        if report.is_finite:
            state.skipped_in_a_row = 0
            return report
        state.skipped += 1
        state.skipped_in_a_row += 1
        self._tell_skipped(step, report, log)
        if state.skipped_in_a_row >= _SKIPS_IN_A_ROW:
            raise TrainingError(
                f"{_SKIPS_IN_A_ROW} steps in a row without a finite gradient; lower training.learning_rate or raise "
                f"training.warmup. {self.kept.describe_newest()}"
            )
        return report

    def _tell_skipped(self, step: Step, report: StepReport, log: Log | None) -> None:
        """Say that a step was skipped, and log the lines that it was made of."""
        lines: dict[str, list[int]] = {}
        for name, line in (self.store.locate(row) for piece in step for row in piece.tolist()):
            lines.setdefault(name, []).append(line)
        what = "gradient" if math.isfinite(report.objective) else "loss"
        some = "; ".join(f"{name} lines {_some(sorted(found))}" for name, found in lines.items())
        self.display.say(f"step {self.state.step:,}: {what} not finite, weights left as they are ({some})")
        if log is not None:
            facts = {"loss": report.objective / max(report.tokens, 1), "gradient_norm": report.norm}
            log.write("skipped", {"step": self.state.step, **facts, "lines": lines})

    def _is_checkpoint_due(self, clock: "Clock") -> bool:
        """Say whether to write one for the time that has passed; where all take part, the first process decides."""
        due = clock.checkpoint_is_due()
        return self.world.from_first(due) if self.stepper.is_sharded else due

    def rate(self) -> float:
        """Return the learning rate of the current step."""
        return learning_rate(self.state.step, self.settings.model.d_model, self.settings.training)

    def validate(self, log: Log | None) -> None:
        """Validate the weights as they are, or their running mean; show and log the result, with some translations."""
        if not self.settings.data.valid:
            return
        state = self.state
        model, optimizer = self.stepper.whole()
        with optimizer.averaged():
            model = model.to(self.machine.device)
            found, samples = validate(model, self.data, self.pairs, state.step, self.settings, self.machine, self.world)
        state.validations.append(found)
        best = validations_since_best(state.validations, self.settings.training.choose_by) == 0
        self.display.say(f"step {state.step:,}: {found.describe()}{' (best so far)' if best else ''}", found.facts())
        for source, translation in samples:
            self.display.say(f"    {source}\n  → {translation}")
        if log is not None:
            log.write("validation", found.facts())

    def write_checkpoint(self, regular: bool) -> None:
        """Write a checkpoint and remove those that neither going on nor the average will need.

        Raises `TrainingError`, in all processes, if the weights are not finite: nothing good could be made of them.
        """
        model, optimizer = self.stepper.whole()
        if not all(bound.isfinite() for bound in torch.aminmax(optimizer.weights)):  # which take no memory
            raise TrainingError(
                f"the weights are not finite after step {self.state.step:,}; lower training.learning_rate or raise "
                f"training.warmup. {self.kept.describe_newest()}"
            )
        if not self.world.is_first:
            return
        self.kept.add(write_checkpoint(self.run.checkpoints, model, optimizer, self.state, regular))
        self.kept.tidy(self.state.validations)

    def out_of_patience(self) -> bool:
        """Say whether validation has not improved for too long."""
        training = self.settings.training
        since_best = validations_since_best(self.state.validations, training.choose_by)
        return training.patience is not None and since_best >= training.patience

    def _note(self, interval: Interval) -> str:
        facts = interval.facts()
        return (
            f"epoch {self.state.position.epoch + 1} · loss {facts['loss']:.3f} · ppl {facts['perplexity']:.2f} · "
            f"lr {self.rate():.1e} · {facts['tokens_per_second']:,.0f} tokens/s · {memory_used() / 2**30:.1f} GiB"
        )

    def _facts(self, interval: Interval) -> dict[str, float]:
        seconds, epoch = round(self.state.seconds, 3), self.state.position.epoch + 1
        counts = {"step": self.state.step, "epoch": epoch, "target_tokens": self.state.target_tokens}
        counts["skipped"] = self.state.skipped
        return {**counts, **interval.facts(), "learning_rate": self.rate(), "memory": memory_used(), "seconds": seconds}


def _some(lines: list[int]) -> str:
    """Return some line numbers for people; the log has all."""
    shown = ", ".join(f"{line:,}" for line in lines[:_LINES_SHOWN])
    return shown if len(lines) <= _LINES_SHOWN else f"{shown} and {len(lines) - _LINES_SHOWN:,} more, all in the log"


class Clock:
    """Time spent on steps, and time since the last checkpoint."""

    def __init__(self, checkpoint_minutes: float) -> None:
        self._minutes = checkpoint_minutes
        self.restart()

    def restart(self) -> None:
        """Begin anew after a checkpoint; validating and writing count for no step."""
        self._lap = self._checkpoint = time.monotonic()

    def lap(self) -> float:
        """Return the seconds since the last lap."""
        before, self._lap = self._lap, time.monotonic()
        return self._lap - before

    def checkpoint_is_due(self) -> bool:
        """Say whether it is time for a checkpoint to go on from."""
        return self._minutes > 0 and time.monotonic() - self._checkpoint >= 60 * self._minutes
