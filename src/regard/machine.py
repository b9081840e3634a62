"""What this machine can do and what regard uses of it: device, threads, precision, memory; each with its reason."""

import ctypes
import platform
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import cache
from typing import Literal

import torch

from regard.errors import UserError
from regard.system import cores

Precision = Literal["float32", "bfloat16", "int8"]

_PROBE_SECONDS = 60
_BFLOAT16_PROBE = """
import torch
a = torch.randn(64, 96, dtype=torch.bfloat16); b = torch.randn(96, 80, dtype=torch.bfloat16)
c = (a @ b).float(); assert (c - a.float() @ b.float()).abs().max() < 1
torch.nn.functional.linear(a, b.t().contiguous()).sum().item()
"""
_INT8_PROBE = """
import torch
torch.backends.quantized.engine = "fbgemm"
weight = torch.randint(-127, 128, (80, 96), dtype=torch.int8)
quantized = torch._make_per_channel_quantized_tensor(weight, torch.ones(80).double(), torch.zeros(80).long(), 0)
packed = torch.ops.quantized.linear_prepack(quantized, None)
a = torch.rand(64, 96) - 0.5
c = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32(a, 1 / 127, 127, packed)
assert (c - a @ weight.float().t()).abs().max() < 40
"""

MOST_THREADS = 4096


@dataclass(frozen=True)
class Choice:
    """Something regard decided about the machine, and why."""

    value: str
    reason: str

    def __str__(self) -> str:
        return f"{self.value} ({self.reason})"


@dataclass(frozen=True)
class Machine:
    """What a run uses."""

    device: torch.device
    precision: Precision
    threads: int
    choices: dict[str, Choice]

    def describe(self) -> str:
        """Say in one line what was chosen and why."""
        return " · ".join(f"{name} {choice}" for name, choice in self.choices.items())

    def autocast(self) -> torch.autocast:
        """Return the context in which matrix products run in the chosen precision."""
        return torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.precision == "bfloat16")


def choose_machine(
    device: str = "auto", precision: str = "auto", threads: int | None = None, local_rank: int | None = None
) -> Machine:
    """Decide what to use, apply the number of threads, and keep freed memory in the process.

    One of several processes that torchrun has started on this machine gives its number among them, `local_rank`.
    """
    if threads is not None and threads < 1:
        raise UserError(f"threads = {threads}: must be at least 1")
    if threads is not None and threads > MOST_THREADS:
        raise UserError(f"threads = {threads}: must be at most {MOST_THREADS:,}")
    where, device_choice = choose_device(device) if local_rank is None else choose_own_device(device, local_rank)
    kind, precision_choice = choose_precision(precision, where)
    if threads is not None:
        torch.set_num_threads(threads)
        threads_choice = Choice(str(threads), "as asked")
    else:
        threads_choice = Choice(str(torch.get_num_threads()), f"of {cores()} cores")
    if where.type == "cpu":
        keep_freed_memory()
    choices = {"device": device_choice, "precision": precision_choice, "threads": threads_choice}
    return Machine(where, kind, torch.get_num_threads(), choices)


def choose_device(name: str) -> tuple[torch.device, Choice]:
    """Return the device for a name; 'auto' takes a GPU if there is one."""
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda"), Choice("cuda", torch.cuda.get_device_name())
        if torch.backends.mps.is_available():
            return torch.device("mps"), Choice("mps", "Apple's GPU")
        return torch.device("cpu"), Choice("cpu", "no GPU found")
    try:
        device = torch.device(name)
        torch.ones(1, device=device).item()
    except (RuntimeError, AssertionError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise UserError(f"device {name!r} can't be used: {reason}") from None
    return device, Choice(name, "as asked")


def choose_own_device(name: str, local_rank: int) -> tuple[torch.device, Choice]:
    """Return the device of one of several processes of this machine: each has a GPU of its own, or all share the CPU.

    Raises `UserError` if there are fewer GPUs than processes, or for a device that can't be shared out.
    """
    if name == "cpu" or (name == "auto" and not torch.cuda.is_available()):
        return torch.device("cpu"), Choice("cpu", "as asked" if name == "cpu" else "no GPU that processes can share")
    if name not in ("auto", "cuda"):
        raise UserError(f"device {name!r} under torchrun: each process takes a GPU of its own; say cuda, cpu or auto")
    gpus = torch.cuda.device_count()
    if local_rank >= gpus:
        raise UserError(
            f"process {local_rank + 1} of this machine finds no GPU, as there are {gpus}; start torchrun with "
            f"--nproc-per-node={max(gpus, 1)}, or say --device cpu"
        )
    device, choice = choose_device(f"cuda:{local_rank}")
    torch.cuda.set_device(device)
    return device, Choice(choice.value, "a GPU for each process")


def choose_precision(name: str, device: torch.device) -> tuple[Precision, Choice]:
    """Return the number type of matrix products; bfloat16 only where it has been tried and does not kill a process."""
    if name == "float32":
        return "float32", Choice("float32", "as asked")
    if name == "int8":
        return _choose_int8(device)
    if name == "auto" and device.type != "cuda":
        return "float32", Choice("float32", f"the safe type on {device.type}")
    if device.type == "cuda":
        if torch.cuda.is_bf16_supported():
            return "bfloat16", Choice("bfloat16", "the GPU has it")
        return "float32", Choice("float32", "the GPU has no bfloat16")
    if device.type == "cpu" and bfloat16_works():
        return "bfloat16", Choice("bfloat16", "as asked, and a probe survived")
    return "float32", Choice("float32", "bfloat16 was asked for, but a probe of it failed here")


def _choose_int8(device: torch.device) -> tuple[Precision, Choice]:
    if device.type != "cpu":
        kind, choice = choose_precision("auto", device)
        return kind, Choice(choice.value, f"int8 was asked for, which is for CPUs; {choice.reason}")
    if int8_works():
        return "int8", Choice("int8", "as asked, and a probe survived")
    return "float32", Choice("float32", "int8 was asked for, but a probe of it failed here")


@cache
def bfloat16_works() -> bool:
    """Say whether a bfloat16 product survives on this CPU."""
    return _survives(_BFLOAT16_PROBE)


@cache
def int8_works() -> bool:
    """Say whether a product in eight bits, by fbgemm, survives on this CPU and is right."""
    return _survives(_INT8_PROBE)


def _survives(probe: str) -> bool:
    """Say whether a child process gets to the end of some lines of Python.

    Some machines advertise instructions that end the process when used; a child's death tells without harm.
    """
    try:
        command = [sys.executable, "-c", probe]
        return subprocess.run(command, capture_output=True, timeout=_PROBE_SECONDS, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def keep_freed_memory() -> bool:
    """Tell glibc's allocator to keep what torch frees instead of handing it back to the system between steps.

    Page faults on memory given back a moment ago cost up to a third of a training step. Returns whether it was done:
    only glibc has the switch.
    """
    if not _has_glibc():
        return False
    mallopt = ctypes.CDLL(None).mallopt
    trim_threshold, mmap_max, largest = -1, -4, 2**31 - 1
    return bool(mallopt(mmap_max, 0) and mallopt(trim_threshold, largest))


def release_freed_memory() -> None:
    """Hand back to the system what lies free between what is in use.

    Batches of ever other shapes leave ever other gaps, so that memory which is only kept would grow for a long time.
    """
    if _has_glibc():
        ctypes.CDLL(None).malloc_trim(0)


def _has_glibc() -> bool:
    return sys.platform == "linux" and platform.libc_ver()[0] == "glibc"


def matrix_speed(threads: int, size: int = 1024, repeats: int = 8) -> float:
    """Measure float32 matrix products on the CPU, in GFLOP/s: the best of some, into memory that is there already."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    left, right, product = (torch.rand(size, size) for _ in range(3))
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        torch.mm(left, right, out=product)
        seconds.append(time.perf_counter() - start)
    torch.set_num_threads(before)
    return 2 * size**3 / min(seconds) / 1e9
