"""What training minimises, for one batch.

Shapes: B batch, S source length, T target length, D d_model.
"""

import torch

from regard.data.batches import Batch
from regard.model.loss import Loss, token_loss
from regard.model.transformer import Transformer
from regard.tokens import PAD


def batch_loss(model: Transformer, batch: Batch, device: torch.device, smoothing: float) -> Loss:
    """Return the loss of a batch, summed over its real target tokens."""
    src = torch.from_numpy(batch.src).to(device)  # (B, S)
    tgt = torch.from_numpy(batch.tgt).to(device)  # (B, T + 1): start, …, end
    hidden = model(src, tgt[:, :-1])  # (B, T, D)
    following = tgt[:, 1:]
    real = following != PAD
    return token_loss(hidden[real], following[real], model.output.weight, smoothing)
