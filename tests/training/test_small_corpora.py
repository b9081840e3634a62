"""The options for small corpora: each is exact under resuming, and the same for several processes."""

import json
from pathlib import Path

import pytest
from digits import recipe, same_weights
from test_distributed import SAME_CURVE, curve

from regard.progress import QuietDisplay
from regard.training.loop import train

OPTIONS = {
    "consistency": {"consistency": 5.0},
    "subword dropout": {"data": {"subword_dropout": 0.2}},
}


@pytest.fixture(scope="module", params=OPTIONS)
def option(request):
    return OPTIONS[request.param]


@pytest.fixture(scope="module")
def undisturbed(option, corpus, tmp_path_factory):
    out = tmp_path_factory.mktemp("option")
    train(recipe(corpus, **option), out, display=QuietDisplay(), processes=1, threads=1)
    return out


def assert_same(one: Path, other: Path) -> None:
    assert same_weights(one / "model", other / "model")
    for checkpoint in (other / "checkpoints").iterdir():
        assert same_weights(one / "checkpoints" / checkpoint.name, checkpoint)


def test_it_changes_the_training(undisturbed, finished_run):
    assert not same_weights(undisturbed / "model", finished_run / "model")


def test_a_run_that_died_and_went_on_ends_with_the_same_bits(option, undisturbed, corpus, stopped_run):
    out = stopped_run(4, **option)
    train(recipe(corpus, **option), out, display=QuietDisplay(), processes=1, threads=1)
    assert_same(out, undisturbed)


@pytest.mark.slow
def test_two_processes_train_like_one(option, undisturbed, corpus, tmp_path):
    train(recipe(corpus, **option), tmp_path, display=QuietDisplay(), processes=2, threads=1)
    for event, name in [("training", "objective"), ("training", "loss"), ("validation", "loss")]:
        assert curve(tmp_path, event, name) == pytest.approx(curve(undisturbed, event, name), rel=SAME_CURVE)


def test_the_log_has_what_is_minimised_and_the_usual_loss(corpus, tmp_path):
    train(recipe(corpus, steps=2, consistency=5.0), tmp_path, display=QuietDisplay(), processes=1, threads=1)
    facts = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    training = [one for one in facts if one["event"] == "training"]
    assert all(one["objective"] > one["loss"] for one in training)
