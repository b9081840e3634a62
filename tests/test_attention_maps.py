"""What heads do and what aligns, on attention weights whose answer is known."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from regard.attention_maps import (
    AttentionMaps,
    HeadReport,
    align,
    alignment_layers,
    alignment_weights,
    describe_heads,
    group_words,
    head_table,
    pharaoh,
    words_alignment,
)
from regard.errors import RegardError


def one_hot(columns: list[int], width: int) -> np.ndarray:
    """Rows that each look at one column: (rows, width)."""
    return np.eye(width)[columns]


def uniform(rows: int, columns: int) -> np.ndarray:
    return np.full((rows, columns), 1 / columns)


def causal_uniform(size: int) -> np.ndarray:
    lower = np.tril(np.ones((size, size)))
    return lower / lower.sum(1, keepdims=True)


def clipped(columns: np.ndarray, width: int) -> list[int]:
    return np.clip(columns, 0, width - 1).tolist()


def make_maps(encoder=None, decoder=None, cross=None, source: int = 8, target: int = 6) -> AttentionMaps:
    """Maps of one layer; each argument is a list of heads, (rows, columns); what is not given is uniform."""
    return AttentionMaps(
        source_tokens=(*(f"▁s{i}" for i in range(source - 1)), "</s>"),
        target_tokens=("<s>", *(f"▁t{i}" for i in range(target - 1))),
        predicted_tokens=(*(f"▁t{i}" for i in range(target - 1)), "</s>"),
        encoder=np.stack(encoder or [uniform(source, source)])[None],
        decoder=np.stack(decoder or [causal_uniform(target)])[None],
        cross=np.stack(cross or [uniform(target, source)])[None],
    )


def reports_of(kind: str, maps: AttentionMaps) -> list[HeadReport]:
    return [report for report in describe_heads([maps]) if report.kind == kind]


# ---- heads -----------------------------------------------------------------------------------------------------------


def test_constructed_encoder_heads_are_recognised():
    where = np.arange(8)
    heads = [
        one_hot(where.tolist(), 8),
        one_hot(clipped(where - 1, 8), 8),
        one_hot(clipped(where + 1, 8), 8),
        one_hot([0] * 8, 8),
        one_hot([7] * 8, 8),
        uniform(8, 8),
        one_hot([5, 4, 6, 0, 1, 2, 3, 4], 8),
    ]
    assert [report.verdict for report in reports_of("encoder", make_maps(encoder=heads))] == [
        "looks at itself",
        "looks at the previous token",
        "looks at the next token",
        "looks at the beginning",
        "looks at the end",
        "spread evenly",
        "picks single tokens",
    ]


def test_a_head_that_splits_its_look_among_neighbours_is_recognised():
    near = np.eye(8, k=-1) + np.eye(8) + np.eye(8, k=1)
    [report] = reports_of("encoder", make_maps(encoder=[near / near.sum(1, keepdims=True)]))
    assert report.verdict == "looks at its neighbours"


def test_a_head_without_a_habit_looks_at_several_tokens():
    weights = np.tile([0.0, 0.0, 0.3, 0.0, 0.3, 0.0, 0.4, 0.0], (8, 1))
    [report] = reports_of("encoder", make_maps(encoder=[weights]))
    assert report.verdict == "looks at several tokens"


def test_constructed_decoder_heads_are_recognised_without_a_view_ahead():
    where = np.arange(6)
    heads = [one_hot(where.tolist(), 6), one_hot(clipped(where - 1, 6), 6), causal_uniform(6)]
    reports = reports_of("decoder", make_maps(decoder=heads))
    assert [report.verdict for report in reports] == ["looks at itself", "looks at the previous token", "spread evenly"]
    assert all(report.next is None and report.last is None for report in reports)
    assert reports[2].evenness == pytest.approx(1)


def test_the_decoders_first_row_has_no_choice_and_is_not_counted():
    [report] = reports_of("decoder", make_maps(decoder=[one_hot([0, 0, 1, 2, 3, 4], 6)]))
    assert report.previous == 1
    assert report.same == 0


def test_cross_attention_follows_the_diagonal_even_if_the_lengths_differ():
    diagonal = np.round(np.arange(6) * 7 / 5).astype(int)
    heads = [
        one_hot(diagonal.tolist(), 8),
        one_hot(clipped(diagonal - 1, 8), 8),
        one_hot(clipped(diagonal + 1, 8), 8),
        one_hot([7] * 6, 8),
    ]
    assert [report.verdict for report in reports_of("cross", make_maps(cross=heads))] == [
        "follows the diagonal",
        "looks before the diagonal",
        "looks past the diagonal",
        "looks at the end",
    ]


def test_the_figures_of_a_uniform_head_are_those_of_chance():
    [report] = reports_of("encoder", make_maps())
    for place in (report.previous, report.same, report.next, report.first, report.last):
        assert place == pytest.approx(1 / 8)
    assert report.entropy == pytest.approx(3)  # bits: one of eight
    assert report.evenness == pytest.approx(1)
    assert report.distance == pytest.approx(np.abs(np.subtract.outer(np.arange(8), np.arange(8))).mean())


def test_the_figures_of_a_shifting_head_are_exact():
    [report] = reports_of("encoder", make_maps(encoder=[one_hot([0, 0, 1, 2, 3, 4, 5, 6], 8)]))
    assert (report.previous, report.same, report.next, report.last) == (1, 1 / 8, 0, 0)
    assert report.first == pytest.approx(2 / 8)
    assert (report.entropy, report.evenness) == (pytest.approx(0), pytest.approx(0))
    assert report.distance == pytest.approx(7 / 8)


def test_several_sentences_are_averaged_over_their_positions():
    same, first = make_maps(encoder=[np.eye(3)], source=3), make_maps(encoder=[one_hot([0] * 9, 9)], source=9)
    report = describe_heads([same, first])[0]
    assert report.same == pytest.approx((3 + 1) / 12)  # all 3 rows of the one, 1 of the other's 9
    assert report.first == pytest.approx((1 + 9) / 12)


def test_every_head_of_every_layer_is_reported_once_and_in_order():
    rng = np.random.default_rng(0)
    maps = AttentionMaps(
        ("▁a", "</s>"),
        ("<s>", "▁b", "▁c"),
        ("▁b", "▁c", "</s>"),
        encoder=rng.dirichlet(np.ones(2), (3, 2, 2)),
        decoder=np.broadcast_to(causal_uniform(3), (2, 4, 3, 3)),
        cross=rng.dirichlet(np.ones(2), (2, 4, 3)),
    )
    places = [(report.kind, report.layer, report.head) for report in describe_heads([maps])]
    assert places == [("encoder", layer, head) for layer in (1, 2, 3) for head in (1, 2)] + [
        (kind, layer, head) for kind in ("decoder", "cross") for layer in (1, 2) for head in (1, 2, 3, 4)
    ]


@given(st.integers(1, 7), st.integers(1, 7), st.integers(0, 1000))
def test_figures_stay_in_their_ranges_for_any_weights(source, target, seed):
    rng = np.random.default_rng(seed)
    lower = np.tril(rng.uniform(0.01, 1, (target, target)))
    maps = make_maps(
        encoder=[rng.dirichlet(np.ones(source) * 0.1, source)],
        decoder=[lower / lower.sum(1, keepdims=True)],
        cross=[rng.dirichlet(np.ones(source) * 0.1, target)],
        source=source,
        target=target,
    )
    for report in describe_heads([maps]):
        shares = [report.previous, report.same, report.next, report.first, report.last, report.evenness]
        assert all(share is None or -1e-9 <= share <= 1 + 1e-9 for share in shares)
        assert -1e-9 <= report.entropy <= np.log2(max(source, target, 2)) + 1e-9
        assert 0 <= report.distance <= max(source, target)
        assert report.verdict


def test_no_sentences_give_no_reports():
    assert describe_heads([]) == []


def test_the_table_has_headings_and_a_row_for_each_head():
    heading, *rows = head_table(describe_heads([make_maps()]))
    assert heading[:3] == ["attention", "layer", "head"]
    assert heading[-1] == "what"
    assert [row[0] for row in rows] == ["encoder", "decoder", "cross"]
    assert {len(row) for row in rows} == {len(heading)}
    assert rows[0] == [
        *("encoder", "1", "1", "12%", "12%", "12%", "12%", "12%"),
        *("3.0 bits (100%)", "2.6", "spread evenly"),
    ]
    assert rows[1][5] == "–"  # the decoder has no next token


# ---- alignments ------------------------------------------------------------------------------------------------------


def test_each_target_token_is_aligned_with_what_it_looks_at_most_but_not_with_the_end():
    weights = np.array(
        [
            [0.2, 0.5, 0.3],
            [0.3, 0.1, 0.6],  # the end is most looked at; the best word counts
            [0.9, 0.1, 0.0],  # the target's end is aligned with nothing
        ]
    )
    assert align(weights) == [(1, 0), (0, 1)]


@pytest.mark.parametrize("shape", [(1, 5), (5, 1), (1, 1)])
def test_an_empty_side_aligns_with_nothing(shape):
    assert align(np.ones(shape) / shape[1]) == []


@given(arrays(np.float64, st.tuples(st.integers(2, 8), st.integers(2, 8)), elements=st.floats(0, 1)))
def test_every_target_token_but_the_end_is_aligned_exactly_once(weights):
    points = align(weights)
    assert [target for _, target in points] == list(range(len(weights) - 1))
    assert all(0 <= source < weights.shape[1] - 1 for source, _ in points)


def test_points_between_tokens_become_points_between_words():
    points = [(0, 0), (1, 1), (2, 1), (2, 2), (3, 3)]
    assert words_alignment(points, [0, 0, 1, 2], [0, 0, 0, 1]) == [(0, 0), (1, 0), (2, 1)]


def test_tokens_of_no_word_are_left_out():
    assert words_alignment([(0, 0), (1, 1), (2, 0)], [None, 0, 1], [0, None]) == [(1, 0)]


def test_an_alignment_is_written_in_pharaoh_format():
    assert pharaoh([(0, 0), (1, 2), (10, 1)]) == "0-0 1-2 10-1"
    assert pharaoh([]) == ""


@pytest.mark.parametrize(("layers", "expected"), [(1, [0]), (2, [1]), (3, [1, 2]), (6, [3, 4, 5])])
def test_alignments_come_from_the_upper_half_of_the_layers(layers, expected):
    assert list(alignment_layers(layers)) == expected
    cross = np.zeros((layers, 2, 3, 4))
    cross[expected, 0] = 0.5
    assert np.array_equal(alignment_weights(cross), np.full((3, 4), 0.25))


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        (["▁The", "▁dog", "s", ".", "</s>"], [0, 1, 1, 1, 2]),
        (["<s>", "▁Der", "▁Hund"], [0, 1, 2]),
        (["<s>", "x", "▁y"], [0, 1, 2]),  # a word may begin without the mark after a special token
        (["a", "b", "</s>"], [0, 1, 2]),  # no marks at all: every token is a word
        (["▁", "<0xE2>", "<0x82>", "<0xAC>", "</s>"], [0, 0, 0, 0, 1]),
        (["</s>"], [0]),
        ([], []),
    ],
)
def test_tokens_are_grouped_into_words_by_their_mark(tokens, expected):
    assert group_words(tokens) == expected


# ---- the arrays ------------------------------------------------------------------------------------------------------


def test_arrays_that_do_not_fit_the_tokens_are_refused():
    with pytest.raises(RegardError, match="cross has the shape"):
        make_maps(cross=[uniform(6, 7)])
    with pytest.raises(RegardError, match="encoder has the shape"):
        make_maps(encoder=[uniform(7, 7)])


def test_rows_that_are_no_distributions_are_refused():
    with pytest.raises(RegardError, match="decoder has rows that do not sum to 1"):
        make_maps(decoder=[np.eye(6) / 2])


def test_fed_and_predicted_tokens_come_in_equal_number():
    with pytest.raises(RegardError, match="2 tokens fed to the decoder, 1 predicted"):
        AttentionMaps(("</s>",), ("<s>", "▁a"), ("</s>",), np.ones((1, 1, 1, 1)), np.ones((1, 1, 2, 2)), np.ones(1))


def test_importing_attention_maps_loads_neither_torch_nor_matplotlib():
    code = "import sys, regard.attention_maps; print([m for m in ('torch', 'matplotlib') if m in sys.modules])"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert printed.stdout.strip() == "[]"
