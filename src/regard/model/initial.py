"""How weights begin: Glorot's uniform bound for linear maps, variance 1/d_model for embeddings."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn


def glorot(linear: nn.Linear, widths: Sequence[int] = ()) -> nn.Linear:
    """Draw a linear map's weights, and return it; `widths` are the outputs of the maps that lie together in it.

    Glorot's bound depends on a map's outputs, so maps that share a matrix are drawn each for itself.
    """
    parts: Sequence[Tensor] = torch.split(linear.weight, list(widths) or [linear.out_features])
    for part in parts:
        nn.init.xavier_uniform_(part)
    if linear.bias is not None:
        nn.init.zeros_(linear.bias)
    return linear


def shrink(linears: Iterable[nn.Linear], gain: float) -> None:
    """Multiply first weights, biases included, by a factor."""
    with torch.no_grad():
        for parameter in (parameter for linear in linears for parameter in linear.parameters()):
            parameter.mul_(gain)


def embedding_matrix(rows: int, d_model: int) -> nn.Parameter:
    """Draw rows of variance 1/d_model, which √d_model scales to 1 (§3.4)."""
    return nn.Parameter(torch.randn(rows, d_model) * d_model**-0.5)
