"""A model that may use only some tokens: the same numbers, over fewer of them."""

import pytest
import torch

from regard.machine import int8_works
from regard.model.quantize import use_int8_products
from regard.model.restricted import RestrictedModel
from regard.search.beam import beam_search
from regard.search.greedy import greedy_search
from regard.tokens import END, START

VOCABULARY = 40
ROWS = torch.tensor([0, 1, 2, 3, 5, 8, 9, 13, 21, 34])
ALLOWED = torch.tensor([[0, 0, 0, 1, 1, 1, 1, 1, 0, 1], [0, 0, 0, 1, 1, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1, 1, 0, 1, 0]])


class Masked:
    """The same in the simplest way: all logits are computed, and what is not allowed is impossible."""

    def __init__(self, model):
        self.model, self.encode = model, model.encode

    def start(self, memory):
        return MaskedState(self.model.start(memory), ALLOWED.bool())

    def step(self, state, tokens):
        hidden, decoder = self.model.decoder.step(state.decoder, tokens)
        may = torch.zeros(len(state.allowed), VOCABULARY, dtype=torch.bool)
        may[:, ROWS] = state.allowed
        logits = self.model.output(hidden).masked_fill(~may[:, None], float("-inf"))
        return logits.log_softmax(dim=-1), MaskedState(decoder, state.allowed)


class MaskedState:
    def __init__(self, decoder, allowed):
        self.decoder, self.allowed = decoder, allowed

    def select(self, parents):
        return MaskedState(self.decoder.select(parents), self.allowed[parents[:, 0] // self.decoder.beams])


def renumbered(found):
    return [[one.renumbered(ROWS.tolist()) for one in best] for best in found]


@pytest.fixture(params=range(4))
def model(tiny_model, request):
    return tiny_model(VOCABULARY, seed=request.param, sharpness=3.0)


@pytest.fixture
def src(random_source):
    return random_source([6, 4, 5], VOCABULARY)


@torch.inference_mode()
def test_probabilities_are_those_of_the_allowed_tokens_alone(model, src):
    restricted, masked = RestrictedModel(model, ROWS, ALLOWED.bool()), Masked(model)
    tokens = torch.tensor([[START], [START], [START]])
    scores, state = restricted.step(restricted.start(restricted.encode(src)), tokens)
    expected, _ = masked.step(masked.start(masked.encode(src)), tokens)
    assert scores.shape == (3, 1, len(ROWS))
    torch.testing.assert_close(scores, expected[:, :, ROWS])
    assert (scores.exp().sum(dim=-1) - 1).abs().max() < 1e-5
    following, _ = restricted.step(state.select(torch.tensor([[2], [0]])), torch.tensor([[4], [9]]))
    assert torch.equal(following.isneginf().squeeze(1), ~ALLOWED[[2, 0]].bool())


@pytest.mark.parametrize("beam", [1, 3, 5])
def test_search_finds_what_it_finds_when_the_other_tokens_are_impossible(model, src, beam):
    limits = torch.tensor([9, 7, 8])
    found = beam_search(RestrictedModel(model, ROWS, ALLOWED.bool()), src, limits, beam, 0.6, beam)
    expected = beam_search(Masked(model), src, limits, beam, 0.6, beam)
    for ours, theirs in zip(renumbered(found), expected, strict=True):
        assert [one.tokens for one in ours] == [one.tokens for one in theirs]
        assert [one.score for one in ours] == pytest.approx([one.score for one in theirs], abs=1e-5)
    for ours, may in zip(renumbered(found), ALLOWED, strict=True):
        assert all(set(one.tokens) <= set(ROWS[may.bool()].tolist()) for one in ours)
    if beam == 1:
        greedy = greedy_search(RestrictedModel(model, ROWS, ALLOWED.bool()), src, limits, 0.6)
        assert renumbered([greedy])[0] == [best for (best,) in renumbered(found)]


def test_a_sentence_alone_is_translated_as_in_a_batch(model, src):
    limits = torch.tensor([9, 7, 8])
    together = renumbered(beam_search(RestrictedModel(model, ROWS, ALLOWED.bool()), src, limits, 4, 0.6))
    for number, length in enumerate([6, 4, 5]):
        own = ALLOWED[number].bool() | (torch.arange(len(ROWS)) <= END)
        alone = RestrictedModel(model, ROWS[own], ALLOWED[number : number + 1].bool()[:, own])
        (best,) = beam_search(alone, src[number : number + 1, :length], limits[number : number + 1], 4, 0.6)
        best = [one.renumbered(ROWS[own].tolist()) for one in best]
        assert [one.tokens for one in best] == [one.tokens for one in together[number]]
        assert best[0].score == pytest.approx(together[number][0].score, abs=1e-5)


def test_in_eight_bits_a_row_is_the_same_whichever_rows_there_are(model):
    if not int8_works():
        pytest.skip("fbgemm's products do not work on this machine")
    use_int8_products(model)
    hidden = torch.randn(2, 3, 16, generator=torch.Generator().manual_seed(1))
    assert torch.equal(model.output.restricted(ROWS)(hidden), model.output(hidden)[..., ROWS])
