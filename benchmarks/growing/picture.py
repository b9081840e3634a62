"""The picture: a panel for each cost, with what was measured and the powers that were expected."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

from growing.fit import (
    CORPUS,
    FULL,
    RESTRICTED,
    Curve,
    encoding_products,
    proportional,
    training_products,
    vocabulary_products,
)
from growing.plan import TOKENS

Results = Mapping[str, Any]

_INK, _FAINT, _GRID = "#222222", "#6f6f6f", "#e4e4e4"
_COLOURS = {"first": "#1f5fa8", "second": "#c8501e", "third": "#3a8a4d"}
_MEGA, _MICRO, _MILLI = 2**20, 1e-6, 1e-3


def draw(results: Results, path: Path) -> list[Path]:
    """Draw everything that was measured, as SVG and as PNG; the same numbers give the same bytes."""
    figure = Figure(figsize=(10, 9.6), layout="constrained")
    axes = figure.subplots(3, 3)
    for panel, box in zip(_PANELS, axes.flat, strict=True):
        panel(results, box)
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.1, wspace=0.02, hspace=0.02)
    files = [path.with_suffix(ending) for ending in (".svg", ".png")]
    with matplotlib.rc_context({"svg.hashsalt": "regard", "svg.fonttype": "path", "font.size": 9}):
        for file in files:
            metadata = {"Date": None} if file.suffix == ".svg" else {}
            figure.savefig(file, dpi=110, metadata=metadata, facecolor="white")
    return files


# ---- panels ----------------------------------------------------------------------------------------------------------


def _training_time(results: Results, box: Axes) -> None:
    _title(box, "Training: time by sentence length", "tokens in a sentence", "µs a token")
    for line, colour in ((FULL, "first"), (RESTRICTED, "second")):
        curve = _curve(results, "length", line, "training_seconds", _MICRO)
        _plot(box, curve, colour, line)
        _guide(box, curve, training_products(line), colour)
    _finish(box, "products counted")


def _encoding_time(results: Results, box: Axes) -> None:
    _title(box, "Encoding: time by sentence length", "tokens in a sentence", "µs a token")
    for line, colour in ((FULL, "first"), (RESTRICTED, "second")):
        curve = _curve(results, "length", line, "encoding_seconds", _MICRO)
        _plot(box, curve, colour, line)
        _guide(box, curve, encoding_products(line), colour)
    _finish(box, "products counted")


def _length_memory(results: Results, box: Axes) -> None:
    _title(box, "Memory by sentence length", "tokens in a sentence", f"MiB for {TOKENS:,} tokens")
    for work, style in (("training", "-"), ("encoding", "--")):
        for line, colour in ((FULL, "first"), (RESTRICTED, "second")):
            curve = _curve(results, "length", line, f"{work}_memory", _MEGA)
            _plot(box, curve, colour, f"{work}, {line.split()[0]}", style)
    _finish(box)


def _corpus_memory(results: Results, box: Axes) -> None:
    _title(box, "Memory by size of the corpus", "pairs", "MiB")
    _plot(box, _curve(results, "corpus", CORPUS, "preparation_memory", _MEGA), "first", "preparing")
    _plot(box, _curve(results, "corpus", CORPUS, "training_memory", _MEGA), "second", "training")
    _finish(box, from_zero=True)


def _corpus_time(results: Results, box: Axes) -> None:
    _title(box, "CPU time by size of the corpus", "pairs", "µs a token")
    for name, colour, label in (
        ("training_seconds", "second", "training"),
        ("preparation_seconds", "first", "preparing"),
        ("batches_seconds", "third", "making batches"),
    ):
        _plot(box, _curve(results, "corpus", CORPUS, name, _MICRO), colour, label)
    _finish(box)


def _processes(results: Results, box: Axes) -> None:
    _title(box, "Training: speed by processes", "processes", "target tokens/s")
    curve = _curve(results, "processes", "tiny", "tokens_a_second", 1)
    _plot(box, curve, "first", "tiny")
    if curve:
        cores = results["machine"]["cores"]
        first = curve[0][1] / curve[0][0]
        ideal = [(x, first * min(x, cores)) for x, _ in curve]
        box.plot(*zip(*ideal, strict=True), color=_FAINT, linestyle=":", linewidth=1.2, label=f"{cores} whole cores")
    _finish(box, from_zero=True)


def _vocabulary_time(results: Results, box: Axes) -> None:
    _title(box, "Training: time by vocabulary", "subwords", "µs a token")
    curve = _curve(results, "vocabulary", "tiny", "training_seconds", _MICRO)
    _plot(box, curve, "first", "tiny")
    _guide(box, curve, vocabulary_products, "first")
    _finish(box, "products counted")


def _vocabulary_memory(results: Results, box: Axes) -> None:
    _title(box, "Training: memory by vocabulary", "subwords", f"MiB for {TOKENS:,} tokens")
    _plot(box, _curve(results, "vocabulary", "tiny", "training_memory", _MEGA), "first", "tiny")
    _finish(box)


def _beam(results: Results, box: Axes) -> None:
    _title(box, "Translating: time by beam", "hypotheses", "ms a sentence")
    curve = _curve(results, "beam", "tiny", "translation_seconds", _MILLI)
    _plot(box, curve, "first", "tiny, 16 tokens")
    _guide(box, curve[-1:] and [curve[0], curve[-1]], proportional, "first", through_last=True)
    _finish(box, "∝ beam")


_PANELS: Sequence[Callable[[Results, Axes], None]] = (
    _training_time,
    _encoding_time,
    _length_memory,
    _corpus_memory,
    _corpus_time,
    _processes,
    _vocabulary_time,
    _vocabulary_memory,
    _beam,
)


# ---- lines -----------------------------------------------------------------------------------------------------------


def _curve(results: Results, panel: str, line: str, figure: str, unit: float) -> Curve:
    measured = [one for one in results["panels"].get(panel, []) if one["line"] == line]
    return sorted((one["value"], one[figure] / unit) for one in measured)


def _plot(box: Axes, curve: Curve, colour: str, label: str, style: str = "-") -> None:
    if curve:
        x, y = zip(*curve, strict=True)
        box.plot(x, y, color=_COLOURS[colour], linestyle=style, marker="o", markersize=3.5, linewidth=1.6, label=label)


def _guide(
    box: Axes, curve: Curve, expected: Callable[[float], float], colour: str, through_last: bool = False
) -> None:
    """Draw the expected curve, at the height that fits what was measured best, or through its last point."""
    if not curve:
        return
    x, y = np.array(curve).T
    counted = np.array([expected(value) for value in x])
    height = y[-1] / counted[-1] if through_last else np.exp(np.mean(np.log(y / counted)))
    fine = np.geomspace(x[0], x[-1], 60)
    guide = [height * expected(value) for value in fine]
    box.plot(fine, guide, color=_COLOURS[colour], linestyle=":", linewidth=1.2, alpha=0.9, zorder=1)


def _title(box: Axes, title: str, x: str, y: str) -> None:
    box.set_title(title, fontsize=10.5, color=_INK, loc="left")
    box.set_xlabel(x, fontsize=9, color=_FAINT)
    box.set_ylabel(y, fontsize=9, color=_FAINT)


def _finish(box: Axes, guide: str | None = None, from_zero: bool = False) -> None:
    """Set scales, ticks and legend by what was drawn."""
    if not box.get_lines():
        box.text(0.5, 0.5, "not measured", color=_FAINT, ha="center", transform=box.transAxes)
        box.set(xticks=[], yticks=[])
        return
    box.set_xscale("log", base=2 if box.get_xlim()[1] < 100_000 else 10)
    if from_zero:
        box.set_ylim(bottom=0)
    else:
        box.set_yscale("log")
        low, high = box.get_ylim()
        box.set_ylim(low / 1.25, high * max(1.6, (high / low) ** 0.35))  # room for the legend
    values = sorted({x for line in box.get_lines() if line.get_marker() == "o" for x in line.get_xdata()})
    box.set_xticks(values[:: 1 + (len(values) > 5)], minor=False)
    box.xaxis.set_minor_locator(NullLocator())
    box.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _short(value)))
    box.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    if not from_zero:
        _tick_powers(box)
    box.grid(color=_GRID, linewidth=0.8)
    box.set_axisbelow(True)
    box.tick_params(labelsize=8.5, colors=_INK, length=0)
    box.spines[:].set_visible(False)
    if guide is not None:
        box.plot([], [], color=_FAINT, linestyle=":", linewidth=1.2, label=guide)
    is_crowded = len(box.get_lines()) > 3 and guide is None
    box.legend(
        ncols=2 if is_crowded else 1,
        fontsize=7 if is_crowded else 8,
        columnspacing=0.7,
        handlelength=1.6 if is_crowded else 2.8,
        framealpha=0.85,
        edgecolor="none",
        labelcolor=_INK,
        borderpad=0.2,
    )


def _tick_powers(box: Axes) -> None:
    """Put ticks at 1, 2, 5, 10, 20 and so on; at fewer of them if the range is wide."""
    low, high = box.get_ylim()
    for factors in ((1, 2, 5), (1, 3), (1,)):
        ticks = [f * 10.0**p for p in range(-6, 12) for f in factors if low <= f * 10.0**p <= high]
        if len(ticks) <= 7:
            break
    box.set_yticks(ticks)
    box.yaxis.set_minor_locator(NullLocator())
    box.yaxis.set_minor_formatter(NullFormatter())


def _short(value: float) -> str:
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= size and value % (size / 10) == 0:
            return f"{value / size:g}{letter}"
    return f"{value:,.0f}"
