"""What the operating system tells."""

import mmap
import os
import sys

import pytest

from regard import system


def test_there_is_at_least_one_core():
    assert 1 <= system.cores() <= (os.cpu_count() or 1)


@pytest.mark.skipif(sys.platform != "linux", reason="read from /proc")
def test_memory_in_use_grows_with_what_is_held():
    before = system.memory_used()
    with mmap.mmap(-1, 64 << 20) as held:  # straight from the system: the process may have freed memory of its own
        held.write(b"x" * (64 << 20))
        assert system.memory_used() - before > 48 << 20
    assert 0 < before < system.memory_total()


@pytest.mark.skipif(sys.platform != "linux", reason="read from /proc")
def test_the_peak_stays_when_memory_is_given_back_and_what_is_available_is_less_than_all():
    held = bytearray(os.urandom(1) * (64 << 20))
    peak = system.memory_peak()
    del held
    assert system.memory_peak() >= peak >= system.memory_used() - (8 << 20)
    assert 0 < system.memory_available() <= system.memory_total()


def test_a_containers_limit_counts_without_its_file_cache(monkeypatch, tmp_path):
    group = tmp_path / "jobs" / "one"
    group.mkdir(parents=True)
    monkeypatch.setattr(system, "_CGROUPS", tmp_path)
    for folder, limit in ((group, "max"), (group.parent, str(900 << 20))):
        (folder / "memory.max").write_text(f"{limit}\n")
        (folder / "memory.current").write_text(str(700 << 20))
        (folder / "memory.stat").write_text(f"anon 5\ninactive_file {300 << 20}\nactive_file 7\n")
    assert system._left_in_group(group) == system._UNLIMITED
    assert system._left_in_group(group.parent) == 500 << 20
    assert system._left_in_group(tmp_path / "none") == system._UNLIMITED


def test_a_system_that_does_not_tell_is_not_an_error(monkeypatch):
    monkeypatch.setattr(system, "Path", lambda name: (_ for _ in ()).throw(OSError("no /proc here")))
    assert system.memory_used() == system.memory_peak() == 0
    assert system.memory_available() == system._UNLIMITED
    monkeypatch.setattr(os, "sysconf", lambda name: (_ for _ in ()).throw(ValueError("unknown name")))
    assert system.memory_total() == 0
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert system.cores() == (os.cpu_count() or 1)
