"""The average of checkpoints (§6.1), or the running mean of the weights that a checkpoint keeps."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import safe_open
from torch import Tensor

from regard.model_folder import WEIGHTS
from regard.training.checkpoint import OPTIMIZER, Checkpoint
from regard.training.optimizer import AVERAGE
from regard.training.validation import Validation, is_better


def choose_checkpoints(
    checkpoints: Sequence[Checkpoint],
    validations: Sequence[Validation],
    rule: Literal["last", "best", "exponential"],
    count: int,
    choose_by: Literal["bleu", "loss"],
) -> list[Checkpoint]:
    """Return the checkpoints to average: the last `count` regular ones, or those that validated best.

    Of those with a running mean only the last one counts.

    Where nothing was validated there is no best, so the last ones serve.
    """
    regular = sorted((one for one in checkpoints if one.regular), key=lambda one: one.step)
    if rule == "exponential":
        return regular[-1:]
    if rule == "last" or not validations:
        return regular[-count:]
    validated = {one.step: one for one in validations}
    ranked: list[Checkpoint] = []
    for checkpoint in (one for one in regular if one.step in validated):
        place = 0
        while place < len(ranked) and not is_better(
            validated[checkpoint.step], validated[ranked[place].step], choose_by
        ):
            place += 1
        ranked.insert(place, checkpoint)
    return sorted(ranked[:count], key=lambda one: one.step)


def running_average(folder: Path) -> dict[str, Tensor]:
    """Return the running mean of the weights that a checkpoint keeps beside them."""
    with safe_open(folder / OPTIMIZER, framework="pt") as file:
        names = [name for name in file.keys() if name.endswith(f".{AVERAGE}")]  # noqa: SIM118 (not a dict)
        return {name.removesuffix(f".{AVERAGE}"): file.get_tensor(name) for name in names}


def average_weights(folders: Sequence[Path]) -> dict[str, Tensor]:
    """Return the mean of the weights of checkpoints, summed in float64, one weight in memory at a time."""
    average: dict[str, Tensor] = {}
    with ExitStack() as stack:
        files: list[Any] = [stack.enter_context(safe_open(folder / WEIGHTS, framework="pt")) for folder in folders]
        for name in files[0].keys():  # noqa: SIM118 (not a dict)
            first = files[0].get_tensor(name)
            total = first.to(torch.float64)
            for file in files[1:]:
                total += file.get_tensor(name)
            average[name] = (total / len(files)).to(first.dtype)
    return average
