"""Adam and the learning rate (§5.3)."""

import pytest
import torch
from torch import nn

from regard.settings import TrainingSettings
from regard.training.optimizer import Adam, learning_rate

EXACT = 1e-12  # relative; a few roundings of float64


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (1, 512**-0.5 * 4000**-1.5),  # 1.7469e-7
        (2000, 512**-0.5 * 2000 * 4000**-1.5),  # half way up
        (4000, 512**-0.5 * 4000**-0.5),  # the peak, 6.9877e-4
        (16_000, 512**-0.5 * 16_000**-0.5),  # four times as many steps, half the peak
    ],
)
def test_the_learning_rate_is_the_papers_formula(step, expected):
    assert learning_rate(step, d_model=512, settings=TrainingSettings()) == pytest.approx(expected, rel=EXACT)


def test_the_papers_peak_is_what_one_computes_by_hand():
    # 1 / √512 = 0.0441942 and 1 / √4000 = 0.0158114; given to six digits.
    assert learning_rate(4000, 512, TrainingSettings()) == pytest.approx(6.98771e-4, rel=1e-5)
    assert learning_rate(100_000, 512, TrainingSettings()) == pytest.approx(1.39754e-4, rel=1e-5)


@pytest.mark.parametrize(("step", "expected"), [(1, 5e-6), (500, 2.5e-3), (1000, 5e-3), (4000, 2.5e-3)])
def test_with_a_peak_the_same_curve_reaches_that_value(step, expected):
    settings = TrainingSettings(warmup=1000, learning_rate=5e-3)
    assert learning_rate(step, 512, settings) == pytest.approx(expected, rel=EXACT)


@pytest.mark.parametrize("step", [1, 7, 300, 4000, 9999])
def test_the_peak_of_the_paper_gives_the_papers_curve(step):
    peak = learning_rate(4000, 512, TrainingSettings())
    settings = TrainingSettings(learning_rate=peak)
    assert learning_rate(step, 512, settings) == pytest.approx(learning_rate(step, 512, TrainingSettings()), rel=EXACT)


@pytest.mark.parametrize(("step", "expected"), [(1, 0.5), (2, 1.0), (3, 0.8), (4, 0.6), (6, 0.2), (7, 0.0), (100, 0.0)])
def test_a_linear_schedule_is_zero_only_after_the_last_step(step, expected):
    settings = TrainingSettings(schedule="linear", learning_rate=1.0, warmup=2, steps=6)
    assert learning_rate(step, 512, settings) == pytest.approx(expected, rel=EXACT, abs=EXACT)


def test_a_linear_schedule_whose_warmup_is_never_over_only_rises():
    settings = TrainingSettings(schedule="linear", learning_rate=1.0, warmup=10, steps=5)
    assert [learning_rate(step, 512, settings) for step in range(1, 6)] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5])


def test_adam_has_the_papers_numbers():
    adam = Adam(nn.Linear(2, 2), TrainingSettings())
    assert (adam.beta1, adam.beta2, adam.epsilon) == (0.9, 0.98, 1e-9)


@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_two_steps_of_adam_are_the_formula_worked_out_by_hand(scale):
    weight = nn.Parameter(torch.tensor([1.0]))
    adam = Adam(nn.ParameterList([weight]), TrainingSettings())
    value, mean, square = 1.0, 0.0, 0.0
    for step, gradient in enumerate((0.5, -2.0), start=1):
        weight.grad += gradient / scale
        adam.step(0.1, scale)
        mean, square = 0.9 * mean + 0.1 * gradient, 0.98 * square + 0.02 * gradient**2
        value -= 0.1 * (mean / (1 - 0.9**step)) / ((square / (1 - 0.98**step)) ** 0.5 + 1e-9)
        assert weight.item() == pytest.approx(value, rel=1e-6)  # float32
        assert not weight.grad.any()


def test_weight_decay_takes_the_same_share_of_every_weight_whatever_its_gradient():
    weight = nn.Parameter(torch.tensor([1.0, -8.0]))
    adam = Adam(nn.ParameterList([weight]), TrainingSettings(weight_decay=0.5))
    adam.step(0.1)  # no gradient
    assert weight.tolist() == pytest.approx([0.95, -7.6], rel=1e-6)  # float32
    weight.grad += torch.tensor([3.0, 3.0])
    before = weight.tolist()
    adam.step(0.1)
    change = 0.1 * (0.3 / (1 - 0.9**2)) / (0.18 / (1 - 0.98**2)) ** 0.5
    assert weight.tolist() == pytest.approx([0.95 * value - change for value in before], rel=1e-6)


@pytest.mark.parametrize(("decay", "kind"), [(0.0, torch.optim.Adam), (0.5, torch.optim.AdamW)])
def test_many_steps_are_those_of_torchs_own_adam(decay, kind):
    ours, theirs = (nn.Sequential(nn.Linear(70, 40), nn.Linear(40, 3)) for _ in range(2))
    theirs.load_state_dict(ours.state_dict())
    adam = Adam(ours, TrainingSettings(weight_decay=decay))
    other = kind(theirs.parameters(), lr=0.01, betas=(0.9, 0.98), eps=1e-9, weight_decay=decay)
    for step in range(20):
        for one, two in zip(ours.parameters(), theirs.parameters(), strict=True):
            two.grad = torch.sin(torch.arange(one.numel(), dtype=torch.float32) * (step + 1)).view_as(one)
            one.grad += two.grad
        adam.step(0.01)
        other.step()
    for one, two in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-5, atol=1e-6)  # float32, sums in another order


def test_weights_and_gradients_are_views_of_one_tensor_each_in_the_order_of_the_weights():
    model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
    before = torch.cat([weight.detach().flatten() for weight in model.parameters()])
    adam = Adam(model, TrainingSettings())
    assert torch.equal(adam.weights, before)
    model(torch.ones(1, 3)).sum().backward()
    assert torch.equal(adam.gradient, torch.cat([weight.grad.flatten() for weight in model.parameters()]))
    assert adam.gradient.abs().sum() > 0
    adam.step(0.1)
    assert torch.equal(adam.weights, torch.cat([weight.detach().flatten() for weight in model.parameters()]))
    assert not torch.equal(adam.weights, before)


def test_a_second_backward_adds_to_the_gradients_where_they_are():
    model = nn.Linear(3, 2)
    adam = Adam(model, TrainingSettings())
    places = [weight.grad.data_ptr() for weight in model.parameters()]
    model(torch.ones(1, 3)).sum().backward()
    once = adam.gradient.clone()
    model(torch.ones(1, 3)).sum().backward()
    assert torch.equal(adam.gradient, 2 * once)
    adam.clear()
    assert not adam.gradient.any()
    assert [weight.grad.data_ptr() for weight in model.parameters()] == places


def test_a_shared_weight_is_one_weight():
    first, second = nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)
    second.weight = first.weight
    adam = Adam(nn.Sequential(first, second), TrainingSettings())
    assert adam.weights.numel() == adam.gradient.numel() == 4
    assert first.weight is second.weight


def test_the_state_is_the_running_means_by_name_and_can_be_written_into():
    model = nn.Linear(3, 2)
    adam = Adam(model, TrainingSettings())
    state = adam.state()
    assert {name: tuple(part.shape) for name, part in state.items()} == {
        "weight.mean": (2, 3),
        "weight.square": (2, 3),
        "bias.mean": (2,),
        "bias.square": (2,),
    }
    state["bias.square"].fill_(7)
    assert adam.square.sum() == 14


def test_an_exponential_average_is_the_formula_worked_out_by_hand():
    weight = nn.Parameter(torch.tensor([1.0], dtype=torch.float64))
    adam = Adam(nn.ParameterList([weight]), TrainingSettings(average="exponential", average_decay=0.25))
    average = 1.0
    for step, kept in enumerate([0.0, 1 / 10, 2 / 11, 0.25, 0.25], start=1):  # (t - 1) / (t + 8), up to the decay
        weight.grad += step
        adam.step(0.1)
        average = kept * average + (1 - kept) * weight.item()
        assert adam.average.item() == pytest.approx(average, rel=EXACT)
    now = weight.item()
    with adam.averaged():
        assert weight.item() == pytest.approx(average, rel=EXACT)
    assert weight.item() == now


def test_no_average_is_kept_unless_it_is_wanted():
    adam = Adam(nn.Linear(2, 2), TrainingSettings())
    assert adam.average is None
    assert {name.rpartition(".")[2] for name in adam.state()} == {"mean", "square"}
