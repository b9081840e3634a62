"""What training minimises: the loss of the next token, at every real position."""

import numpy as np
import pytest
import torch

from regard.data.batches import Batch
from regard.tokens import END, PAD, START
from regard.training.objective import batch_loss

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
