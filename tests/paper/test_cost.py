"""The cost of a training: by hand, by torch's own counter, and next to the paper's."""

import pytest
import torch
from torch.nn.functional import cross_entropy
from torch.utils.flop_counter import FlopCounterMode

from regard.model.build import build_model
from regard.model.transformer import count_weights as count_real_weights
from regard.paper.cost import Pace, count_weights, paces, step_cost, training_cost
from regard.paper.figures import PAPER_RUNS, SUSTAINED
from regard.presets import PRESETS
from regard.settings import ModelSettings, preset

# d_k and d_v differ from d_model / heads and from each other, so that no width stands for another.
ODD = {
    "d_model": 24,
    "d_ff": 40,
    "heads": 3,
    "d_k": 5,
    "d_v": 7,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "dropout": 0.0,
}


def test_the_base_model_by_hand() -> None:
    """One token a side, in sentences of one: 2 FLOPs for every weight of every matrix that it meets."""
    attention = 4 * 512 * 512
    feed_forward = 2 * 512 * 2048
    look = 2 * 512  # one score and one sum in each of 8 heads of width 64
    found = step_cost(ModelSettings(), 37_000, 1, 1, 1, 1)
    assert found.encoder == 2 * 6 * (attention + look + feed_forward)
    assert found.decoder == 2 * 6 * (2 * attention + 2 * look + feed_forward)
    assert found.output == 2 * 512 * 37_000
    assert found.training == 3 * (found.encoder + found.decoder + found.output)


def test_looks_grow_with_the_length_and_stop_at_the_neighbourhood() -> None:
    def encoder(length: int, **model: int) -> int:
        return step_cost(ModelSettings(**model), 100, length, 0, length, 1).encoder  # type: ignore[arg-type]

    one, two = encoder(10), encoder(20)
    assert two - 2 * one == 6 * 2 * (512 + 512) * (20 * 20 - 2 * 10 * 10)
    assert encoder(20, neighbours=10) == 2 * one


@pytest.mark.parametrize("embeddings", ["shared", "separate"])
def test_it_is_what_torch_counts_in_a_real_step(embeddings: str) -> None:
    model = build_model(ModelSettings(**ODD, embeddings=embeddings), 50)  # type: ignore[arg-type]
    sentences, source_length, target_length = 4, 6, 9
    src = torch.randint(4, 50, (sentences, source_length))
    tgt = torch.randint(4, 50, (sentences, target_length + 1))
    with FlopCounterMode(display=False) as counter:
        hidden = model(src, tgt[:, :-1]).flatten(0, 1)
        # The plain loss: our own has the same products, but adds some in place, which the counter passes over.
        cross_entropy(hidden @ model.output.weight.t(), tgt[:, 1:].flatten()).backward()
    tokens = sentences * source_length, sentences * target_length
    found = step_cost(ModelSettings(**ODD), 50, *tokens, source_length, target_length)  # type: ignore[arg-type]
    assert counter.get_total_flops() == found.training


@pytest.mark.parametrize("name", PRESETS)
def test_weights_are_those_of_the_model_that_is_built(name: str) -> None:
    settings = preset(name)
    with torch.device("meta"):
        real = count_real_weights(build_model(settings.model, settings.data.vocabulary_size))
    assert count_weights(settings.model, settings.data.vocabulary_size) == real


@pytest.mark.parametrize(
    "options", [{"attention_bias": True, **ODD}, {"norm": "pre"}, {"embeddings": "target"}, {"embeddings": "separate"}]
)
def test_weights_of_departures_are_counted_as_well(options: dict[str, object]) -> None:
    settings = ModelSettings(**options)  # type: ignore[arg-type]
    with torch.device("meta"):
        assert count_weights(settings, 50) == count_real_weights(build_model(settings, 50))


def test_the_papers_way_gives_the_papers_figures() -> None:
    base, big = PAPER_RUNS
    assert base.estimate == 12 * 3600 * 8 * 9.5e12
    assert f"{base.estimate:.1e}" == f"{base.flops:.1e}" == "3.3e+18"
    assert f"{big.estimate:.1e}" == f"{big.flops:.1e}" == "2.3e+19"
    for run in PAPER_RUNS:
        assert preset(run.preset).training.steps == run.steps
        assert run.steps * run.seconds_a_step / 3600 == pytest.approx(run.hours, rel=0.08)  # the paper rounds


def test_a_whole_training_by_hand() -> None:
    cost = training_cost(preset("paper-base"), length=30)
    matrices = 6 * (4 * 512 * 512 + 2 * 512 * 2048) + 6 * (8 * 512 * 512 + 2 * 512 * 2048) + 512 * 37_000
    looks = (6 + 6 + 6) * 2 * 512 * 30
    assert cost.flops == 100_000 * 25_000 * 6 * (matrices + looks)
    assert f"{cost.flops:.2e}" == "9.53e+17"
    assert cost.rough == 6 * 63_045_632 * 25_000 * 100_000


def test_times_are_flops_by_pace() -> None:
    assert Pace("x", 2e12, "").seconds(8e13, gpus=4) == 10
    assumed, base_clock, big_clock, *today = paces()
    assert assumed.flops == SUSTAINED["P100"] == 9.5e12
    for clock, run in zip((base_clock, big_clock), PAPER_RUNS, strict=True):  # the paper's own time comes back
        assert clock.seconds(training_cost(preset(run.preset)).flops) == pytest.approx(run.steps * run.seconds_a_step)
    assert [one.gpu.split()[0] for one in today] == ["V100", "A100", "H100"]
    assert all("assumed" in one.why for one in today)
