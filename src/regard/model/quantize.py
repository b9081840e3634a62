"""Matrix products in eight bits: weights rounded once, inputs as they come.

Shapes: N rows of input, D width of input, F width of output.

Each output row of a weight has a scale of its own, and so has each row of the input: a sentence's numbers do not depend
on what else is in its batch. fbgemm, which comes with torch, multiplies the whole numbers.
"""

import warnings
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from regard.model.embedding import OutputLayer
from regard.model.transformer import Transformer

_LARGEST = 127  # of the whole numbers that stand for weights and inputs
_SMALLEST_SCALE = 1e-30  # for rows of zeros


class Rounded(NamedTuple):
    """A matrix (F, D) of whole numbers of eight bits, and what they are to be multiplied with, (F,)."""

    numbers: Tensor
    scale: Tensor


def round_rows(matrix: Tensor) -> Rounded:
    """Round each row to whole numbers from -127 to 127 times the row's scale."""
    scale = (matrix.abs().amax(dim=1) / _LARGEST).clamp_min(_SMALLEST_SCALE)
    return Rounded((matrix / scale[:, None]).round_().to(torch.int8), scale)


def restore_rows(rounded: Rounded) -> Tensor:
    """Return the matrix that the whole numbers stand for."""
    return rounded.numbers.to(rounded.scale.dtype) * rounded.scale[:, None]


class Int8Linear(nn.Module):
    """A linear map y = x Wᵀ + b whose product runs in eight bits."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        super().__init__()
        self.bias = bias
        self._packed = _pack(round_rows(weight.detach().float()))
        self._levels = input_levels()

    def forward(self, x: Tensor) -> Tensor:
        """Turn (…, D) into (…, F)."""
        rows = x.reshape(-1, x.size(-1))  # (N, D)
        largest = rows.abs().amax(dim=1, keepdim=True).clamp_min_(_SMALLEST_SCALE)  # (N, 1)
        product = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32(
            rows / largest, 1 / self._levels, self._levels, self._packed
        )
        product.mul_(largest)
        if self.bias is not None:
            product.add_(self.bias)
        return product.view(*x.shape[:-1], -1)  # type: ignore[no-any-return]


class Int8Output(OutputLayer):
    """The output layer, its product in eight bits."""

    def __init__(self, output: OutputLayer) -> None:
        nn.Module.__init__(self)
        self.weight = output.weight
        self._linear = Int8Linear(output.weight)

    def forward(self, hidden: Tensor) -> Tensor:
        """Turn (…, D) into logits (…, V)."""
        return self._linear(hidden)  # type: ignore[no-any-return]

    def restricted(self, rows: Tensor) -> Callable[[Tensor], Tensor]:
        """Return what turns (…, D) into the logits (…, R) of the tokens `rows` (R,) alone."""
        return Int8Linear(self.weight[rows])


def use_int8_products(model: Transformer) -> None:
    """Let all linear maps of a model, in place, compute in eight bits; it can't be trained any more."""
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.Linear):
                setattr(module, name, Int8Linear(child.weight, child.bias))
    model.output = Int8Output(model.output)


def input_levels() -> int:
    """Return how many steps lie between 0 and the largest input of a row.

    Processors without the instructions made for it add pairs of products in sixteen bits; seven bits keep that exact.
    """
    return _LARGEST if torch.cpu._is_vnni_supported() else _LARGEST // 2


def _pack(rounded: Rounded) -> object:
    """Lay out a matrix as fbgemm wants it; the other engines that torch has can end the process (machine.py)."""
    scale, zero = rounded.scale.double(), torch.zeros(len(rounded.scale), dtype=torch.long)
    before = torch.backends.quantized.engine
    torch.backends.quantized.engine = "fbgemm"
    try:
        with warnings.catch_warnings():
            # torch announces that tensors of this kind will go, and names nothing yet that takes their place.
            warnings.filterwarnings("ignore", "torch.quantize_per", UserWarning)
            quantized = torch._make_per_channel_quantized_tensor(rounded.numbers.contiguous(), scale, zero, 0)
            return torch.ops.quantized.linear_prepack(quantized, None)
    finally:
        torch.backends.quantized.engine = before
