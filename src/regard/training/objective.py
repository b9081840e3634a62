"""What training minimises, for one batch.

Shapes: B batch, S source length, T target length, D d_model.
"""

import torch

from regard.data.batches import Batch
from regard.model.consistency import consistent_loss
from regard.model.loss import Loss, token_loss
from regard.model.transformer import Transformer
from regard.settings import TrainingSettings
from regard.tokens import PAD


def training_loss(model: Transformer, batch: Batch, device: torch.device, smoothing: float, consistency: float) -> Loss:
    """Return the loss of a batch that passes the model once, or twice where `consistency` wants the two to agree."""
    if consistency:
        return two_pass_loss(model, batch, device, smoothing, consistency)
    return batch_loss(model, batch, device, smoothing)


def consistency_at(step: int, settings: TrainingSettings) -> float:
    """Return what agreement of two passes counts in a step, counted from 1; 0: there is one pass."""
    return settings.consistency if step > settings.consistency_start else 0.0


def batch_loss(model: Transformer, batch: Batch, device: torch.device, smoothing: float) -> Loss:
    """Return the loss of a batch, summed over its real target tokens."""
    src = torch.from_numpy(batch.src).to(device)  # (B, S)
    tgt = torch.from_numpy(batch.tgt).to(device)  # (B, T + 1): start, …, end
    hidden = model(src, tgt[:, :-1])  # (B, T, D)
    following = tgt[:, 1:]
    real = following != PAD
    return token_loss(hidden[real], following[real], model.output.weight, smoothing)


def two_pass_loss(model: Transformer, batch: Batch, device: torch.device, smoothing: float, alpha: float) -> Loss:
    """Return the loss of a batch that passes the model twice, with dropout of its own each time (consistency.py).

    The two passes are one, of a batch of 2 B rows: that takes fewer and larger products.
    """
    src = torch.from_numpy(batch.src).to(device).repeat(2, 1)  # (2 B, S)
    tgt = torch.from_numpy(batch.tgt).to(device)  # (B, T + 1)
    hidden = model(src, tgt[:, :-1].repeat(2, 1))  # (2 B, T, D)
    following = tgt[:, 1:]
    real = following != PAD
    return consistent_loss(hidden[real.repeat(2, 1)], following[real], model.output.weight, smoothing, alpha)
