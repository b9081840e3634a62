"""The largest scores of a row, found in one quick pass: rows are as long as the vocabulary.

Shapes: N rows, V vocabulary.
"""

import torch
from torch import Tensor

_BLOCK = 64  # neighbours of which only the largest counts at first


def top(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the `count` largest of each row of (N, V), largest first, and where they are, (N, count) each.

    The largest `count` lie in the `count` blocks with the largest peaks: each block that holds one of them has a peak
    at least as large, and there are no more than `count` such blocks. So only those are looked at closely.
    """
    width = scores.size(1)
    blocks = width // _BLOCK
    if blocks <= 2 * count:
        found = scores.topk(count, dim=1)
        return found.values, found.indices
    end = blocks * _BLOCK
    peaks = scores[:, :end].view(len(scores), blocks, _BLOCK).amax(dim=2)  # (N, blocks)
    starts = peaks.topk(count, dim=1).indices * _BLOCK  # (N, count)
    inside = (starts[:, :, None] + torch.arange(_BLOCK, device=scores.device)).flatten(1)
    rest = torch.arange(end, width, device=scores.device).expand(len(scores), -1)
    columns = torch.cat([inside, rest], dim=1)
    values, places = scores.gather(1, columns).topk(count, dim=1)
    return values, columns.gather(1, places)
