"""The output layer and its loss, in the compiled library: what regard/model/loss.py computes chunk by chunk.

Shapes: N tokens, D d_model, V vocabulary.
"""

import torch
from torch import Tensor

from regard.native.library import Library, LossStruct, find_library

_WIDEST = 192  # d_model up to which gradients are faster than torch's: 1.3 times at 128, as fast at 256, 0.93 at 512
_FEWEST = 256  # tokens for which laying them out pays
_TOKENS = 288  # whose logits are held at a time; a whole number of panels and of tiles


def add_losses(
    hidden: Tensor,
    targets: Tensor,
    weight: Tensor,
    smoothing: float,
    gradients: tuple[Tensor | None, Tensor | None],
    logits: int,
) -> Tensor | None:
    """Return (-log p of the targets, log Σ e^logit), each summed over N tokens; None if torch has to compute them.

    hidden (N, D), targets (N,), weight (V, D). What they are to change by, but for what ε/V adds, is added to
    `gradients`, of hidden and of weight, where they are wanted. No more than `logits` logits are held at a time.
    """
    library = find_library()
    learning = gradients != (None, None)
    if library is None or not _can_compute(library, hidden, targets, weight, learning):
        return None
    width = library.panel // 2  # by which rows of logits are longer, so that they do not collide in the cache
    chunk = min(_TOKENS, (logits // weight.size(0) - width) // library.panel * library.panel)
    return _compute(library, hidden, targets, weight, smoothing, gradients, chunk) if chunk > 0 else None


def _can_compute(library: Library, hidden: Tensor, targets: Tensor, weight: Tensor, learning: bool) -> bool:
    """Say whether the library knows such tensors and is faster with them; torch is if it has a second thread."""
    return (
        all(x.device.type == "cpu" and x.is_contiguous() for x in (hidden, targets, weight))
        and hidden.dtype == weight.dtype == torch.float32
        and targets.dtype == torch.int64
        and hidden.size(1) % library.panel == 0
        and (not learning or (hidden.size(1) <= _WIDEST and hidden.size(0) >= _FEWEST))
        and torch.get_num_threads() == 1
    )


def _compute(
    library: Library,
    hidden: Tensor,
    targets: Tensor,
    weight: Tensor,
    smoothing: float,
    gradients: tuple[Tensor | None, Tensor | None],
    chunk: int,
) -> Tensor:
    sums = torch.zeros(4, dtype=torch.float64)
    hidden_grad, weight_grad = (None if gradient is None else gradient.data_ptr() for gradient in gradients)
    problem = LossStruct(
        *(hidden.size(0), hidden.size(1), weight.size(0), weight.size(0), chunk, 1, 1.0, 1 - smoothing, 0.0, 0.0),
        *(hidden.data_ptr(), targets.data_ptr(), None, weight.data_ptr(), hidden_grad, weight_grad, sums.data_ptr()),
    )
    if not library.loss(problem):
        raise MemoryError("no memory for the logits")
    return sums[:2]
