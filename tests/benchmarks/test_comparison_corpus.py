from dataclasses import replace

import numpy as np
import pytest
from comparison.corpus import (
    FIRST,
    LONGEST,
    batches,
    characters,
    draw_lengths,
    make_pairs,
    make_sentences,
    padded,
    text,
)
from comparison.shapes import BASE, SHAPES, TINY
from hypothesis import given
from hypothesis import strategies as st

from regard.tokens import END

FEW = replace(TINY, pairs=2000)


def test_the_same_seed_draws_the_same_pairs():
    assert make_pairs(FEW) == make_pairs(FEW)
    assert make_pairs(FEW) != make_pairs(FEW, seed=7)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=lambda shape: shape.name)
def test_targets_have_the_mean_length_that_the_shape_says(shape):
    lengths = [len(target) for _, target in make_pairs(replace(shape, pairs=2000))]
    assert np.mean(lengths) == shape.mean_length


@given(st.integers(0, 2**32), st.integers(500, 2000), st.sampled_from([13.0, 28.0]))
def test_lengths_have_their_mean_and_spread(seed, count, mean):
    lengths = draw_lengths(np.random.default_rng(seed), count, mean)
    assert lengths.mean() == pytest.approx(mean, abs=0.5 / count)
    assert lengths.min() >= 1
    assert lengths.max() <= LONGEST
    assert 0.35 * mean < lengths.std() < 0.75 * mean


def test_ids_are_letters_with_the_end_token_last():
    for pair in make_pairs(FEW):
        for ids in pair:
            assert ids[-1] == END
            assert all(FIRST <= token < FEW.vocabulary for token in ids[:-1])


def test_sentences_come_in_groups_of_the_lengths_of_the_shape():
    groups = make_sentences(BASE)
    assert [{len(sentence) for sentence in group} for group in groups] == [{length} for length in (52, 28, 20, 12)]
    assert {len(group) for group in groups} == {32}
    assert np.mean([len(sentence) for group in groups for sentence in group]) == BASE.mean_length


def test_every_id_has_a_character_of_its_own():
    letters = characters(BASE.vocabulary)
    assert len(set(letters)) == BASE.vocabulary - FIRST
    assert all(len(letter) == 1 and not letter.isspace() for letter in letters)
    with pytest.raises(ValueError, match="too large"):
        characters(100_000)


def test_text_has_a_character_a_token_and_no_end():
    letters = characters(TINY.vocabulary)
    assert text([FIRST, FIRST + 2, END], letters) == letters[0] + letters[2]
    assert text([FIRST, FIRST + 2, END], letters, " ") == f"{letters[0]} {letters[2]}"


@given(st.integers(100, 5000))
def test_batches_hold_every_pair_once_within_the_budget(budget):
    pairs = make_pairs(replace(TINY, pairs=300))
    cut = list(batches(pairs, budget, seed=1))
    assert sorted(pair for batch in cut for pair in batch) == sorted(pairs)
    for batch in cut:
        for side in zip(*batch, strict=True):
            assert padded(side).size <= budget
