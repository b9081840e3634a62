"""Processes that train together: they add up, they agree, and none outlives the first or is lost unseen."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from datetime import timedelta
from pathlib import Path

import pytest
import torch
from digits import ENVIRONMENT, is_alive
from torch.distributed import TCPStore

from regard.errors import LostOthersError, TrainingError, UserError
from regard.training import distributed
from regard.training.distributed import World
from regard.training.helpers import helped

pytestmark = pytest.mark.slow  # every helper imports torch

# ---- what helpers do here; they import this file ---------------------------------------------------------------------


def _compute(world: World) -> tuple[list[float], list[int], str, list[int]]:
    tensor = torch.tensor([1.0, 10.0]) * (world.rank + 1)
    world.sum(tensor)
    gathered = world.gather(world.share(range(10)))
    return tensor.tolist(), gathered, world.from_first(f"from {world.rank}"), list(world.share(range(10)))


def compute_and_write(world: World, folder: str) -> None:
    (Path(folder) / str(world.rank)).write_text(repr(_compute(world)))


def wait(world: World, folder: str) -> None:
    """Take part twice; then the second rank waits for the others, and the third sleeps."""
    (Path(folder) / str(world.rank)).write_text(str(os.getpid()))
    world.sum(torch.zeros(1))
    world.sum(torch.zeros(1))
    if world.rank == 2:
        time.sleep(10_000)
    world.sum(torch.zeros(1))


def fail(world: World, kind: str, message: str) -> None:
    if world.rank == 1:
        raise {"UserError": UserError, "ZeroDivisionError": ZeroDivisionError}[kind](message)
    world.sum(torch.zeros(1))


def die(world: World, number: int) -> None:
    if world.rank == 1:
        os.kill(os.getpid(), number)
    world.sum(torch.zeros(1))


# ---- alone -----------------------------------------------------------------------------------------------------------


def test_one_process_needs_no_helper(tmp_path):
    with helped(1, compute_and_write, (str(tmp_path),)) as world:
        assert (world, world.is_first) == (World(0, 1), True)
        assert _compute(world) == ([1.0, 10.0], list(range(10)), "from 0", list(range(10)))


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_shares_are_disjoint_and_make_up_the_whole(size):
    shares = [World(rank, size).share(range(10)) for rank in range(size)]
    assert sorted(item for share in shares for item in share) == list(range(10))


# ---- together --------------------------------------------------------------------------------------------------------


def test_processes_add_up_gather_and_agree(tmp_path):
    with helped(3, compute_and_write, (str(tmp_path),)) as world:
        expected = ([6.0, 60.0], list(range(10)), "from 0")
        assert _compute(world)[:3] == expected
        while not all((tmp_path / rank).exists() and (tmp_path / rank).read_text() for rank in "12"):
            time.sleep(0.02)
    for rank in (1, 2):
        share = list(range(10))[rank::3]
        assert (tmp_path / str(rank)).read_text() == repr((*expected, share))


def test_helpers_leave_signals_to_the_first_process_and_are_gone_when_the_block_ends(tmp_path):
    before = dict(os.environ)
    with helped(2, wait, (str(tmp_path),)) as world:
        world.sum(torch.zeros(1))
        helper = int((tmp_path / "1").read_text())
        for number in (signal.SIGINT, signal.SIGTERM):
            os.kill(helper, number)
        world.sum(torch.zeros(1))  # it is still there to answer
        assert os.getsid(helper) != os.getsid(0)  # and a terminal's Ctrl-C does not even reach it
    assert not is_alive(helper)
    assert dict(os.environ) == before


def test_helpers_are_gone_when_the_block_fails(tmp_path, capfd):
    with pytest.raises(ZeroDivisionError), helped(2, wait, (str(tmp_path),)) as world:  # noqa: PT012
        world.sum(torch.zeros(1))
        raise ZeroDivisionError
    assert not is_alive(int((tmp_path / "1").read_text()))
    assert capfd.readouterr() == ("", "")


def test_a_meeting_that_failed_does_not_spoil_the_next(tmp_path, monkeypatch):
    hook = sys.excepthook
    with monkeypatch.context() as patch:
        patch.setattr(distributed, "MEETING", timedelta(seconds=0.2))
        store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        with pytest.raises(LostOthersError), distributed.joined(0, 2, store):
            pass
    with helped(2, compute_and_write, (str(tmp_path),)) as world:
        assert _compute(world)[0] == [3.0, 30.0]
    assert sys.excepthook is hook


# ---- failures --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "kind", "raised", "told"),
    [
        (3, "UserError", UserError, r"^process 2 of 3: too little of everything$"),
        (2, "ZeroDivisionError", TrainingError, r"(?s)process 2 of 2: Traceback.*ZeroDivisionError: too little"),
    ],
)
def test_what_a_helper_raises_is_told_by_the_first_process(size, kind, raised, told, capfd):
    with pytest.raises(raised, match=told), helped(size, fail, (kind, "too little of everything")) as world:
        world.sum(torch.zeros(1))
    assert capfd.readouterr() == ("", "")


def test_a_helper_that_is_killed_ends_the_training_with_a_message():
    told = r"^process 2 of 2 was killed by signal 9, as systems do when memory runs out; run the same command again"
    with pytest.raises(TrainingError, match=told), helped(2, die, (signal.SIGKILL,)) as world:
        world.sum(torch.zeros(1))


def test_a_helper_that_can_t_even_start_ends_the_training_with_a_message(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(TrainingError, match="process 2 of 2 ended with code 1"), helped(2, fail, ("UserError", "")):
        pass


@pytest.mark.parametrize(
    "stopped", ["", pytest.param("12", marks=pytest.mark.skipif(sys.platform != "linux", reason="Linux sees to that"))]
)
def test_helpers_end_when_the_first_process_is_killed_even_if_they_are_stopped(tmp_path, stopped):
    code = textwrap.dedent(f"""
        import os, signal, sys; sys.path[:] = {sys.path!r}
        import torch
        from regard.training.helpers import helped
        from test_helpers import wait
        with helped(3, wait, ({str(tmp_path)!r},)) as world:
            world.sum(torch.zeros(1))
            world.sum(torch.zeros(1))
            for rank in {stopped!r}:
                os.kill(int(open({str(tmp_path)!r} + "/" + rank).read()), signal.SIGSTOP)
            os.kill(os.getpid(), signal.SIGKILL)
    """)
    first = subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert (first.returncode, first.stderr) == (-signal.SIGKILL, "")
    helpers = [int((tmp_path / rank).read_text()) for rank in "12"]
    deadline = time.monotonic() + 60  # no measure of speed: only so that a failing test ends
    while any(map(is_alive, helpers)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(map(is_alive, helpers))


def test_a_script_without_a_main_guard_may_train_in_several_processes(tmp_path):
    """As one writes it in a notebook or pipes it into Python; multiprocessing would run the script again and again."""
    code = textwrap.dedent(f"""
        import sys; sys.path[:] = {sys.path!r}
        import torch
        from regard.training.helpers import helped
        from test_helpers import compute_and_write, _compute
        print("once")
        with helped(2, compute_and_write, ({str(tmp_path)!r},)) as world:
            print(_compute(world)[0])
    """)
    done = subprocess.run([sys.executable], input=code, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("once\n[3.0, 30.0]\n", "")
