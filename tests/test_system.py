"""What the operating system tells."""

import os
import sys

import pytest

from regard import system


def test_there_is_at_least_one_core():
    assert 1 <= system.cores() <= (os.cpu_count() or 1)


@pytest.mark.skipif(sys.platform != "linux", reason="read from /proc")
def test_memory_in_use_grows_with_what_is_held():
    before = system.memory_used()
    held = bytearray(os.urandom(1) * (64 << 20))
    assert system.memory_used() - before > 48 << 20
    assert 0 < before < system.memory_total()
    del held


def test_a_system_that_does_not_tell_is_not_an_error(monkeypatch):
    monkeypatch.setattr(system, "Path", lambda name: (_ for _ in ()).throw(OSError("no /proc here")))
    assert system.memory_used() == 0
    monkeypatch.setattr(os, "sysconf", lambda name: (_ for _ in ()).throw(ValueError("unknown name")))
    assert system.memory_total() == 0
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert system.cores() == (os.cpu_count() or 1)
