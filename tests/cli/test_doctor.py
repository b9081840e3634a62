"""`regard doctor`: what this machine can do, what regard will use, and why."""

import pytest

from regard import __version__

from .running import Regard


def test_it_says_what_is_there_and_what_will_be_used_and_why(regard: Regard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.machine.bfloat16_works", lambda: False)  # the probe has its own tests
    monkeypatch.setattr("regard.machine.matrix_speed", lambda threads: 10.0 * threads)
    ended = regard("doctor")
    assert ended.code == 0
    rows = dict(line.split("\t") for line in ended.lines if "\t" in line)
    assert rows["regard"] == __version__
    assert "GFLOP/s on one thread" in rows["float32 products"]
    for choice in ("device", "precision", "threads"):
        assert "(" in rows[f"regard will use: {choice}"]  # the reason
    assert "not safe here" in rows["bfloat16 on the CPU"]
    assert ended.lines[-1] == "Everything regard needs is installed."


def test_it_says_what_is_missing(regard: Regard, monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.util import find_spec

    monkeypatch.setattr("regard.machine.bfloat16_works", lambda: True)
    monkeypatch.setattr("regard.machine.matrix_speed", lambda threads: 1.0)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "matplotlib" else find_spec(name))
    assert regard("doctor").lines[-1] == "Missing: matplotlib"
