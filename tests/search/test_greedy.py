"""Greedy search: the likeliest token at each step, in any company."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from toy import WORDS, ToyModel, toy_batch

from regard.search.greedy import greedy_search
from regard.search.hypothesis import length_penalty
from regard.tokens import END, START


@given(seed=st.integers(0, 10**6), limits=st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_each_token_is_the_likeliest_that_may_come(seed, limits):
    toy = ToyModel(seed)
    for sentence, (one, limit) in enumerate(
        zip(greedy_search(toy, toy_batch(len(limits)), torch.tensor(limits)), limits, strict=True)
    ):
        assert len(one.tokens) <= limit
        for i, token in enumerate(one.tokens):
            scores = toy.log_probabilities(sentence, (START, *one.tokens[:i]))
            allowed = [END] if i + 1 == limit else [END, *WORDS]
            assert token == max(allowed, key=scores.__getitem__)
            assert one.token_scores[i] == pytest.approx(scores[token], abs=1e-6)  # float32 against float64
        assert one.tokens.index(END) == len(one.tokens) - 1


def test_alpha_scales_the_score_and_nothing_else():
    plain, scaled = (greedy_search(ToyModel(0), toy_batch(1), torch.tensor([9]), alpha)[0] for alpha in (0.0, 0.6))
    assert plain.tokens == scaled.tokens
    assert plain.score == plain.log_probability
    assert scaled.score == pytest.approx(plain.score / length_penalty(len(plain.tokens), 0.6))


def test_a_sentence_alone_gives_the_same_translation_as_in_a_batch_of_64_greedily(tiny_model, random_source):
    model = tiny_model(vocabulary=30, sharpness=3.0)
    lengths = [1 + 7 * i % 23 for i in range(64)]
    src, limits = random_source(lengths, vocabulary=30), torch.tensor(lengths) + 5
    for i, one in enumerate(greedy_search(model, src, limits)):
        (alone,) = greedy_search(model, src[i : i + 1, : lengths[i]], limits[i : i + 1])
        assert alone.tokens == one.tokens
        assert alone.score == pytest.approx(one.score, abs=1e-4)  # float32, up to 28 tokens


def test_an_empty_batch_gives_no_translations():
    assert greedy_search(ToyModel(0), toy_batch(0), torch.tensor([], dtype=torch.int64)) == []
