"""What training minimises: the loss of the next token, at every real position."""

import numpy as np
import pytest
import torch

from regard.data.batches import Batch
from regard.settings import TrainingSettings
from regard.tokens import END, PAD, START
from regard.training.objective import batch_loss, consistency_at, training_loss, two_pass_loss

DEVICE = torch.device("cpu")


def batch(source, target):
    width = max(map(len, target))
    src = np.array([[*row, *[PAD] * (max(map(len, source)) - len(row))] for row in source])
    tgt = np.array([[START, *row, *[PAD] * (width - len(row))] for row in target])
    return Batch(src, tgt, sum(map(len, target)), np.arange(len(source)))


def test_each_token_is_predicted_from_those_before_it(tiny_model):
    model = tiny_model(sharpness=3)
    source, target = [5, 6, END], [7, 8, END]
    scores = model(torch.tensor([source]), torch.tensor([[START, 7, 8]])) @ model.output.weight.T
    expected = -sum(float(row.log_softmax(-1)[token]) for row, token in zip(scores[0].detach(), target, strict=True))
    loss = batch_loss(model, batch([source], [target]), DEVICE, 0.0)
    assert loss.plain.item() == pytest.approx(expected, rel=1e-5)  # float32


def test_padding_adds_nothing_to_the_loss(tiny_model):
    model = tiny_model(sharpness=3)
    pairs = [([5, 6, END], [7, END]), ([9, 4, 4, 11, END], [5, 6, 7, 8, 9, END])]
    alone = sum(batch_loss(model, batch([one], [other]), DEVICE, 0.1).smoothed.item() for one, other in pairs)
    together = batch_loss(model, batch(*zip(*pairs, strict=True)), DEVICE, 0.1).smoothed.item()
    assert together == pytest.approx(alone, rel=1e-5)  # float32


PAIRS = [([5, 6, END], [7, END]), ([9, 4, 4, 11, END], [5, 6, 7, 8, 9, END])]


def test_two_passes_without_dropout_have_the_loss_of_one(tiny_model):
    model = tiny_model(sharpness=3)
    pair = batch(*zip(*PAIRS, strict=True))
    expected = batch_loss(model, pair, DEVICE, 0.1)
    for ours, other in zip(two_pass_loss(model, pair, DEVICE, 0.1, 5.0), expected, strict=True):
        assert ours.item() == pytest.approx(other.item(), rel=1e-5)  # float32


def test_two_passes_have_dropout_of_their_own_which_the_objective_counts(tiny_model):
    model = tiny_model(sharpness=3, dropout=0.3).train()
    loss = two_pass_loss(model, batch(*zip(*PAIRS, strict=True)), DEVICE, 0.1, 5.0)
    assert loss.objective > loss.smoothed + 0.1


def test_consistency_chooses_the_loss(tiny_model):
    model, pair = tiny_model(sharpness=3, dropout=0.3).train(), batch(*zip(*PAIRS, strict=True))

    def found(*objective):
        torch.manual_seed(1)
        return [part.item() for part in training_loss(model, pair, DEVICE, *objective)]

    def expected(loss, *numbers):
        torch.manual_seed(1)
        return [part.item() for part in loss(model, pair, DEVICE, *numbers)]

    assert found(0.1, 0.0) == expected(batch_loss, 0.1)
    assert found(0.2, 5.0) == expected(two_pass_loss, 0.2, 5.0)


def test_two_passes_begin_after_the_steps_that_the_settings_name():
    assert {consistency_at(step, TrainingSettings()) for step in (1, 1000)} == {0}
    assert consistency_at(1, TrainingSettings(consistency=5.0)) == 5
    late = TrainingSettings(consistency=5.0, consistency_start=30)
    assert [consistency_at(step, late) for step in (1, 30, 31, 500)] == [0, 0, 5, 5]
