"""Line charts and heat maps as SVG, coloured by the page's style."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, isfinite, log10
from typing import NamedTuple

import numpy as np

from regard.attention_maps import Floats
from regard.report.markup import Markup, element, join

Point = tuple[float, float]

_WIDTH, _HEIGHT = 420, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 8, 12, 30
_MOST_POINTS = 400  # of a line; more can't be seen


@dataclass(frozen=True)
class Line:
    """A line of a chart; `style` is its class in the page's style, 'a', 'b' or 'c'."""

    name: str
    style: str
    points: Sequence[Point]
    dots: bool = False


class Scale(NamedTuple):
    """How values become heights: round numbers that enclose a range, and what is proportional to the height."""

    ticks: Callable[[float, float], list[float]]
    height: Callable[[float], float]


def line_chart(title: str, lines: Sequence[Line], decimals: int, scale: Scale) -> Markup | None:
    """Draw lines over steps with a legend, or nothing if no line has a point."""
    kept = [Line(line.name, line.style, _thin(line.points), line.dots) for line in lines]
    kept = [line for line in kept if line.points]
    if not kept:
        return None
    steps = [x for line in kept for x, _ in line.points]
    values = [y for line in kept for _, y in line.points]
    last, ticks = max(steps), scale.ticks(min(values), max(values))
    lowest, highest = scale.height(ticks[0]), scale.height(ticks[-1])

    def place(x: float, y: float) -> Point:
        across = (_WIDTH - _LEFT - _RIGHT) * x / max(last, 1)
        share = (scale.height(y) - lowest) / (highest - lowest)
        return round(_LEFT + across, 1), round(_HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * share, 1)

    parts = [_horizontal(place(0, tick)[1], _told(tick, _needed(ticks, decimals))) for tick in ticks]
    for tick in (tick for tick in _round_numbers(0, last) if tick <= last):
        x, anchor = place(tick, ticks[0])[0], "middle" if tick < 0.95 * last else "end"
        parts.append(element("text", f"{tick:,.0f}", x=x, y=_HEIGHT - 10, class_="tick", text_anchor=anchor))
    parts += [_draw(line, [place(x, y) for x, y in line.points], decimals) for line in kept]
    svg = element("svg", *parts, viewBox=f"0 0 {_WIDTH} {_HEIGHT}", role="img", aria_label=title)
    legend = [element("span", element("i", class_=f"key {line.style}"), line.name) for line in kept]
    return element("figure", element("figcaption", element("b", title), *legend), svg, class_="chart")


def _draw(line: Line, places: Sequence[Point], decimals: int) -> Markup:
    path = "M" + " L".join(f"{x} {y}" for x, y in places)
    dots: list[Markup] = []
    if line.dots:
        for (x, y), (step, value) in zip(places, line.points, strict=True):
            told = element("title", f"step {step:,.0f}: {value:,.{decimals}f}")
            dots.append(element("circle", told, cx=x, cy=y, r=2.4 if len(places) < 60 else 1.4))
    return element("g", element("path", d=path), *dots, class_=f"line {line.style}")


def _horizontal(y: float, label: str) -> Markup:
    return join(
        element("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=y, y2=y, class_="grid"),
        element("text", label, x=_LEFT - 6, y=y + 3.5, class_="tick", text_anchor="end"),
    )


def _thin(points: Sequence[Point]) -> list[Point]:
    """Leave out what is no number; where there are too many points, put the means of neighbours in their place."""
    real = [(x, y) for x, y in points if isfinite(y)]
    if len(real) <= _MOST_POINTS:
        return real
    bounds = [len(real) * number // _MOST_POINTS for number in range(_MOST_POINTS + 1)]
    return [(real[end - 1][0], sum(y for _, y in real[start:end]) / (end - start)) for start, end in pairwise(bounds)]


def _round_numbers(low: float, high: float) -> list[float]:
    """Return some round numbers, evenly spaced, that enclose a range."""
    span = max(high - low, abs(high) * 1e-3, 1e-6)
    rough = 10 ** floor(log10(span / 5))
    step = next(rough * factor for factor in (1, 2, 5, 10) if span / (rough * factor) <= 6)
    first, last = floor(low / step + 1e-9), max(ceil(high / step - 1e-9), floor(low / step + 1e-9) + 1)
    return [number * step for number in range(first, last + 1)]


def _powers(low: float, high: float) -> list[float]:
    """Return numbers such as 1, 2, 5, 10, 20 that enclose a range of positive ones; fewer if it is wide."""
    everything = [factor * 10.0**power for power in range(-3, 308) for factor in (1, 2, 5)]
    first = max(number for number, value in enumerate(everything) if value <= max(low, everything[0]))
    last = next(number for number, value in enumerate(everything) if value >= high and number > first)
    return everything[first : last + 1] if last - first < 9 else [everything[n] for n in (*range(first, last, 3), last)]


LINEAR = Scale(_round_numbers, lambda value: value)
LOGARITHMIC = Scale(_powers, log10)


def _needed(ticks: Sequence[float], most: int) -> int:
    """How many decimals tell the ticks apart."""
    return next((n for n in range(most + 1) if len({round(tick, n) for tick in ticks}) == len(ticks)), most)


def _told(tick: float, decimals: int) -> str:
    """Write a tick so that there is room for it beside the chart."""
    if tick >= 1e6:
        return f"{tick:.0e}".replace("e+0", "e").replace("e+", "e")
    return f"{tick / 1000:.0f}k" if tick >= 10_000 else f"{tick:,.{decimals}f}"


# ---- attention -------------------------------------------------------------------------------------------------------


def heat_map(weights: Floats, rows: Sequence[str], columns: Sequence[str], title: str) -> Markup:
    """Draw weights (rows, columns) as cells, dark where the weight is, with words along the edges."""
    cell, letter = 17, 7.2
    left = 8 + letter * max(map(len, rows), default=0)
    top = 8 + letter * max(map(len, columns), default=0)
    width, height = left + cell * len(columns) + 4, top + cell * len(rows) + 4
    parts = [
        element("text", word, x=left - 5, y=top + cell * (number + 0.7), class_="word", text_anchor="end")
        for number, word in enumerate(rows)
    ]
    for number, word in enumerate(columns):
        x, y = left + cell * (number + 0.7), top - 5
        parts.append(element("text", word, transform=f"translate({x:.1f} {y:.1f}) rotate(-90)", class_="word"))
    frame = {"x": left, "y": top, "width": cell * len(columns), "height": cell * len(rows)}
    parts.append(element("rect", class_="frame", **frame))
    for (row, column), weight in np.ndenumerate(weights):
        if weight >= 0.02:  # what is lighter can't be seen
            told = element("title", f"{rows[row]} → {columns[column]}: {weight:.0%}")
            place = {"x": left + cell * column, "y": top + cell * row, "width": cell, "height": cell}
            parts.append(element("rect", told, class_="cell", fill_opacity=f"{min(float(weight), 1.0):.2f}", **place))
    box = f"0 0 {width:.0f} {height:.0f}"
    return element(
        "svg", *parts, viewBox=box, role="img", aria_label=title, style=f"max-width:{width:.0f}px", class_="map"
    )


def small_map(weights: Floats, title: str) -> Markup:
    """Draw weights as a small square without words."""
    rows, columns = weights.shape
    parts = [element("rect", class_="frame", x=0, y=0, width=columns, height=rows)]
    for (row, column), weight in np.ndenumerate(weights):
        if weight >= 0.02:
            shade = f"{min(float(weight), 1.0):.2f}"
            parts.append(element("rect", class_="cell", fill_opacity=shade, x=column, y=row, width=1, height=1))
    svg = element(
        "svg", *parts, viewBox=f"0 0 {columns} {rows}", role="img", aria_label=title, preserveAspectRatio="none"
    )
    return element("figure", svg, element("figcaption", title), class_="head")
