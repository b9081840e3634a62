"""Charts and heat maps."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.report.charts import LINEAR, LOGARITHMIC, Line, heat_map, line_chart, small_map


@given(st.floats(-1e6, 1e6), st.floats(0, 1e6))
def test_round_numbers_enclose_any_range(low: float, span: float) -> None:
    ticks = LINEAR.ticks(low, low + span)
    hair = 1e-6 * max(1, abs(low), span)  # a range may stick out by what nobody sees
    assert ticks[0] <= low + hair
    assert ticks[-1] >= low + span - hair
    assert 2 <= len(ticks) <= 9
    assert ticks == sorted(set(ticks))


@given(st.floats(1, 1e300), st.floats(1, 1e6))
def test_powers_enclose_any_range(low: float, times: float) -> None:
    high = min(low * times, 1e301)
    ticks = LOGARITHMIC.ticks(low, high)
    assert ticks[0] <= low <= high <= ticks[-1]
    assert len(ticks) >= 2


def coordinates(svg: str) -> list[tuple[float, float]]:
    path = re.search(r' d="M([^"]*)"', svg)
    assert path
    return [(float(x), float(y)) for x, y in (pair.split() for pair in path[1].split(" L"))]


@pytest.mark.parametrize("scale", [LINEAR, LOGARITHMIC])
def test_a_line_goes_right_and_down_where_its_values_fall(scale: object) -> None:
    chart = line_chart("Loss", [Line("training", "a", [(0, 9.0), (50, 3.0), (100, 1.0)])], 2, scale)  # type: ignore[arg-type]
    assert chart
    places = coordinates(chart)
    assert [x for x, _ in places] == sorted(x for x, _ in places)
    assert [y for _, y in places] == sorted(y for _, y in places)
    assert all(0 <= x <= 420 and 0 <= y <= 250 for x, y in places)


def test_what_is_no_number_is_left_out_and_nothing_gives_no_chart() -> None:
    points = [(1.0, float("nan")), (2.0, 5.0), (3.0, float("inf")), (4.0, 4.0)]
    chart = line_chart("Loss", [Line("x", "a", points), Line("nothing", "b", [])], 2, LINEAR)
    assert chart
    assert len(coordinates(chart)) == 2
    assert "nothing" not in chart
    assert line_chart("Loss", [Line("x", "a", [(1.0, float("nan"))])], 2, LINEAR) is None


@pytest.mark.parametrize("largest", [9.0, 9e3, 9e4, 9e5, 9e8, 9e30])
def test_there_is_room_for_the_numbers_beside_a_chart(largest: float) -> None:
    chart = line_chart("Perplexity", [Line("x", "a", [(1.0, 5.0), (2.0, largest)])], 1, LOGARITHMIC)
    assert chart
    labels = re.findall(r'text-anchor="end">([^<]*)<', chart)
    assert len(labels) > 1
    assert max(map(len, labels)) <= 5


@pytest.mark.parametrize("value", [0.0, 1.0, 1e-12, 1e9])
def test_one_point_alone_and_equal_values_are_drawn(value: float) -> None:
    chart = line_chart("BLEU", [Line("x", "c", [(10.0, value), (20.0, value)], dots=True)], 1, LINEAR)
    assert chart
    assert chart.count("<circle") == 2


def test_many_points_become_few() -> None:
    chart = line_chart("Loss", [Line("x", "a", [(float(n), float(n)) for n in range(100_000)])], 1, LINEAR)
    assert chart
    assert len(coordinates(chart)) == 400
    assert len(chart) < 20_000


def test_a_heat_map_has_a_cell_for_each_weight_that_can_be_seen() -> None:
    weights = np.array([[0.9, 0.1, 0.0], [0.0, 0.5, 0.5]])
    svg = heat_map(weights, ["<b>", "zwei"], ["one", "two", "&"], "alignment")
    assert svg.count('class="cell"') == 4
    assert "<b>" not in svg
    assert "&lt;b&gt; → one: 90%" in svg
    assert small_map(weights, "head 1").count('class="cell"') == 4
