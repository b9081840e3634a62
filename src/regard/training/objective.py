"""What training minimises, for one batch.

Shapes: B batch, S source length, T target length, D d_model.
"""

import torch
from torch import Tensor

from regard.data.batches import Batch
from regard.model.consistency import consistent_loss
from regard.model.loss import Loss, token_loss, weighted_loss
from regard.model.transformer import Transformer
from regard.settings import TrainingSettings
from regard.tokens import PAD
from regard.training.output_sample import OutputSample


def training_loss(
    model: Transformer,
    batch: Batch,
    device: torch.device,
    smoothing: float,
    consistency: float,
    sample: OutputSample | None = None,
) -> Loss:
    """Return the loss of a batch that passes the model once, or twice where `consistency` wants the two to agree.

    With a sample, the softmax is over its tokens (output_sample.py).
    """
    if consistency:
        return two_pass_loss(model, batch, device, smoothing, consistency, sample)
    return batch_loss(model, batch, device, smoothing, sample)


def consistency_at(step: int, settings: TrainingSettings) -> float:
    """Return what agreement of two passes counts in a step, counted from 1; 0: there is one pass."""
    return settings.consistency if step > settings.consistency_start else 0.0


def batch_loss(
    model: Transformer, batch: Batch, device: torch.device, smoothing: float, sample: OutputSample | None = None
) -> Loss:
    """Return the loss of a batch, summed over its real target tokens; if it has factors, that of `weighted_loss`."""
    src = torch.from_numpy(batch.src).to(device)  # (B, S)
    tgt = torch.from_numpy(batch.tgt).to(device)  # (B, T + 1): start, …, end
    hidden = model(src, tgt[:, :-1])  # (B, T, D)
    following = tgt[:, 1:]
    real = following != PAD
    targets, weight, counts = _outputs(model, following[real], sample)
    if batch.factors is None:
        return token_loss(hidden[real], targets, weight, smoothing, counts)
    factors = torch.from_numpy(batch.factors).to(hidden)[:, None].expand_as(real)[real]
    return weighted_loss(hidden[real], targets, weight, factors, counts)


def two_pass_loss(
    model: Transformer,
    batch: Batch,
    device: torch.device,
    smoothing: float,
    alpha: float,
    sample: OutputSample | None = None,
) -> Loss:
    """Return the loss of a batch that passes the model twice, with dropout of its own each time (consistency.py).

    The two passes are one, of a batch of 2 B rows: that takes fewer and larger products.
    """
    src = torch.from_numpy(batch.src).to(device).repeat(2, 1)  # (2 B, S)
    tgt = torch.from_numpy(batch.tgt).to(device)  # (B, T + 1)
    hidden = model(src, tgt[:, :-1].repeat(2, 1))  # (2 B, T, D)
    following = tgt[:, 1:]
    real = following != PAD
    targets, weight, counts = _outputs(model, following[real], sample)
    return consistent_loss(hidden[real.repeat(2, 1)], targets, weight, smoothing, alpha, counts)


def _outputs(
    model: Transformer, following: Tensor, sample: OutputSample | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return targets, the rows of the output layer that they count, and how many tokens each row stands for."""
    weight = model.output.weight
    if sample is None:
        return following, weight, None
    targets, tokens, counts = (
        torch.from_numpy(array).to(weight.device)
        for array in (sample.find(following.cpu().numpy()), sample.tokens, sample.counts())
    )
    return targets, weight[tokens], counts
