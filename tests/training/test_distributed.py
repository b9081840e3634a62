"""N processes compute what one does."""

import json
from hashlib import sha256
from pathlib import Path

import pytest
import torch
from digits import recipe

from regard.data.prepare import open_prepared
from regard.files import checksum
from regard.machine import choose_machine
from regard.model_folder import named_weights, read_settings
from regard.progress import QuietDisplay
from regard.training.distributed import World
from regard.training.helpers import helped
from regard.training.loop import Training, train
from regard.training.run import Run
from regard.training.stop import StopRequest

# The only difference is the order in which float32 gradients are added up; it grows over the steps through Adam, which
# divides by gradients that may be small.
SAME_CURVE = 1e-3


def digest_after_training(world: World, place: str) -> list[str]:
    """Train without a log; return all processes' weights."""
    folder, machine = Path(place), choose_machine("cpu", "float32", threads=1)
    settings = recipe(read_settings(folder / "settings.toml").data.train[0].source.parent)
    training = Training(settings, Run(folder), open_prepared(folder), machine, world, QuietDisplay())
    training.go_on()
    training.run_steps(None, StopRequest())
    weights = b"".join(weight.numpy().tobytes() for weight in named_weights(training.model).values())
    return world.gather([sha256(weights).hexdigest()])


def curve(out: Path, event: str, name: str) -> list[float]:
    return [
        facts[name]
        for facts in map(json.loads, (out / "log.jsonl").read_text().splitlines())
        if facts["event"] == event
    ]


@pytest.mark.slow
@pytest.mark.parametrize("processes", [2, 4])
def test_several_processes_give_the_loss_curve_of_one(processes, corpus, finished_run, tmp_path):
    settings = recipe(corpus)
    assert settings.model.dropout == 0.1  # the same random numbers, wherever a piece is computed
    assert settings.training.pieces == 4
    train(settings, tmp_path, display=QuietDisplay(), processes=processes, threads=1)
    for event, name in [("training", "loss"), ("training", "gradient_norm"), ("validation", "loss")]:
        found, expected = curve(tmp_path, event, name), curve(finished_run, event, name)
        assert found == pytest.approx(expected, rel=SAME_CURVE)
    for name in ("step", "epoch", "target_tokens"):
        assert curve(tmp_path, "training", name) == curve(finished_run, "training", name)
    # The first steps differ by no more than one sum's rounding.
    assert curve(tmp_path, "training", "loss")[:2] == pytest.approx(
        curve(finished_run, "training", "loss")[:2], rel=1e-6
    )


@pytest.mark.slow
def test_all_processes_hold_the_same_weights_bit_by_bit(corpus, tmp_path):
    folder = tmp_path / "run"
    train(recipe(corpus, steps=1), folder, display=QuietDisplay(), processes=1, threads=1)  # prepares the data
    with helped(2, digest_after_training, (str(folder),)) as world:
        first, *others = digest_after_training(world, str(folder))
    assert others == [first]


def test_only_the_first_process_writes(corpus, prepared, machine, tmp_path):
    settings = recipe(corpus, steps=1)
    for rank in (1, 0):
        training = Training(settings, Run(tmp_path), prepared, machine, World(rank, 2), QuietDisplay())
        training.write_checkpoint(regular=True)
        assert len(list(tmp_path.rglob("step-*"))) == (rank == 0)
    assert checksum(tmp_path / "checkpoints" / "step-00000000" / "weights.safetensors")


@pytest.mark.parametrize("size", [2, 3, 4])
def test_the_processes_gradients_sum_up_to_that_of_one(size, corpus, prepared, machine, tmp_path, monkeypatch):
    """Without any other process: the sums are done by hand."""
    from regard.data.batches import steps

    settings = recipe(corpus)
    training = settings.training
    _, step = next(steps(prepared.train, training.piece_tokens, training.pieces, training.seed))

    def gradient(rank: int, size: int) -> torch.Tensor:
        seen: list[torch.Tensor] = []
        monkeypatch.setattr(World, "sum", lambda self, tensor: seen.append(tensor.clone()))
        one = Training(settings, Run(tmp_path), prepared, machine, World(rank, size), QuietDisplay())
        one.model.train()
        monkeypatch.setattr(one.stepper, "_change_weights", lambda *given, **named: 0.0)  # it belongs to the sum
        one.stepper.take(step, 1, 0.0)
        sums, flat = seen
        return torch.cat([sums, flat.double()])

    whole = gradient(0, 1)
    parts = sum(gradient(rank, size) for rank in range(size))
    torch.testing.assert_close(parts, whole, rtol=1e-4, atol=1e-5)  # float32, another order of sums
