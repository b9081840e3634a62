"""Processes that each hold a part of the weights compute what one with all of them does, and write the same files."""

from pathlib import Path

import digits
import pytest
from digits import recipe, start_training
from test_distributed import SAME_CURVE, curve
from test_resume import SLOW, end, logged_steps, wait_for

from regard.data.prepare import open_prepared
from regard.machine import choose_machine
from regard.model.transformer import count_weights
from regard.model_folder import read_settings
from regard.progress import QuietDisplay
from regard.training.distributed import World
from regard.training.helpers import helped
from regard.training.loop import Training, train
from regard.training.run import Run
from regard.training.sharded import ShardedStepper

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _leave_no_process_behind():
    yield
    for process in digits.started:
        process.kill()
        process.wait()
        process.stderr.close()
    digits.started.clear()


def assert_same_curve(out: Path, dropless_run: Path) -> None:
    for event, name in [("training", "loss"), ("training", "gradient_norm"), ("validation", "loss")]:
        assert curve(out, event, name) == pytest.approx(curve(dropless_run, event, name), rel=SAME_CURVE)
    assert curve(out, "training", "target_tokens") == curve(dropless_run, "training", "target_tokens")


@pytest.mark.parametrize("processes", [2, 3])  # three share four pieces and odd rows unevenly
def test_parts_give_the_loss_curve_of_the_whole(processes, corpus, dropless_run, tmp_path):
    train(
        recipe(corpus, model={"dropout": 0.0}, shard=True),
        tmp_path,
        display=QuietDisplay(),
        processes=processes,
        threads=1,
    )
    assert_same_curve(tmp_path, dropless_run)


@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 2)])
def test_a_checkpoint_loads_on_another_number_of_processes(before, after, corpus, dropless_run, tmp_path):
    out, settings = tmp_path / "run", recipe(corpus, model={"dropout": 0.0}, shard=True)
    process = start_training(settings, out, processes=before, more=SLOW)
    wait_for(lambda: len(logged_steps(out)) >= 5, process)
    process.terminate()
    assert "stopped after step" in end(process, 143)
    assert len(logged_steps(out)) < settings.training.steps
    train(settings, out, display=QuietDisplay(), processes=after, threads=1)
    assert_same_curve(out, dropless_run)


def count_bytes(world: World, place: str) -> tuple[int, list[int]]:
    """Return the bytes of the whole model's weights and running means, and of each process's part of them."""
    folder, machine = Path(place), choose_machine("cpu", "float32", threads=1)
    settings = read_settings(folder / "settings.toml")
    training = Training(settings, Run(folder), open_prepared(folder), machine, world, QuietDisplay())
    assert isinstance(training.stepper, ShardedStepper)
    return 3 * 4 * count_weights(training.model), world.gather([training.stepper.optimizer.local_bytes()])


def test_each_process_holds_its_part_and_no_more(corpus, tmp_path):
    train(recipe(corpus, steps=1, shard=True), tmp_path, display=QuietDisplay(), processes=1, threads=1)
    with helped(2, count_bytes, (str(tmp_path),)) as world:
        whole, parts = count_bytes(world, str(tmp_path))
    assert sum(parts) == whole
    assert max(parts) < 0.51 * whole
