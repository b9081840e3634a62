"""Several models that search as one."""

from itertools import chain

import numpy as np
import pytest
import torch

from regard.model.build import build_model
from regard.search.beam import beam_search
from regard.search.ensemble import Ensemble, mean_of
from regard.search.predictor import Likeliest, Stepwise
from regard.settings import ModelSettings
from regard.tokens import END, START

V = 40
CPU = torch.device("cpu")


def make_model(seed):
    torch.manual_seed(seed)
    return build_model(ModelSettings(d_model=32, d_ff=64, heads=2, encoder_layers=1, decoder_layers=1), V).eval()


def likeliest(*rows):
    """Return tokens with probabilities, as {token: probability} of each row, for one hypothesis each."""
    shape = len(rows), 1, len(rows[0])
    return Likeliest(
        np.log(np.float32([[*row.values()] for row in rows])).reshape(shape),
        np.int32([[*row] for row in rows]).reshape(shape),
    )


def test_the_mean_of_probabilities_is_worked_out_by_hand():
    one = likeliest({7: 0.5, 9: 0.3, 4: 0.1}, {4: 0.9, 5: 0.05, 6: 0.01})
    other = likeliest({9: 0.6, 8: 0.3, 7: 0.2}, {5: 0.5, 4: 0.3, 7: 0.1})
    found = mean_of([one, other], 3)
    assert found.tokens[:, 0].tolist() == [[9, 7, 8], [4, 5, 7]]
    assert np.exp(found.log_probabilities[:, 0]) == pytest.approx(np.array([[0.45, 0.35, 0.15], [0.6, 0.275, 0.05]]))


def test_more_tokens_than_there_are_have_no_probability():
    same = likeliest({7: 0.5, 9: 0.3})
    assert mean_of([same, same], 3).log_probabilities[0, 0].tolist() == pytest.approx(
        [np.log(0.5), np.log(0.3), -np.inf]
    )


def test_a_model_that_fails_shows():
    bad = likeliest({7: 0.5, 9: float("nan")})
    assert np.isnan(mean_of([bad, likeliest({7: 0.5, 9: 0.3})], 2).log_probabilities).any()


def test_one_model_alone_and_twice_the_same_find_what_the_model_finds():
    model, src, limits = make_model(0), torch.tensor([[5, 6, 7, END], [9, 8, END, 0]]), torch.tensor([12, 12])
    alone = beam_search(model, src, limits, 4, 0.6, 4)
    for count in (1, 2):
        found = beam_search(Ensemble([Stepwise(model, CPU)] * count), src, limits, 4, 0.6, 4)
        assert [[one.tokens for one in row] for row in found] == [[one.tokens for one in row] for row in alone]
        for ours, theirs in zip(chain(*found), chain(*alone), strict=True):
            assert ours.score == pytest.approx(theirs.score, abs=1e-5)


@torch.no_grad()
def test_two_models_step_by_step_have_the_mean_of_their_probabilities():
    models, src, target = [make_model(0), make_model(1)], torch.tensor([[5, 6, 7, END]]), [START, 9, 30, 8]
    logits = torch.stack([model(src, torch.tensor([target])) @ model.output.weight.T for model in models])
    shares = logits.softmax(dim=-1).mean(dim=0)[0]  # (T, V)
    shares[:, [0, 1, 2]] = 0.0  # never said
    expected = shares.log().numpy()
    ensemble = Ensemble([Stepwise(model, CPU) for model in models])
    state, count = ensemble.begin(src), V - 3 - 8  # so each model is asked for all tokens
    for token, scores in zip(target, expected, strict=True):
        found, state = ensemble.predict(state, np.array([[token]]), np.array([False]), count)
        assert found.tokens[0, 0].tolist() == (-scores).argsort(kind="stable")[:count].tolist()
        assert found.log_probabilities[0, 0] == pytest.approx(-np.sort(-scores)[:count], abs=1e-4)
