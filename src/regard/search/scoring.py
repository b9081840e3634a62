"""The log-probability of given targets.

Shapes: B sentences, S source length, T target length.
"""

import torch
from torch import Tensor

from regard.model.transformer import Transformer
from regard.tokens import PAD


@torch.inference_mode()
def score_targets(model: Transformer, src: Tensor, tgt: Tensor) -> list[list[float]]:
    """Return the log-probability of each token of `tgt` (B, T + 1), which begins with the start token.

    The start token has no score; the end token has one; padding has none.
    """
    scores = model.output.log_probabilities(model(src, tgt[:, :-1]))  # (B, T, V)
    following = tgt[:, 1:]
    picked = scores.gather(2, following[:, :, None]).squeeze(2)  # (B, T)
    return [row[real].tolist() for row, real in zip(picked, following != PAD, strict=True)]
