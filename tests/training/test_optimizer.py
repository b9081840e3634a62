"""Adam and the learning rate (§5.3)."""

import pytest
import torch
from torch import nn

from regard.settings import TrainingSettings
from regard.training.optimizer import Gradients, learning_rate, make_optimizer

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
    assert learning_rate(step, d_model=512, warmup=4000) == pytest.approx(expected, rel=EXACT)


def test_the_papers_peak_is_what_one_computes_by_hand():
    # 1 / √512 = 0.0441942 and 1 / √4000 = 0.0158114; given to six digits.
    assert learning_rate(4000, 512, 4000) == pytest.approx(6.98771e-4, rel=1e-5)
    assert learning_rate(100_000, 512, 4000) == pytest.approx(1.39754e-4, rel=1e-5)


@pytest.mark.parametrize(("step", "expected"), [(1, 5e-6), (500, 2.5e-3), (1000, 5e-3), (4000, 2.5e-3)])
def test_with_a_peak_the_same_curve_reaches_that_value(step, expected):
    assert learning_rate(step, 512, 1000, peak=5e-3) == pytest.approx(expected, rel=EXACT)


@pytest.mark.parametrize("step", [1, 7, 300, 4000, 9999])
def test_the_peak_of_the_paper_gives_the_papers_curve(step):
    peak = learning_rate(4000, 512, 4000)
    assert learning_rate(step, 512, 4000, peak) == pytest.approx(learning_rate(step, 512, 4000), rel=EXACT)


def test_adam_has_the_papers_numbers():
    group = make_optimizer(nn.Linear(2, 2), TrainingSettings()).param_groups[0]
    assert (group["betas"], group["eps"], group["weight_decay"]) == ((0.9, 0.98), 1e-9, 0)


def test_two_steps_of_adam_are_the_formula_worked_out_by_hand():
    weight = nn.Parameter(torch.tensor([1.0]))
    optimizer = make_optimizer(nn.ParameterList([weight]), TrainingSettings())
    optimizer.param_groups[0]["lr"] = 0.1
    value, mean, square = 1.0, 0.0, 0.0
    for step, gradient in enumerate((0.5, -2.0), start=1):
        weight.grad = torch.tensor([gradient])
        optimizer.step()
        mean, square = 0.9 * mean + 0.1 * gradient, 0.98 * square + 0.02 * gradient**2
        value -= 0.1 * (mean / (1 - 0.9**step)) / ((square / (1 - 0.98**step)) ** 0.5 + 1e-9)
        assert weight.item() == pytest.approx(value, rel=1e-6)  # float32


def test_gradients_are_views_of_one_tensor_in_the_order_of_the_weights():
    model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
    gradients = Gradients(model)
    assert gradients.flat.numel() == sum(weight.numel() for weight in model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    assert torch.equal(gradients.flat, torch.cat([weight.grad.flatten() for weight in model.parameters()]))
    assert gradients.flat.abs().sum() > 0


def test_a_second_backward_adds_to_the_gradients_where_they_are():
    model = nn.Linear(3, 2)
    gradients = Gradients(model)
    places = [weight.grad.data_ptr() for weight in model.parameters()]
    model(torch.ones(1, 3)).sum().backward()
    once = gradients.flat.clone()
    model(torch.ones(1, 3)).sum().backward()
    assert torch.equal(gradients.flat, 2 * once)
    gradients.clear()
    assert not gradients.flat.any()
    assert [weight.grad.data_ptr() for weight in model.parameters()] == places


def test_a_shared_weight_has_one_gradient():
    first, second = nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)
    second.weight = first.weight
    assert Gradients(nn.Sequential(first, second)).flat.numel() == 4
