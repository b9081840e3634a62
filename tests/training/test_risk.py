"""Minimum risk training: what it minimises, how it goes on, and that it does what it is for."""

import math
from itertools import islice

import numpy as np
import pytest
import torch
from digits import Words, recipe, same_weights, write_corpus
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from regard.data.batches import Batch, steps
from regard.data.prepare import prepare
from regard.engine import lay_out_for
from regard.model.build import build_model
from regard.progress import QuietDisplay
from regard.search.beam import beam_search
from regard.settings import ModelSettings, Settings, TrainingSettings
from regard.tokens import END, PAD, START
from regard.training import risk
from regard.training.learner import TorchLearner
from regard.training.loop import train
from regard.training.output_sample import OutputSampler
from regard.training.risk import RiskLearner, similarity
from regard.translator import load

RISK = {"steps": 8, "risk_steps": 4, "risk_candidates": 3, "average": "exponential", "average_decay": 0.8}
WORDS = 20


def make_model(**changes):
    torch.manual_seed(1)
    sizes = {"d_model": 16, "d_ff": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0}
    return build_model(ModelSettings(**{**sizes, **changes}), WORDS)


# ---- how alike two sentences are -------------------------------------------------------------------------------------

SENTENCES = st.lists(st.sampled_from("abcdef"), max_size=12)


@given(SENTENCES, SENTENCES)
def test_similarity_is_one_for_the_same_and_less_for_others(one, other):
    assert similarity(one, one) == pytest.approx(1.0)
    assert 0 <= similarity(one, other) <= 1
    assert one == other or similarity(one, other) < 1


def test_similarity_is_what_one_computes_by_hand():
    # Of 5 words 4 are right; of 4, 3, 2 longer n-grams 2, 1, 0, each counted with one more.
    expected = (4 / 5 * 3 / 5 * 2 / 4 * 1 / 3) ** 0.25
    assert similarity("abcxe", "abcde") == pytest.approx(expected)


def test_what_is_too_short_costs_what_bleu_takes_for_it_and_what_is_too_long_its_precision():
    assert similarity("abc", "abcd") == pytest.approx(math.exp(1 - 4 / 3))
    assert similarity("abcd", "abc") == pytest.approx((3 / 4 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25)


@pytest.mark.parametrize(("candidate", "reference", "expected"), [("", "", 1.0), ("a", "", 0.0), ("", "a", 0.0)])
def test_an_empty_sentence_is_like_an_empty_one_alone(candidate, reference, expected):
    assert similarity(candidate, reference) == expected


# ---- what is minimised -----------------------------------------------------------------------------------------------


def log_probabilities(model, source, target):
    """Return log p of every token of the vocabulary at each place of a target, (T, V), from a pass of its own."""
    memory = model.encode(torch.tensor([source]))
    return model.output.log_probabilities(model.decoder(torch.tensor([(START, *target[:-1])]), memory))[0]


class Letters:
    """A vocabulary of 16 letters, each a word."""

    def decode(self, ids):
        return " ".join(chr(ord("a") + token - 4) for token in ids if token >= 4)


def learner(model, machine, **training):
    made = Settings(training=TrainingSettings(average="exponential", **{"risk_steps": 9, **training}))
    return RiskLearner(model, Letters(), made, machine)


def make_batch():
    rows = [([5, 6, 7, END], [START, 7, 6, 5, END]), ([8, END, PAD, PAD], [START, 8, END, PAD, PAD])]
    src, tgt = (np.array(part) for part in zip(*rows, strict=True))
    return Batch(src, tgt, tokens=6, rows=np.arange(2))


def score(model, source, target):
    return log_probabilities(model, source, target)[range(len(target)), list(target)].sum()


def by_hand(model, smoothing, count):
    """Return the loss as the formula has it, sentence by sentence, with the candidates that search finds."""
    total = torch.zeros(())
    for source, reference in [((5, 6, 7, END), (7, 6, 5, END)), ((8, END), (8, END))]:
        with torch.no_grad():
            (found,) = beam_search(model, torch.tensor([source]), torch.tensor([len(source) + 50]), count, 0.6, count)
        words = [Letters().decode(one).split() for one in (reference, *(one.tokens for one in found))]
        errors = torch.tensor([1 - similarity(one, words[0]) for one in words[1:]])
        scores = torch.stack([score(model, source, one.tokens) for one in found])
        of_reference = log_probabilities(model, source, reference)
        plain = -score(model, source, reference)
        smoothed = (1 - smoothing) * plain - smoothing * of_reference.mean(dim=1).sum()
        total = total + smoothed + 7 / 3 * len(reference) * (scores.softmax(0) * errors).sum()
    return total


def gradient_of(model):
    return torch.cat([weight.grad.flatten() for weight in model.parameters()])


@pytest.fixture
def _all_count(monkeypatch):
    monkeypatch.setattr(risk, "_LEAST", 0.0)


@pytest.mark.usefixtures("_all_count")
def test_the_loss_and_its_gradient_are_those_of_the_formula(machine):
    found, expected = make_model(), make_model()
    loss = learner(found, machine, risk_candidates=4).learn(TorchLearner(found, 0.1, machine), [make_batch()], [3])
    wanted = by_hand(expected, smoothing=0.1, count=4)
    wanted.backward()
    assert float(loss.objective) == pytest.approx(float(wanted.detach()), rel=1e-5)
    largest = float(gradient_of(expected).abs().max())
    torch.testing.assert_close(gradient_of(found), gradient_of(expected), rtol=0, atol=1e-5 * largest)  # order of sums


def test_the_other_two_sums_are_the_references_own(machine):
    model = make_model()
    torchs = TorchLearner(model, 0.1, machine)
    loss, usual = learner(model, machine).learn(torchs, [make_batch()], [3]), torchs.learn([make_batch()], [3])
    assert loss[1:] == usual[1:]
    assert loss.objective > usual.objective


@pytest.mark.usefixtures("_all_count")
def test_candidates_are_what_search_finds_weighed_against_each_other_and_dropout_is_back(machine):
    model = make_model(dropout=0.5).train()
    made = learner(model, machine, risk_candidates=3)
    found, _ = made.find_candidates(make_batch())
    assert model.training
    assert [one.source for one in found] == [(5, 6, 7, END)] * 3 + [(8, END)] * 3
    assert all(one.target[-1] == END for one in found)
    for source, reference in [((5, 6, 7, END), "d c b"), ((8, END), "e")]:
        own = [one for one in found if one.source == source]
        errors = [1 - similarity(Letters().decode(one.target).split(), reference.split()) for one in own]
        # The better of two is learned more, or unlearned less, but for how likely they are.
        assert sum(one.factor for one in own) == pytest.approx(0, abs=1e-5)
        assert own[errors.index(min(errors))].factor > -1e-9
        assert own[errors.index(max(errors))].factor < 1e-9


def test_candidates_that_count_next_to_nothing_are_left_out(machine, monkeypatch):
    model = make_model()
    made = learner(model, machine)
    monkeypatch.setattr(
        made, "_weigh", lambda found, reference: ([0.3, -0.29, 0.0019, *[-0.002] * (len(found) - 3)], 0.5)
    )
    found, risk_of_batch = made.find_candidates(make_batch())
    assert [round(one.factor / (7 / 3), 4) for one in found] == [
        round(length * w, 4) for length in (4, 2) for w in (0.3, -0.29, *[-0.002] * 5)
    ]
    assert risk_of_batch == pytest.approx(7 / 3 * (4 + 2) * 0.5)


def test_with_a_sampler_references_and_candidates_are_learned_with_some_of_the_tokens(machine):
    model, torchs = make_model(), []

    class Asked(TorchLearner):
        def learn(self, batches, seeds, consistency=0.0, sampler=None):
            torchs.append((len(batches), sampler))
            return super().learn(batches, seeds, consistency, sampler)

    sampler = OutputSampler(np.ones(WORDS), 10)
    learner(model, machine).learn(Asked(model, 0.1, machine), [make_batch()], [3], sampler)
    assert [one for _, one in torchs] == [sampler] * len(torchs)


@settings(deadline=None, max_examples=10)
@given(piece=st.integers(1, 400))
def test_how_candidates_are_grouped_changes_nothing_but_the_order_of_sums(piece, machine):
    gradients = []
    for tokens_at_once in (piece, 10_000):
        model = make_model()
        made = learner(model, machine, batch_tokens=tokens_at_once, micro_batch_tokens=tokens_at_once)
        loss = made.learn(TorchLearner(model, 0.1, machine), [make_batch()], [3])
        gradients.append(gradient_of(model))
        assert float(loss.objective) > 0
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-5)


# ---- in a training ---------------------------------------------------------------------------------------------------


def test_a_model_that_has_learned_half_errs_less_after_it(tmp_path, machine):
    corpus = write_corpus(tmp_path / "corpus", lambda digits: digits[::-1], {"train": 500, "valid": 60})
    scores = {}
    for risk_steps in (0, 40):
        out = tmp_path / str(risk_steps)
        options = {**RISK, "steps": 150, "risk_steps": risk_steps, "risk_learning_rate": 0.003, "schedule": "linear"}
        made = recipe(corpus, batch_tokens=400, checkpoint_steps=500, **{**options, "micro_batch_tokens": 400})
        train(made, out, display=QuietDisplay(), processes=1, threads=1)
        model = load(out, threads=1)
        sources, targets = ((corpus / f"valid.{side}").read_text().splitlines() for side in ("src", "tgt"))
        found = [one.text for one in model.translate_lines(sources)]
        scores[risk_steps] = np.mean(
            [similarity(one.split(), two.split()) for one, two in zip(found, targets, strict=True)]
        )
    assert 0.05 < scores[0] < 0.95  # there is something to learn, and something is known
    assert scores[40] > scores[0] + 0.02


@pytest.mark.parametrize("step", [4, 8, 10])
def test_a_run_that_died_before_at_and_behind_the_change_ends_with_the_same_bits(step, corpus, tmp_path, stopped_run):
    options = {**RISK, "checkpoint_steps": 2}
    died, undisturbed = stopped_run(step, **options), tmp_path / "undisturbed"
    for out in (died, undisturbed):
        train(recipe(corpus, **options), out, display=QuietDisplay(), processes=1, threads=1)
    assert same_weights(died / "model", undisturbed / "model")


def test_it_is_said_and_counted(corpus, tmp_path):
    words = Words()
    train(recipe(corpus, **RISK), tmp_path, display=words, processes=1, threads=1)
    assert words.lines.count("4 steps that lower risk begin (training.risk_steps)") == 1
    assert "12 steps" in (tmp_path / "model" / "README.md").read_text()


def test_only_the_corpora_that_were_given_are_used_for_it(corpus, tmp_path):
    made = recipe(corpus)
    twice = made.model_copy(update={"data": made.data.model_copy(update={"train": made.data.train * 2})})
    store = prepare(twice, tmp_path, QuietDisplay()).training_store(1)
    first = store.of_first(1)
    planned = islice(steps(first, 40, 4, seed=1), 50)
    rows = {int(row) for _, step in planned for piece in step for row in piece}
    assert rows == set(range(300))
    assert len(store.corpora) == 2  # the store itself is as it was


@pytest.mark.parametrize(
    "training",
    [{}, {"average": "best"}, *({"average": "exponential", **one} for one in ({"patience": 3}, {"shard": True}))],
)
def test_what_it_does_not_go_with_is_refused(training):
    with pytest.raises(
        ValidationError, match="risk_steps need average = 'exponential', and neither patience nor shard"
    ):
        TrainingSettings(risk_steps=1, **training)


def test_torch_searches_where_the_compiled_engine_does_not_know_the_model(machine):
    model = make_model(norm="pre")
    assert lay_out_for(machine, model) is None
    loss = learner(model, machine).learn(TorchLearner(model, 0.1, machine), [make_batch()], [3])
    assert float(loss.plain) > 0
