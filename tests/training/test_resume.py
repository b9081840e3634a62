"""Nothing is lost: real processes, killed, stopped and started again, end with the weights of one that was not."""

import json
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import digits
import pytest
from digits import helpers_of, is_alive, recipe, same_weights, start_training

from regard.errors import UserError
from regard.progress import QuietDisplay
from regard.training.loop import train

pytestmark = pytest.mark.slow

SETTINGS = {"steps": 15, "checkpoint_steps": 3, "average_checkpoints": 3}

# A disk and a processor slow enough to be killed at work: what is being written is there for a while.
SLOW = """
import time
from regard import files
from regard.training import step
sync, take = files.sync, step.Stepper.take
files.sync = lambda path: (time.sleep(0.01), sync(path))
step.Stepper.take = lambda *rest: (time.sleep(0.01), take(*rest))[1]
"""


@pytest.fixture(autouse=True)
def _leave_no_process_behind():
    yield
    for process in digits.started:
        process.kill()
        process.wait()
        process.stderr.close()
    digits.started.clear()


@pytest.fixture(scope="module")
def settings(corpus):
    return recipe(corpus, **SETTINGS)


@pytest.fixture(scope="module")
def undisturbed(settings, tmp_path_factory):
    """Runs of one and of two processes that nothing disturbed."""
    found = {}

    def run(processes: int = 1) -> Path:
        if processes not in found:
            found[processes] = tmp_path_factory.mktemp("undisturbed")
            train(settings, found[processes], display=QuietDisplay(), processes=processes, threads=1)
        return found[processes]

    return run


def wait_for(condition: Callable[[], bool], process) -> None:
    """Wait until something is so; it is a failure if the process ends before."""
    while not condition():
        if process.poll() is not None and not condition():
            pytest.fail(f"ended with code {process.returncode}:\n{process.stderr.read()}")
        time.sleep(0.002)


def logged_steps(out: Path) -> list[int]:
    text = (out / "log.jsonl").read_text() if (out / "log.jsonl").exists() else ""
    facts = [json.loads(line) for line in text.split("\n")[:-1]]
    return [one["step"] for one in facts if one["event"] == "training"]


def end(process, code: int) -> str:
    """Wait for the end of a process; return what it said."""
    told = process.communicate()[1]
    assert process.returncode == code, told
    return told


def assert_as_undisturbed(out: Path, undisturbed: Path) -> None:
    assert same_weights(out / "model", undisturbed / "model")
    last = [path.name for path in sorted((undisturbed / "checkpoints").iterdir())]
    assert [path.name for path in sorted((out / "checkpoints").iterdir())] == last
    for name in last:
        assert same_weights(out / "checkpoints" / name, undisturbed / "checkpoints" / name)
    assert logged_steps(out) == list(range(1, SETTINGS["steps"] + 1))


# ---- SIGKILL ---------------------------------------------------------------------------------------------------------


def test_a_run_killed_at_any_moment_ends_with_the_weights_of_one_never_killed(settings, undisturbed, tmp_path):
    out = tmp_path / "run"
    dice = random.Random(os.environ.get("REGARD_TEST_SEED", "7"))

    def being_written(place: Path, name: str) -> Callable[[], bool]:
        return lambda: any((path / "weights.safetensors").exists() for path in place.glob(f".{name}.writing"))

    def logged(more: int) -> Callable[[], bool]:
        before = len(logged_steps(out))
        return lambda: len(logged_steps(out)) >= before + more or (out / "model").exists()

    moments = [
        lambda: being_written(
            out / "checkpoints", "step-00000003"
        ),  # the first checkpoint: there is nothing to go on from
        lambda: logged(dice.randint(1, 5)),
        lambda: being_written(out / "checkpoints", "step-*"),
        lambda: being_written(out, "model"),
    ]
    for moment in moments:
        process = start_training(settings, out, more=SLOW)
        wait_for(moment(), process)
        time.sleep(dice.random() * 0.05)
        process.kill()
        end(process, -signal.SIGKILL)
        assert not (out / "model").exists()
    end(start_training(settings, out), 0)
    assert_as_undisturbed(out, undisturbed())
    assert not list(out.rglob(".*.writing"))


def test_two_processes_of_which_either_is_killed_end_with_the_weights_of_two_never_killed(
    settings, undisturbed, tmp_path
):
    out = tmp_path / "run"
    process = start_training(settings, out, processes=2, more=SLOW)
    wait_for(lambda: len(logged_steps(out)) >= 4, process)
    helpers = helpers_of(process)
    process.kill()
    end(process, -signal.SIGKILL)
    while any(map(is_alive, helpers)):
        time.sleep(0.01)

    process = start_training(settings, out, processes=2, more=SLOW)
    wait_for(lambda: len(logged_steps(out)) >= 8, process)
    os.kill(helpers_of(process)[0], signal.SIGKILL)
    told = end(process, 1)
    assert told.endswith(
        "regard: process 2 of 2 was killed by signal 9, as systems do when memory runs out; run the same command again "
        "to go on from the last checkpoint\n"
    )
    assert "Traceback" not in told

    train(settings, out, display=QuietDisplay())  # with as many processes as the run began with
    assert_as_undisturbed(out, undisturbed(2))


# ---- steps that go wrong ---------------------------------------------------------------------------------------------


def spoiled(steps: str) -> str:
    """Python that makes the loss of the first process not a number, in these steps."""
    return f"""
import math
from regard.training import step
learn, take = step.Stepper.learn, step.Stepper.take
def spoiled_learn(self, batches, seeds, consistency):
    loss = learn(self, batches, seeds, consistency)
    self.optimizer.gradient[:] = math.nan
    return loss._replace(objective=loss.objective * math.nan)
def spoil(self, pieces, number, *rest):
    step.Stepper.learn = spoiled_learn if number in {steps} else learn
    return take(self, pieces, number, *rest)
step.Stepper.take = spoil
"""


def test_what_goes_wrong_in_one_process_is_skipped_and_counted_by_all(settings, tmp_path):
    """If the other process had changed its weights, the two would go apart, and differ from one process alone."""
    found = []
    for processes in (1, 2):
        out = tmp_path / f"run-{processes}"
        end(start_training(settings, out, processes, more=spoiled("(2, 3)")), 0)
        facts = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
        assert [one["step"] for one in facts if one["event"] == "skipped"] == [2, 3]
        assert json.loads((out / "model" / "model.json").read_text())["skipped_steps"] == 2
        found.append([one["loss"] for one in facts if one["event"] == "training" and one["loss"] is not None])
    assert found[0] == pytest.approx(found[1], rel=1e-4)  # but for the order of sums in float32


def test_too_many_such_steps_end_all_processes(settings, tmp_path):
    long = settings.model_copy(update={"training": settings.training.model_copy(update={"steps": 50})})
    process = start_training(long, tmp_path / "run", 2, more=spoiled("range(5, 99)"))
    told = end(process, 1)
    assert told.splitlines()[-1].startswith("regard: 20 steps in a row without a finite gradient; lower ")
    assert told.endswith(f"Last good checkpoint: {tmp_path / 'run' / 'checkpoints' / 'step-00000021'}\n")


# ---- SIGTERM and Ctrl-C ----------------------------------------------------------------------------------------------


def test_sigterm_writes_a_checkpoint_and_says_how_to_go_on(settings, undisturbed, tmp_path):
    out = tmp_path / "run"
    process = start_training(settings, out, more=SLOW)
    wait_for(lambda: len(logged_steps(out)) >= 4, process)
    with pytest.raises(UserError, match="another process is training here"):
        train(settings, out, display=QuietDisplay(), processes=1, threads=1)
    process.terminate()
    told = end(process, 143)
    newest = max(path.name for path in (out / "checkpoints").iterdir())
    step = int(newest.removeprefix("step-"))
    assert told.endswith(f"regard: stopped after step {step}; run the same command again to go on ({out})\n")
    assert "Traceback" not in told
    assert logged_steps(out)[-1] == step
    train(settings, out, display=QuietDisplay(), processes=1, threads=1)
    assert_as_undisturbed(out, undisturbed())


def test_ctrl_c_in_a_terminal_ends_all_processes_with_a_checkpoint(settings, undisturbed, tmp_path):
    out = tmp_path / "run"
    process = start_training(settings, out, processes=2, more=SLOW)
    wait_for(lambda: len(logged_steps(out)) >= 4, process)
    helpers = helpers_of(process)
    os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to the whole group
    told = end(process, 130)
    assert "run the same command again to go on" in told.splitlines()[-1]
    assert "Traceback" not in told
    assert not any(map(is_alive, helpers))
    train(settings, out, display=QuietDisplay(), processes=2, threads=1)
    assert_as_undisturbed(out, undisturbed(2))
