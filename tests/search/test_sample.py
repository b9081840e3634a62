"""Sampling: as often as probable, by the sentence's own seed."""

import math
from collections import Counter

import pytest
import torch
from toy import VOCABULARY, WORDS, ToyModel, tokens_of, toy_batch

from regard.search.greedy import greedy_search
from regard.search.hypothesis import NEVER
from regard.search.sample import sample
from regard.tokens import END, START

LIMIT = 3


def chance_of(toy, tokens, temperature, top_k):
    """The probability of drawing a target: at each step among the tokens that may come, and at the limit certain."""
    probability = 1.0
    for i, token in enumerate(tokens[: LIMIT - 1]):
        scores = dict(enumerate(toy.log_probabilities(0, (START, *tokens[:i]))))
        allowed = sorted(set(range(VOCABULARY)) - set(NEVER), key=scores.__getitem__, reverse=True)[:top_k]
        raised = {one: math.exp(scores[one] / temperature) for one in allowed}
        probability *= raised.get(token, 0.0) / sum(raised.values())
    return probability


@pytest.mark.parametrize("temperature", [1.0, 0.5, 2.0])
@pytest.mark.parametrize("top_k", [None, 2])
def test_targets_are_drawn_as_often_as_they_are_probable(temperature, top_k):
    toy, draws = ToyModel(5), 4000
    (found,) = sample(toy, toy_batch(1), torch.tensor([LIMIT]), [1], draws, temperature, top_k)
    counts = Counter(one.tokens for one in found)
    expected = {tokens: draws * chance_of(toy, tokens, temperature, top_k) for tokens in toy.all_targets(LIMIT)}
    assert sum(expected.values()) == pytest.approx(draws)
    assert not set(counts) - {tokens for tokens, count in expected.items() if count}
    possible = {tokens: count for tokens, count in expected.items() if count}
    distance = sum((counts[tokens] - count) ** 2 / count for tokens, count in possible.items())
    freedom = len(possible) - 1
    assert distance < freedom + 5 * math.sqrt(2 * freedom)  # chi-square: five standard deviations above its mean


def test_samples_are_text_with_the_models_own_scores_best_first():
    toy = ToyModel(1)
    for sentence, found in enumerate(sample(toy, toy_batch(2), torch.tensor([6, 2]), [1, 2], 50, temperature=3.0)):
        scores = [one.score for one in found]
        assert scores == sorted(scores, reverse=True)
        for one in found:
            *words, end = one.tokens
            assert end == END
            assert set(words) <= set(WORDS)
            assert len(one.tokens) <= (6, 2)[sentence]
            assert one.token_scores == pytest.approx(toy.token_scores(sentence, one.tokens), abs=1e-6)  # float32
            assert one.score == one.log_probability


@pytest.mark.parametrize("options", [{"temperature": 1e-6}, {"top_k": 1}], ids=str)
def test_without_chance_it_is_greedy_search(options, tiny_model, random_source):
    toy, limits = ToyModel(2), torch.tensor([6, 2, 9])
    found = sample(toy, toy_batch(3), limits, [1, 2, 3], **options)
    assert tokens_of(found) == [[one.tokens] for one in greedy_search(toy, toy_batch(3), limits)]
    model, src = tiny_model(sharpness=3.0), random_source([5, 2, 7])
    found = sample(model, src, limits, [1, 2, 3], **options)
    assert tokens_of(found) == [[one.tokens] for one in greedy_search(model, src, limits)]


def test_a_sentences_draws_depend_on_its_seed_alone():
    toy, limits, seeds = ToyModel(3), torch.tensor([7, 3, 9, 7]), [11, 12, 13, 14]
    together = sample(toy, toy_batch(4), limits, seeds, samples=3)
    for i in range(4):
        assert sample(toy, toy_batch(4)[i : i + 1], limits[i : i + 1], seeds[i : i + 1], samples=3) == [together[i]]
    other = sample(toy, toy_batch(4), limits, [11, 99, 13, 14], samples=3)
    assert other[1] != together[1]
    assert [other[i] for i in (0, 2, 3)] == [together[i] for i in (0, 2, 3)]


def test_a_sentence_alone_is_sampled_as_in_a_batch_of_64(tiny_model, random_source):
    model = tiny_model(vocabulary=30, sharpness=3.0)
    lengths = [1 + 7 * i % 23 for i in range(64)]
    src, limits = random_source(lengths, vocabulary=30), torch.tensor(lengths) + 5
    together = sample(model, src, limits, range(64), samples=2)
    for i in range(0, 64, 3):  # 22 of them, of 22 lengths
        (alone,) = sample(model, src[i : i + 1, : lengths[i]], limits[i : i + 1], [i], samples=2)
        assert [one.tokens for one in alone] == [one.tokens for one in together[i]]
        # float32 log-probabilities of up to 28 tokens; sums run in another order in another batch.
        assert [one.score for one in alone] == pytest.approx([one.score for one in together[i]], abs=1e-4)


def test_torchs_own_generator_is_left_alone():
    torch.manual_seed(0)
    before = torch.random.get_rng_state()
    sample(ToyModel(3), toy_batch(2), torch.tensor([7, 3]), [1, 2])
    assert torch.equal(torch.random.get_rng_state(), before)
