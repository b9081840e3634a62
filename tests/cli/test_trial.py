"""How many processes translate: chosen by timing the first lines, none of which is lost."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from regard.cli import trial as trial_module
from regard.cli import windows
from regard.cli.trial import LINES, Plan, Trial

from .running import Regard

TEXTS = ["ten chars."] * 2048


class FakeMachine:
    """Translates in no time, by a clock of its own: a character takes one thread a hundredth of a second."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, gain: float) -> None:
        """With several threads it is `gain` times as fast."""
        self.now, self.gain, self.threads = 0.0, gain, 0
        self.seen: list[tuple[int, int, int]] = []
        monkeypatch.setattr(trial_module.time, "perf_counter", lambda: self.now)

    def use_threads(self, count: int) -> None:
        self.threads = count

    def do(self, first: int, texts: Sequence[str]) -> tuple[int, int]:
        warming = 5.0 if len(self.seen) < 2 else 0.0  # the first windows take longer
        self.now += warming + sum(map(len, texts)) / 100 / (self.gain if self.threads > 1 else 1)
        self.seen.append((first, len(texts), self.threads))
        return first, len(texts)

    def run(self, trial: Trial) -> Plan:
        results = list(trial.run(self.do, self.use_threads))
        assert results == [(first, count) for first, count, _ in self.seen]
        return trial.choice


def test_threads_that_wait_for_each_other_lose_against_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = FakeMachine(monkeypatch, gain=2.5)
    choice = machine.run(Trial(TEXTS, 0, threads=4))
    assert (choice.processes, choice.threads) == (4, 1)
    assert choice.describe() == (
        "4 processes of 1 thread share the lines (4 threads in one process are 2.50 times as fast as one)"
    )
    assert machine.threads == 1


def test_threads_that_are_as_good_as_processes_win(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = FakeMachine(monkeypatch, gain=3.8)
    choice = machine.run(Trial(TEXTS, 0, threads=4))
    assert (choice.processes, choice.threads) == (1, 4)
    assert choice.describe() == "1 process of 4 threads (4 threads in one process are 3.80 times as fast as one)"
    assert machine.threads == 4


def test_windows_follow_each_other_and_ways_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_module, "_ENOUGH", 7.0)
    machine = FakeMachine(monkeypatch, gain=1.5)
    trial = Trial(TEXTS, 0, threads=2)
    machine.run(trial)
    assert [first for first, _, _ in machine.seen] == list(range(0, trial.done, LINES))
    assert [threads for _, _, threads in machine.seen] == [*[2, 1] * 4, 2]  # warm, then 2.1 s and 3.2 s in turns
    assert trial.done == 9 * LINES


def test_little_work_is_not_worth_a_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_module, "_WORTH", 100.0)
    machine = FakeMachine(monkeypatch, gain=1.0)
    trial = Trial(["ten chars."] * 200, 0, threads=2)  # 20 seconds' work
    assert machine.run(trial) == Plan(1, 2)
    assert trial.done == LINES
    assert machine.threads == 2
    large = Trial(["ten chars."] * 200, 100_000, threads=2)  # and what follows
    assert FakeMachine(monkeypatch, gain=1.0).run(large).processes == 2


def test_few_lines_are_not_tried_and_blank_ones_do_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = FakeMachine(monkeypatch, gain=1.0)
    assert machine.run(Trial(TEXTS[:127], 10**9, threads=2)) == Plan(1, 2)
    assert machine.seen == []
    blank = Trial([""] * 2048, 10**9, threads=2)
    FakeMachine(monkeypatch, gain=1.0).run(blank)
    assert blank.done % LINES == 0


# ---- as a user would -------------------------------------------------------------------------------------------------

MIXED = "".join(f"{'a b ' * (number % 5)}{number}\n" if number % 4 else "\n" for number in range(300))


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "cores", lambda: 2)
    monkeypatch.setattr(trial_module, "_WORTH", 0.0)
    monkeypatch.setattr(trial_module, "_ENOUGH", 1e-9)


@pytest.mark.parametrize(("nearly", "told"), [(0.0, "1 process of 2 threads"), (1e9, "2 processes of 1 thread share")])
def test_lines_are_the_same_and_in_order_whatever_is_chosen(
    regard: Regard, odd_model: Path, two_cores: None, monkeypatch: pytest.MonkeyPatch, nearly: float, told: str
) -> None:
    monkeypatch.setattr(trial_module, "_NEARLY", nearly)
    alone = regard("translate", odd_model, "--processes", "1", "--beam", "2", stdin=MIXED)
    assert "process of" not in alone.err
    ended = regard("translate", odd_model, "--beam", "2", stdin=MIXED)
    assert ended.out == alone.out
    assert len(ended.lines) == 300
    assert f"{told}" in ended.err
    assert ended.err.count("times as fast as one)") == 1


@pytest.mark.parametrize("lines", [0, 1, 127, 128, 129, 160])
def test_no_line_is_lost_around_the_end_of_a_trial(
    regard: Regard, odd_model: Path, two_cores: None, monkeypatch: pytest.MonkeyPatch, lines: int
) -> None:
    monkeypatch.setattr(trial_module, "_NEARLY", 0.0)
    text = "".join(f"{'abc'[number % 3]}\n" if number % 16 == 0 else "\n" for number in range(lines))
    ended = regard("translate", odd_model, "--beam", "1", stdin=text)
    assert [bool(line) for line in ended.lines] == [number % 16 == 0 for number in range(lines)]
    assert ("times as fast" in ended.err) == (lines >= 128)


def test_a_sample_is_the_same_with_and_without_a_trial(
    regard: Regard, odd_model: Path, two_cores: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial_module, "_NEARLY", 0.0)
    alone = regard("translate", odd_model, "--sample", "--threads", "2", stdin=MIXED)
    assert regard("translate", odd_model, "--sample", stdin=MIXED).out == alone.out


def test_windows_of_what_is_left_are_small_enough_for_all() -> None:
    assert windows._window_lines(1, None) == windows._window_lines(1, 100) == 2048
    assert windows._window_lines(2, None) == 512
    assert windows._window_lines(2, 800) == 100
    assert windows._window_lines(4, 20) == LINES
    assert windows._window_lines(2, 10**6) == 512
