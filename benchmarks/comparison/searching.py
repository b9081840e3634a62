"""Finding the setting that suits a toolkit best, with few short samples."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from comparison.job import Facts, Setting

_TOO_FAR_BEHIND = (3.0, 1.3, 1.0)  # times, after the first, the second and the third turn; the last leaves the leader


def find_setting(
    axes: Mapping[str, Sequence[Any]], measure: Callable[[Setting], Facts], more_is_better: bool
) -> Setting:
    """Return the setting that does best on samples: one part of it after the other, from the first values on."""
    setting = {name: values[0] for name, values in axes.items()}

    def speed(name: str, value: Any) -> float:
        figure: float = measure({**setting, name: value, "sample": True})["figure"]
        return figure if more_is_better else 1 / figure

    for name, values in axes.items():
        setting[name] = race(values, partial(speed, name))
    return setting


def race(candidates: Sequence[Any], speed: Callable[[Any], float]) -> Any:
    """Return the fastest of several candidates: they take turns, and the best turn of each counts.

    A cold start and whatever else the machine does make a turn slower, hardly ever faster. So no single bad turn
    decides, and who is further behind than a bad turn would explain is spared the next one.
    """
    best = dict.fromkeys(range(len(candidates)), 0.0)
    for behind in _TOO_FAR_BEHIND:
        if len(best) == 1:
            break
        best = {number: max(before, speed(candidates[number])) for number, before in best.items()}
        leader = max(best.values())
        best = {number: reached for number, reached in best.items() if reached >= leader / behind}
    return candidates[next(iter(best))]
