"""One step: gradients piece by piece, and one change of the weights."""

import math

import numpy as np
import pytest
import torch
from digits import MODEL, TRAINING
from torch.nn import functional as F

from regard.data.batches import collate
from regard.model.build import build_model
from regard.settings import ModelSettings, TrainingSettings
from regard.training.distributed import World
from regard.training.objective import batch_loss
from regard.training.step import Stepper

# float32 sums of some hundred products, added up in another order; gradients here are of size 1 and below.
CLOSE = {"rtol": 1e-4, "atol": 1e-6}


@pytest.fixture
def make_stepper(prepared, machine):
    def make(dropout=0.0, **training):
        torch.manual_seed(3)
        model = build_model(ModelSettings(**MODEL, dropout=dropout), len(prepared.vocabulary)).train()
        settings = TrainingSettings(**{**TRAINING, "label_smoothing": 0.0, **training})
        return Stepper(model, prepared.train, settings, machine, World())

    return make


def gradient_of(stepper, step, **options):
    """The gradient that a step arrives at: of a weight that is moved by it with rate 1."""
    seen = []
    adam = stepper.optimizer

    def keep(rate, scale):
        seen.append(adam.gradient * scale)
        adam.clear()

    adam.step = keep
    report = stepper.take(step, 1, rate=1.0, **options)
    return (seen[0] if seen else None), report


def snapshot(stepper):
    adam = stepper.optimizer
    return [tensor.clone() for tensor in (adam.weights, adam.mean, adam.square, torch.tensor(adam.steps))]


def unchanged(before, after):
    return len(before) == len(after) and all(map(torch.equal, before, after))


ROWS = np.arange(24)
THREE_PIECES = (ROWS[:5], ROWS[5:16], ROWS[16:])


def test_the_gradients_of_pieces_add_up_to_the_gradient_of_the_batch(make_stepper):
    whole, report = gradient_of(make_stepper(), (ROWS,))
    pieces, other = gradient_of(make_stepper(), THREE_PIECES)
    torch.testing.assert_close(pieces, whole, **CLOSE)
    assert other.tokens == report.tokens
    assert other.smoothed == pytest.approx(report.smoothed, rel=1e-5)  # float32


def test_the_step_is_by_the_mean_gradient_a_token(make_stepper, prepared, machine):
    stepper = make_stepper()
    batch = collate(prepared.train, ROWS)
    loss = batch_loss(stepper.model, batch, machine.device, 0.0).smoothed / batch.tokens
    expected = torch.cat([part.flatten() for part in torch.autograd.grad(loss, list(stepper.model.parameters()))])
    found, report = gradient_of(make_stepper(), THREE_PIECES)
    torch.testing.assert_close(found, expected, **CLOSE)
    assert report.norm == pytest.approx(float(expected.norm()), rel=1e-4)
    assert report.tokens == batch.tokens


def test_gradients_are_clear_after_a_step_so_that_the_next_starts_anew(make_stepper):
    stepper = make_stepper()
    once, _ = gradient_of(stepper, THREE_PIECES)
    twice, _ = gradient_of(stepper, THREE_PIECES)
    assert torch.equal(once, twice)
    assert not stepper.optimizer.gradient.any()


def test_clipping_is_off_by_default(make_stepper):
    assert TrainingSettings().clip_norm is None
    found, report = gradient_of(make_stepper(), THREE_PIECES)
    assert float(found.norm()) == pytest.approx(report.norm, rel=1e-5)


def test_clipping_shortens_the_mean_gradient_to_the_norm_and_keeps_its_direction(make_stepper):
    free, before = gradient_of(make_stepper(), THREE_PIECES)
    clipped, report = gradient_of(make_stepper(clip_norm=before.norm / 4), THREE_PIECES)
    assert report.norm == pytest.approx(before.norm, rel=1e-5)  # what is told is the norm before
    assert float(clipped.norm()) == pytest.approx(before.norm / 4, rel=1e-5)
    assert float(F.cosine_similarity(free, clipped, dim=0)) == pytest.approx(1, abs=1e-5)


def test_a_norm_below_the_limit_is_not_clipped(make_stepper):
    free, before = gradient_of(make_stepper(), THREE_PIECES)
    clipped, _ = gradient_of(make_stepper(clip_norm=before.norm * 2), THREE_PIECES)
    assert torch.equal(free, clipped)


def test_label_smoothing_reaches_the_loss_but_not_the_perplexity(make_stepper):
    _, plain = gradient_of(make_stepper(), (ROWS,))
    _, smooth = gradient_of(make_stepper(label_smoothing=0.2), (ROWS,))
    assert smooth.plain == pytest.approx(plain.plain, rel=1e-6)
    assert plain.smoothed == pytest.approx(plain.plain, rel=1e-6)
    assert smooth.smoothed != pytest.approx(plain.smoothed, rel=1e-3)


def test_the_smoothed_loss_is_torchs(make_stepper, prepared):
    stepper = make_stepper(label_smoothing=0.2)
    batch = collate(prepared.train, ROWS)
    tgt = torch.from_numpy(batch.tgt)
    logits = stepper.model(torch.from_numpy(batch.src), tgt[:, :-1]) @ stepper.model.output.weight.T
    expected = F.cross_entropy(
        logits.flatten(0, 1), tgt[:, 1:].flatten(), ignore_index=0, reduction="sum", label_smoothing=0.2
    )
    _, report = gradient_of(stepper, (ROWS,))
    assert report.smoothed == pytest.approx(float(expected.detach()), rel=1e-5)  # float32


def test_random_numbers_depend_on_seed_step_and_piece_alone(make_stepper):
    def gradient(number=1, disturb=False, **training):
        stepper = make_stepper(dropout=0.3, **training)
        if disturb:
            torch.rand(17)
        return stepper.take(THREE_PIECES, number, rate=0.0).norm

    assert gradient() == gradient(disturb=True)
    assert gradient() != gradient(number=2)
    assert gradient() != gradient(seed=2)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_gradient_that_is_not_finite_leaves_weights_and_optimizer_untouched(make_stepper, monkeypatch, value):
    stepper = make_stepper()
    assert stepper.take(THREE_PIECES, 1, rate=0.01).is_finite
    before = snapshot(stepper)

    learn = Stepper.learn

    def spoiled(self, batches, seeds, consistency):
        loss = learn(self, batches, seeds, consistency)
        self.optimizer.gradient[0] = value
        return loss

    with monkeypatch.context() as patch:
        patch.setattr(Stepper, "learn", spoiled)
        assert not stepper.take(THREE_PIECES, 2, rate=0.01).is_finite
    assert unchanged(before, snapshot(stepper))
    assert stepper.take(THREE_PIECES, 3, rate=0.01).is_finite  # and nothing of it is left
    assert not unchanged(before, snapshot(stepper))


def test_the_wish_to_stop_is_passed_on(make_stepper):
    assert not make_stepper().take(THREE_PIECES, 1, rate=0.0).stop
    assert make_stepper().take(THREE_PIECES, 1, rate=0.0, stop=True).stop


def test_a_loss_that_is_not_finite_leaves_everything_untouched_though_the_gradient_is(make_stepper, monkeypatch):
    stepper = make_stepper()
    stepper.take(THREE_PIECES, 1, rate=0.01)
    before = snapshot(stepper)

    learn = Stepper.learn

    def spoiled(self, batches, seeds, consistency):
        loss = learn(self, batches, seeds, consistency)
        return loss._replace(objective=loss.objective + math.inf)

    monkeypatch.setattr(Stepper, "learn", spoiled)
    report = stepper.take(THREE_PIECES, 2, rate=0.01)
    assert math.isfinite(report.norm)
    assert not report.is_finite
    assert unchanged(before, snapshot(stepper))
