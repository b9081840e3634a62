"""Device, precision and threads: chosen with a reason, and never at the price of the process."""

import sys

import pytest
import torch

from regard import machine
from regard.errors import UserError
from regard.system import memory_used

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def probed_anew():
    """Forget what an earlier probe found, and the threads that a test chose."""
    threads = torch.get_num_threads()
    machine.bfloat16_works.cache_clear()
    yield
    machine.bfloat16_works.cache_clear()
    torch.set_num_threads(threads)


@pytest.mark.parametrize(
    ("code", "works"),
    [
        ("pass", True),
        ("raise SystemExit(1)", False),
        ("import os, signal; os.kill(os.getpid(), signal.SIGILL)", False),  # what a faulting instruction does
        ("import time; time.sleep(100)", False),
    ],
)
def test_a_precision_is_tried_in_a_child_whose_death_tells(monkeypatch, code, works):
    monkeypatch.setattr(machine, "_BFLOAT16_PROBE", code)
    monkeypatch.setattr(machine, "_PROBE_SECONDS", 2)
    assert machine.bfloat16_works() is works


def test_int8_on_a_gpu_is_answered_with_what_the_gpu_has(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: True)
    chosen, choice = machine.choose_precision("int8", torch.device("cuda"))
    assert (chosen, choice.reason) == ("bfloat16", "int8 was asked for, which is for CPUs; the GPU has it")


@pytest.mark.parametrize(
    ("asked", "works", "kind", "reason"),
    [
        ("auto", True, "float32", "the safe type on cpu"),
        ("float32", True, "float32", "as asked"),
        ("bfloat16", True, "bfloat16", "as asked, and a probe survived"),
        ("bfloat16", False, "float32", "bfloat16 was asked for, but a probe of it failed here"),
        ("int8", True, "int8", "as asked, and a probe survived"),
        ("int8", False, "float32", "int8 was asked for, but a probe of it failed here"),
    ],
)
def test_the_precision_is_what_was_asked_for_only_where_it_is_safe(monkeypatch, asked, works, kind, reason):
    monkeypatch.setattr(machine, "bfloat16_works", lambda: works)
    monkeypatch.setattr(machine, "int8_works", lambda: works)
    chosen, choice = machine.choose_precision(asked, CPU)
    assert (chosen, choice.value, choice.reason) == (kind, kind, reason)


def test_a_machine_without_a_gpu_uses_the_cpu_and_says_why(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    chosen = machine.choose_machine(threads=1)
    assert (chosen.device, chosen.precision, chosen.threads) == (CPU, "float32", 1)
    assert (
        chosen.describe()
        == "device cpu (no GPU found) · precision float32 (the safe type on cpu) · threads 1 (as asked)"
    )
    assert torch.get_num_threads() == 1


@pytest.mark.parametrize("name", ["gpu", "cuda:99", "", "cpu:x"])
def test_a_device_that_is_not_there_is_a_user_s_mistake(name):
    with pytest.raises(UserError, match="can't be used"):
        machine.choose_device(name)


def test_processes_of_one_machine_share_its_cpu_or_have_a_gpu_each(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert machine.choose_machine("auto", local_rank=3).device == CPU
    assert machine.choose_own_device("cpu", 1)[0] == CPU
    with pytest.raises(UserError, match="finds no GPU, as there are 0"):
        machine.choose_own_device("cuda", 0)
    with pytest.raises(UserError, match="'cuda:1' under torchrun: each process takes a GPU of its own"):
        machine.choose_own_device("cuda:1", 1)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: None)
    monkeypatch.setattr(machine, "choose_device", lambda name: (torch.device(name), machine.Choice(name, "")))
    device, choice = machine.choose_own_device("auto", 1)
    assert (device, str(choice)) == (torch.device("cuda:1"), "cuda:1 (a GPU for each process)")
    with pytest.raises(UserError, match=r"process 3 of this machine finds no GPU.*--nproc-per-node=2"):
        machine.choose_own_device("auto", 2)


def test_no_threads_are_a_user_s_mistake():
    with pytest.raises(UserError, match="at least 1"):
        machine.choose_machine("cpu", threads=0)


def test_autocast_is_on_for_bfloat16_only():
    for precision, expected in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
        chosen = machine.Machine(CPU, precision, 1, {})
        with chosen.autocast():
            assert torch.is_autocast_enabled("cpu") is (expected == torch.bfloat16)


@pytest.mark.skipif(sys.platform != "linux", reason="a switch of glibc")
def test_freed_memory_is_kept_where_the_allocator_can(monkeypatch):
    assert machine.keep_freed_memory() is True
    monkeypatch.setattr(machine.platform, "libc_ver", lambda: ("", ""))
    assert machine.keep_freed_memory() is False


def test_measuring_products_leaves_the_threads_as_they_were():
    torch.set_num_threads(1)
    assert machine.matrix_speed(2, size=64, repeats=2) > 0
    assert torch.get_num_threads() == 1


def test_freed_memory_is_handed_back_when_asked():
    machine.keep_freed_memory()
    kept = [torch.ones(1 << 18) for _ in range(64)]  # 64 MiB
    gaps = kept[::2]
    before = memory_used()
    del kept[::2], gaps
    machine.release_freed_memory()
    if sys.platform == "linux":
        assert memory_used() < before - (16 << 20)
    assert all(bool((one == 1).all()) for one in kept)
