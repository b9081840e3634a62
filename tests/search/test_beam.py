"""Beam search: what exhaustive search finds, one beam is greedy, the stop is right, the batch does not matter."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from toy import VOCABULARY, WORDS, ToyModel, tokens_of, toy_batch

from regard.search import beam as beam_module
from regard.search.beam import beam_search
from regard.search.greedy import greedy_search
from regard.search.hypothesis import length_penalty
from regard.search.scoring import score_targets
from regard.tokens import END, START

ROUNDING = 1e-5  # float32 sums of some ten log-probabilities, against float64
alphas = st.sampled_from([0.0, 0.6, 1.0, 2.0])


def limits_of(*limits):
    return torch.tensor(limits)


def without_bound(live, finished, limits, alpha, wanted):
    """Keep a sentence going as long as a hypothesis of it is alive."""
    return (live.log_probability > float("-inf")).any(axis=1).nonzero()[0].tolist()


# ---- the right result ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, 3.0])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("end_bonus", [-3.0, 0.0])
def test_a_beam_as_wide_as_all_prefixes_equals_exhaustive_search(seed, alpha, end_bonus):
    toy = ToyModel(seed, end_bonus=end_bonus)
    everything = 1 + 3 + 9 + 27  # targets of 1, 2, 3 and 4 tokens
    for n_best in (1, 5, everything):
        results = beam_search(toy, toy_batch(3), limits_of(4, 4, 4), everything, alpha, n_best)
        for sentence, found in enumerate(results):
            expected = toy.exhaustive(sentence, 4, alpha)[:n_best]
            assert [one.tokens for one in found] == [one.tokens for one in expected]
            assert [one.score for one in found] == pytest.approx([one.score for one in expected], abs=ROUNDING)


@given(seed=st.integers(0, 10**6), beam=st.integers(1, 6), alpha=alphas, limit=st.integers(1, 7))
def test_a_narrow_beam_equals_beam_search_in_plain_python(seed, beam, alpha, limit):
    toy = ToyModel(seed)
    limits = limits_of(limit, 3, limit)
    results = beam_search(toy, toy_batch(3), limits, beam, alpha, n_best=beam)
    assert tokens_of(results) == tokens_of(
        [toy.slow_beam(sentence, int(limits[sentence]), beam, alpha) for sentence in range(3)]
    )


@given(seed=st.integers(0, 10**6), alpha=alphas)
def test_beam_one_equals_greedy(seed, alpha):
    toy = ToyModel(seed)
    limits = limits_of(1, 2, 5, 9)
    assert beam_search(toy, toy_batch(4), limits, 1, alpha) == [
        [one] for one in greedy_search(toy, toy_batch(4), limits, alpha)
    ]


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6))
def test_beam_one_equals_greedy_for_a_transformer(tiny_model, random_source, seed):
    model = tiny_model(seed=seed, sharpness=3.0)
    src, limits = random_source([5, 2, 8], seed=seed), limits_of(9, 6, 12)
    beam, greedy = beam_search(model, src, limits, 1, 0.6), greedy_search(model, src, limits, 0.6)
    assert tokens_of(beam) == tokens_of([[one] for one in greedy])


def test_a_wider_beam_finds_what_greedy_search_misses():
    better = 0
    for seed in range(20):
        toy = ToyModel(seed)
        ((wide,),), (narrow,) = (beam_search(toy, toy_batch(1), limits_of(6), b, 0.0) for b in (8, 1))
        better += wide.score > narrow[0].score + ROUNDING
    assert better > 0


def test_hypotheses_are_different_and_best_first(tiny_model, random_source):
    results = beam_search(tiny_model(), random_source([5, 3]), limits_of(9, 9), 5, 0.6, n_best=5)
    for found in results:
        assert len({one.tokens for one in found}) == 5
        assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)


@pytest.mark.parametrize(("beam", "n_best", "expected"), [(4, 1, 1), (4, 4, 4), (4, 9, 4), (1, 3, 1)])
def test_there_are_as_many_hypotheses_as_asked_for_and_no_more_than_the_beam(beam, n_best, expected):
    (found,) = beam_search(ToyModel(0), toy_batch(1), limits_of(6), beam, 0.6, n_best)
    assert len(found) == expected


# ---- the stop --------------------------------------------------------------------------------------------------------


@settings(max_examples=200)
@given(
    seed=st.integers(0, 10**6),
    beam=st.integers(1, 5),
    wanted=st.integers(1, 5),
    alpha=alphas,
    spread=st.sampled_from([0.5, 2.0, 8.0]),
    end_bonus=st.sampled_from([-2.0, 0.0, 2.0]),
)
def test_stopping_by_the_bound_changes_nothing(seed, beam, wanted, alpha, spread, end_bonus):
    toy = ToyModel(seed, spread, end_bonus)
    arguments = (toy_batch(3), limits_of(8, 3, 6), beam, alpha, wanted)
    stopped = beam_search(toy, *arguments)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(beam_module, "_undecided", without_bound)
        assert beam_search(toy, *arguments) == stopped


class LateWinner(ToyModel):
    """Ends at once with probability 0.5, or says a word (0.4) and is then certain: the same word up to seven times."""

    def _log_probabilities(self, sentence, prefix):
        words = len(prefix) - 1
        likely = {0: {END: 0.5, WORDS[0]: 0.4}, 7: {END: 0.999}}.get(words, {WORDS[0]: 0.999})
        rest = (1 - sum(likely.values())) / (VOCABULARY - len(likely))
        return [math.log(likely.get(token, rest)) for token in range(VOCABULARY)]


@pytest.mark.parametrize(("alpha", "length"), [(0.0, 1), (0.2, 1), (1.0, 8)])
def test_a_long_hypothesis_that_only_the_length_penalty_favours_is_waited_for(alpha, length):
    # log 0.5 = -0.69 at length 1; log 0.4 + 7 log 0.999 = -0.92 at length 8, divided by (13 / 6)^α.
    ((best,),) = beam_search(LateWinner(0), toy_batch(1), limits_of(8), beam=2, alpha=alpha)
    assert len(best.tokens) == length


def test_the_bound_stops_early_when_the_rest_is_hopeless(monkeypatch):
    def steps():
        toy = ToyModel(3, spread=2.0, end_bonus=3.0)
        beam_search(toy, toy_batch(4), limits_of(30, 30, 30, 30), beam=4, alpha=0.6)
        return toy.steps

    early = steps()
    monkeypatch.setattr(beam_module, "_undecided", without_bound)
    assert early < steps()


def test_more_wanted_hypotheses_may_need_more_steps_and_never_fewer():
    def steps(n_best):
        toy = ToyModel(3, spread=2.0, end_bonus=3.0)
        beam_search(toy, toy_batch(4), limits_of(30, 30, 30, 30), beam=4, alpha=0.6, n_best=n_best)
        return toy.steps

    counts = [steps(n_best) for n_best in (1, 2, 3, 4)]
    assert counts == sorted(counts)


# ---- limits and scores -----------------------------------------------------------------------------------------------


@given(
    seed=st.integers(0, 10**6),
    limits=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    beam=st.integers(1, 5),
    alpha=alphas,
    end_bonus=st.sampled_from([-5.0, 0.0]),
)
def test_every_hypothesis_is_text_that_ends_within_its_limit_with_honest_scores(seed, limits, beam, alpha, end_bonus):
    toy = ToyModel(seed, end_bonus=end_bonus)
    results = beam_search(toy, toy_batch(len(limits)), torch.tensor(limits), beam, alpha, n_best=beam)
    for sentence, (found, limit) in enumerate(zip(results, limits, strict=True)):
        assert found
        for one in found:
            *words, end = one.tokens
            assert len(one.tokens) <= limit
            assert end == END
            assert set(words) <= set(WORDS)
            # The end token's too, forced or not.
            assert one.token_scores == pytest.approx(toy.token_scores(sentence, one.tokens), abs=ROUNDING)
            assert one.score * length_penalty(len(one.tokens), alpha) == pytest.approx(sum(one.token_scores))


def test_a_model_that_never_wants_to_end_is_ended_at_the_limit():
    toy = ToyModel(0, end_bonus=-50.0)
    for found, limit in zip(beam_search(toy, toy_batch(3), limits_of(1, 4, 7), 3, 0.6), (1, 4, 7), strict=True):
        assert len(found[0].tokens) == limit
        assert found[0].token_scores[-1] < -40


@pytest.mark.parametrize("options", [{}, {"neighbours": 4}, {"norm": "pre", "embeddings": "separate"}], ids=str)
def test_the_scores_of_hypotheses_are_the_scores_of_their_targets(tiny_model, random_source, options):
    model = tiny_model(sharpness=2.0, **options)
    src = random_source([9, 4, 6])
    for row, found in enumerate(beam_search(model, src, limits_of(12, 8, 10), 4, 0.6, n_best=4)):
        longest = max(len(one.tokens) for one in found)
        tgt = torch.tensor([[START, *one.tokens, *[0] * (longest - len(one.tokens))] for one in found])
        for one, scores in zip(found, score_targets(model, src[row].expand(len(found), -1), tgt), strict=True):
            # float32, a stack of layers: position by position against all at once.
            assert one.token_scores == pytest.approx(scores, abs=1e-4)


# ---- the batch -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"norm": "pre"}, {"neighbours": 6}], ids=str)
def test_a_sentence_alone_gives_the_same_translation_as_in_a_batch_of_64(tiny_model, random_source, options):
    model = tiny_model(vocabulary=30, sharpness=3.0, **options)
    lengths = [1 + 7 * i % 23 for i in range(64)]
    src, limits = random_source(lengths, vocabulary=30), torch.tensor(lengths) + 5
    together = beam_search(model, src, limits, 4, 0.6, n_best=4)
    assert len({len(found[0].tokens) for found in together}) > 5  # they leave the batch at different times
    for i in range(0, 64, 3):  # 22 of them, of 22 lengths
        (alone,) = beam_search(model, src[i : i + 1, : lengths[i]], limits[i : i + 1], 4, 0.6, n_best=4)
        assert [one.tokens for one in alone] == [one.tokens for one in together[i]]
        # float32 log-probabilities of up to 28 tokens; sums run in another order in another batch.
        assert [one.score for one in alone] == pytest.approx([one.score for one in together[i]], abs=1e-4)


@given(seed=st.integers(0, 10**6), order=st.permutations(range(5)), beam=st.integers(1, 4))
def test_the_order_and_company_of_sentences_does_not_matter(seed, order, beam):
    toy = ToyModel(seed)
    limits = limits_of(7, 2, 5, 1, 6)
    results = beam_search(toy, toy_batch(5), limits, beam, 0.6, n_best=beam)
    assert beam_search(toy, toy_batch(5)[order], limits[order], beam, 0.6, n_best=beam) == [results[i] for i in order]


def test_an_empty_batch_gives_no_results():
    assert beam_search(ToyModel(0), toy_batch(0), torch.tensor([], dtype=torch.int64), 4, 0.6) == []
