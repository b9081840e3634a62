"""The options for small corpora: each is exact under resuming, and the same for several processes."""

import json
from pathlib import Path

import pytest
import torch
from digits import recipe, same_weights, weights_of
from safetensors.torch import load_file
from test_distributed import SAME_CURVE, curve

from regard.data.prepare import open_prepared
from regard.model.build import build_model
from regard.model_folder import load_weights
from regard.progress import QuietDisplay
from regard.training.distributed import World
from regard.training.loop import train
from regard.training.validation import validation_loss

OPTIONS = {
    "consistency": {"consistency": 5.0, "consistency_start": 2},
    "initial gain": {"model": {"initial_gain": 0.2}},
    "exponential average": {"average": "exponential", "average_decay": 0.8},
    "weight decay": {"weight_decay": 1.0},
    "softmax tokens": {"softmax_tokens": 16},
    "attention dropout": {"model": {"attention_dropout": 0.2}},
    "activation dropout": {"model": {"activation_dropout": 0.2}},
    "word dropout": {"model": {"word_dropout": 0.2}},
    "subword dropout": {"data": {"subword_dropout": 0.2}},
    "risk": {"steps": 8, "risk_steps": 4, "risk_candidates": 3, "average": "exponential", "average_decay": 0.8},
    "retranslation": {"data": {"retranslation_steps": 6}},
    "retranslation by two": {"data": {"retranslation_steps": 60, "retranslation_models": 2}},
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
def test_parts_of_the_weights_train_like_the_whole(corpus, tmp_path):
    option = OPTIONS["exponential average"]
    runs = [(1, False), (2, True)]
    for processes, shard in runs:
        out = tmp_path / str(processes)
        # Pre-norm is torch's in both, so that dropout draws the same.
        settings = recipe(corpus, consistency=5.0, weight_decay=1.0, shard=shard, model={"norm": "pre"}, **option)
        train(settings, out, display=QuietDisplay(), processes=processes, threads=1)
    one, other = (weights_of(tmp_path / str(processes) / "model") for processes, _ in runs)
    assert one.keys() == other.keys()
    for name, weight in one.items():
        torch.testing.assert_close(other[name], weight, rtol=1e-3, atol=1e-4)  # the order of sums in float32, 12 steps


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


# ---- the exponential average -----------------------------------------------------------------------------------------


def test_the_model_is_the_running_mean_that_the_last_checkpoint_keeps(corpus, tmp_path, words):
    settings = recipe(corpus, **OPTIONS["exponential average"])
    train(settings, tmp_path, display=words, processes=1, threads=1)
    assert "took the running mean of the weights at step 12" in words.lines
    last = tmp_path / "checkpoints" / "step-00000012"
    kept, weights, model = load_file(last / "optimizer.safetensors"), weights_of(last), weights_of(tmp_path / "model")
    assert all(torch.equal(model[name], kept[f"{name}.average"]) for name in weights)
    assert not any(torch.equal(model[name], weights[name]) for name in weights)
    assert "running mean of all steps' (decay 0.8) at step 12" in (tmp_path / "model" / "README.md").read_text()
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["step-00000012"]


def test_the_running_mean_is_what_is_validated(corpus, tmp_path, machine):
    settings = recipe(corpus, **OPTIONS["exponential average"])
    train(settings, tmp_path, display=QuietDisplay(), processes=1, threads=1)
    prepared = open_prepared(tmp_path)
    model = build_model(settings.model, len(prepared.vocabulary))
    load_weights(model, weights_of(tmp_path / "model"))
    loss = validation_loss(model.eval(), prepared.valid, settings.training.piece_tokens, machine, World())
    assert curve(tmp_path, "validation", "loss")[-1] == pytest.approx(loss, rel=1e-6)
