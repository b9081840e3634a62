"""Measuring translation in a child: the same sentences and the same checks, whoever translates."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from comparison.job import Engine, Facts, Job, Setting

Group = list[list[int]]  # sentences of one length, as ids with the end token
Translate = Callable[[Sequence[Group], Setting], list[list[int]]]
"""Translates groups of sentences, each into as many tokens as it has itself; returns the outputs in order."""

_QUICK = 4  # a quick look takes so much less than a measurement
_ALONE = 4  # sentences of each length that are translated one at a time


def translation(job: Job, translate: Translate, axes: Mapping[str, Sequence[Any]]) -> Engine:
    """Measure sentences a second, as many at a time as the setting says."""
    everything: list[Group] = job.read("sentences.json")
    warm_up = _warmer(translate, everything)

    def measure(setting: Setting) -> Facts:
        groups = [group[: max(1, len(group) // _QUICK)] for group in everything] if job.quick else everything
        if setting.get("sample"):
            groups = groups[1::2]  # whole groups, as in parts of them large batches would all be the same
        warm_up(setting)
        started = time.perf_counter()
        found = translate(groups, setting)
        seconds = time.perf_counter() - started
        return {"figure": len(found) / seconds, **_outputs(groups, found, setting)}

    return Engine(measure, axes)


def latency(job: Job, translate: Translate, axes: Mapping[str, Sequence[Any]]) -> Engine:
    """Measure milliseconds a sentence, one at a time; the mean over the same sentences of all lengths."""
    everything: list[Group] = job.read("sentences.json")
    warm_up = _warmer(translate, everything)

    def measure(setting: Setting) -> Facts:
        count = 1 if setting.get("sample") or job.quick else _ALONE
        groups = [group[:count] for group in everything]
        found = []
        warm_up(setting)
        started = time.perf_counter()
        for sentence in (sentence for group in groups for sentence in group):
            found += translate([[sentence]], setting)
        seconds = time.perf_counter() - started
        return {"figure": 1000 * seconds / len(found), **_outputs(groups, found, setting)}

    return Engine(measure, axes)


def sizes(job: Job, *candidates: int) -> list[int]:
    """Return the batch sizes that differ: those that do not exceed a group."""
    return [size for size in candidates if size <= job.shape.sentences_a_length]


def _warmer(translate: Translate, groups: Sequence[Group]) -> Callable[[Setting], None]:
    """Return what translates a few sentences, not measured, when a setting is new: some load models only then."""
    seen: list[Setting] = []

    def warm_up(setting: Setting) -> None:
        values = {name: value for name, value in setting.items() if name not in ("sample", "outputs")}
        if values not in seen:
            translate([group[:2] for group in groups], setting)
            seen.append(values)

    return warm_up


def _outputs(groups: Sequence[Group], found: Sequence[Sequence[int]], setting: Setting) -> Facts:
    """Check that every sentence was decoded to its length, and return the outputs if they are wanted.

    A source of n tokens, its end counted, is decoded in n steps. Whether a toolkit spends the last one on the end token
    or on a token that it then cuts off does not matter for the time; the n - 1 tokens before it are compared.
    """
    wanted = [len(sentence) - 1 for group in groups for sentence in group]
    lengths = [len(tokens) for tokens in found]
    if [min(*pair) for pair in zip(wanted, lengths, strict=True)] != wanted or max(lengths) > max(wanted) + 1:
        raise RuntimeError(f"outputs of lengths {lengths[:8]}… instead of {wanted[:8]}…")
    if not setting.get("outputs"):
        return {}
    return {"outputs": [list(tokens[:length]) for tokens, length in zip(found, wanted, strict=True)]}
