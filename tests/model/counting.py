"""Counting what torch does, so that tests about cost need no clock."""

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Allocations(TorchDispatchMode):
    """Records the shape of every tensor that any operation returns while it is on."""

    def __init__(self) -> None:
        super().__init__()
        self.shapes: list[torch.Size] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        for one in result if isinstance(result, tuple | list) else [result]:
            if isinstance(one, torch.Tensor):
                self.shapes.append(one.shape)
        return result

    @property
    def largest(self) -> int:
        """The number of elements of the largest tensor."""
        return max(shape.numel() for shape in self.shapes)
