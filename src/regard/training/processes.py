"""How many processes and threads train on this machine: chosen once for a run, by measuring."""

import time
from dataclasses import asdict, dataclass, replace

import torch

from regard.data.batches import collate, largest_pieces
from regard.data.prepare import Prepared
from regard.errors import FileFormatError, UserError
from regard.files import read_record, write_json
from regard.launch import Launch
from regard.machine import Machine
from regard.model.build import build_model
from regard.model.transformer import Transformer
from regard.settings import Settings
from regard.system import cores
from regard.training.learner import native_library_for
from regard.training.objective import training_loss
from regard.training.run import Run

_MOST = 4096  # processes of a run, and threads of a process


@dataclass(frozen=True)
class Workforce:
    """Processes and threads in each of them, and why."""

    processes: int
    threads: int
    reason: str

    def describe(self) -> str:
        """Say it in a few words."""
        processes = f"{self.processes} process" if self.processes == 1 else f"{self.processes} processes"
        threads = f"{self.threads} thread" if self.threads == 1 else f"{self.threads} threads"
        return f"{processes} of {threads} ({self.reason})"


def choose_workforce(
    run: Run, settings: Settings, prepared: Prepared, machine: Machine, processes: int | None, threads: int | None
) -> Workforce:
    """Return what was asked for, what the run began with, or what suits: by a short measurement where torch trains.

    A run goes on with what it began with: other processes or threads add up numbers in another order, and the weights
    would no longer be those of a run never stopped.
    """
    available = cores()
    most = min(available, settings.training.pieces)
    _check_numbers(processes=processes, threads=threads)
    began = _read_workforce(run)
    if processes is not None or threads is not None:
        count = processes or 1
        return _as_told(run, began, Workforce(count, threads or max(1, available // count), "as asked"))
    if began is not None:
        return replace(began, reason="as this run began")
    if machine.device.type != "cpu":
        chosen = Workforce(1, machine.threads, f"the work is done on {machine.device.type}")
    elif most == 1:
        chosen = Workforce(1, machine.threads, "one core" if available == 1 else "a step is one piece")
    elif native_library_for(model := build_model(settings.model, len(prepared.vocabulary)), machine) is not None:
        chosen = Workforce(1, available, "each thread trains on sentences of its own")
    else:
        gain = _measure_threads(model.to(machine.device), settings, prepared, machine, most)
        told = f"{most} threads in one process are {gain:.2f} times as fast as one"
        chosen = Workforce(1, most, told) if gain > 0.9 * most else Workforce(most, available // most, told)
    write_json(run.workforce, asdict(chosen))
    return chosen


def launched_workforce(run: Run, launch: Launch, threads: int | None) -> Workforce:
    """Return the processes that torchrun has started, with the threads that were asked for, or a share of the cores."""
    _check_numbers(threads=threads)
    began = _read_workforce(run)
    if threads is None:
        same = began is not None and began.processes == launch.size
        threads = began.threads if began and same else max(1, cores() // launch.local_size)
    return _as_told(run, began, Workforce(launch.size, threads, "started by torchrun"))


def _check_numbers(**numbers: int | None) -> None:
    for name, number in numbers.items():
        if number is not None and number < 1:
            raise UserError(f"{name} = {number}: must be at least 1")


def _as_told(run: Run, began: Workforce | None, told: Workforce) -> Workforce:
    """Return what somebody has decided, and remember it or say that it is not what the run began with."""
    if began is None:
        write_json(run.workforce, asdict(told))
    elif (began.processes, began.threads) != (told.processes, told.threads):
        reason = f"{told.reason}; began with {began.processes} of {began.threads}, so not bit-equal"
        return replace(told, reason=reason)
    return told


def _read_workforce(run: Run) -> Workforce | None:
    if not run.workforce.exists():
        return None
    found = read_record(run.workforce, Workforce)
    if not (1 <= found.processes <= _MOST and 1 <= found.threads <= _MOST):
        raise FileFormatError(run.workforce, "impossible numbers; remove it to choose anew")
    return found


def _measure_threads(
    model: Transformer, settings: Settings, prepared: Prepared, machine: Machine, threads: int
) -> float:
    """Return how many times faster torch computes a piece with that many threads than with one."""
    store = prepared.training_store(settings.training.seed)
    batch = collate(store, largest_pieces(store, settings.training.piece_tokens)[0])
    objective = settings.training.label_smoothing, settings.training.consistency
    seconds = {1: float("inf"), threads: float("inf")}
    before = torch.get_num_threads()
    for _ in range(3):  # alternating, so that what else the machine does hits both; the first is warm-up as well
        for count in (1, threads):
            torch.set_num_threads(count)
            start = time.perf_counter()
            training_loss(model, batch, machine.device, *objective).objective.backward()  # type: ignore[no-untyped-call]
            seconds[count] = min(seconds[count], time.perf_counter() - start)
    torch.set_num_threads(before)
    return seconds[1] / seconds[threads]
