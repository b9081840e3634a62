"""Training under the real torchrun: the same curve for any number of processes, and nothing lost when some stop."""

import os
import signal
import socket
from pathlib import Path

import digits
import pytest
from digits import helpers_of, is_alive, recipe, start_torchrun
from test_distributed import SAME_CURVE, curve
from test_resume import SETTINGS, SLOW, assert_as_undisturbed, end, logged_steps, wait_for

from regard.progress import QuietDisplay
from regard.training.loop import train

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _leave_no_process_behind():
    yield
    for process in digits.started:
        for child in helpers_of(process) if process.poll() is None else []:
            os.kill(child, signal.SIGKILL)
        process.kill()
        process.wait()
        process.stderr.close()
    digits.started.clear()


@pytest.fixture(scope="module")
def undisturbed(corpus, tmp_path_factory):
    """A run of two processes, without torchrun, that nothing disturbed."""
    out = tmp_path_factory.mktemp("undisturbed")
    train(recipe(corpus, **SETTINGS), out, display=QuietDisplay(), processes=2, threads=1)
    return out


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def assert_same_curve(out: Path, finished_run: Path) -> None:
    for event, name in [("training", "loss"), ("training", "gradient_norm"), ("validation", "loss")]:
        assert curve(out, event, name) == pytest.approx(curve(finished_run, event, name), rel=SAME_CURVE)
    assert curve(out, "training", "target_tokens") == curve(finished_run, "training", "target_tokens")


# ---- the same curve --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("processes", [1, 2])
def test_torchrun_gives_the_loss_curve_of_one_process(processes, corpus, finished_run, tmp_path):
    out = tmp_path / "run"
    told = end(start_torchrun(recipe(corpus), out, f"--nproc-per-node={processes}"), 0)
    assert told.count("the model is in") == 1  # only the first process speaks
    assert f"{processes} process" in told
    assert_same_curve(out, finished_run)


def test_two_machines_of_two_processes_give_the_loss_curve_of_one_process(corpus, finished_run, tmp_path):
    out = tmp_path / "run"
    meeting = ("--nnodes=2", "--nproc-per-node=2", "--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{free_port()}")
    agents = [start_torchrun(recipe(corpus), out, *meeting, name=name) for name in "ab"]
    told = [end(agent, 0) for agent in agents]
    assert sorted(one.count("the model is in") for one in told) == [0, 1]
    assert "4 processes of 1 thread (started by torchrun)" in "".join(told)
    assert_same_curve(out, finished_run)


# ---- stopped and killed ----------------------------------------------------------------------------------------------


def test_torchrun_that_is_stopped_writes_a_checkpoint_and_goes_on_bit_by_bit(corpus, undisturbed, tmp_path):
    out = tmp_path / "run"
    for number, steps in ((signal.SIGTERM, 4), (signal.SIGINT, 8)):
        process = start_torchrun(recipe(corpus, **SETTINGS), out, "--nproc-per-node=2", more=SLOW)
        wait_for(lambda steps=steps: len(logged_steps(out)) >= steps, process)
        process.send_signal(number)
        told = process.communicate()[1]
        assert process.returncode != 0
        newest = max(path.name for path in (out / "checkpoints").iterdir())
        step = int(newest.removeprefix("step-"))
        assert logged_steps(out)[-1] == step >= steps
        assert told.count(f"regard: stopped after step {step}; run the same command again to go on ({out})\n") == 1
        assert told.count("regard: ") == 1  # the others are silent
    end(start_torchrun(recipe(corpus, **SETTINGS), out, "--nproc-per-node=2"), 0)
    assert_as_undisturbed(out, undisturbed)


def test_a_killed_process_is_started_again_and_the_run_ends_bit_equal(corpus, undisturbed, tmp_path):
    out = tmp_path / "run"
    process = start_torchrun(
        recipe(corpus, **SETTINGS), out, "--nproc-per-node=2", "--max-restarts=3", more=SLOW.replace("0.01", "0.03")
    )
    wait_for(lambda: len(logged_steps(out)) >= 1, process)
    first = sorted(helpers_of(process))  # in the order in which they were started
    os.kill(first[1], signal.SIGKILL)  # before the first checkpoint
    wait_for(lambda: not any(map(is_alive, first)), process)
    wait_for(lambda: len(logged_steps(out)) >= 5 and helpers_of(process), process)
    second = sorted(helpers_of(process))
    os.kill(second[0], signal.SIGKILL)  # the one that writes
    told = end(process, 0)
    assert told.count("training (15 steps)") == 3
    assert told.count("going on from") == 1
    assert not any(map(is_alive, first + second))
    assert_as_undisturbed(out, undisturbed)
