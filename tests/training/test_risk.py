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
from regard.settings import ModelSettings, Settings, TrainingSettings
from regard.tokens import END, PAD, START
from regard.training.loop import train
from regard.training.risk import Lesson, RiskLearner, risk_loss, similarity
from regard.translator import load

RISK = {"steps": 8, "risk_steps": 4, "risk_candidates": 3, "average": "exponential", "average_decay": 0.8}
WORDS = 20


def make_model(**changes):
    torch.manual_seed(1)
    sizes = {"d_model": 16, "d_ff": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0}
    return build_model(ModelSettings(**{**sizes, **changes}), WORDS)


def tokens(*numbers):
    return (*(4 + number for number in numbers), END)


LESSONS = [
    Lesson(tokens(1, 2, 3), tokens(3, 2, 1), (tokens(3, 2, 1), tokens(3, 1), tokens(7)), (0.0, 0.4, 0.9)),
    Lesson(tokens(5), tokens(5, 5), (tokens(5), tokens(6, 5, 5, 8)), (0.5, 0.3)),
]


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


def by_hand(model, lessons, smoothing):
    """Return the loss as the formula has it, sentence by sentence."""
    total = torch.zeros(())
    for lesson in lessons:
        scores = torch.stack(
            [
                log_probabilities(model, lesson.source, one)[range(len(one)), list(one)].sum()
                for one in lesson.candidates
            ]
        )
        errors = torch.tensor(lesson.errors)
        of_reference = log_probabilities(model, lesson.source, lesson.reference)
        plain = -of_reference[range(len(lesson.reference)), list(lesson.reference)].sum()
        smoothed = (1 - smoothing) * plain - smoothing * of_reference.mean(dim=1).sum()
        total = total + 0.7 * len(lesson.reference) * (scores.softmax(0) * errors).sum() + 0.3 * smoothed
    return total


def test_the_loss_and_its_gradient_are_those_of_the_formula():
    model = make_model().double()
    loss = risk_loss(model, LESSONS, torch.device("cpu"), smoothing=0.1).objective
    expected = by_hand(model, LESSONS, smoothing=0.1)
    assert float(loss.detach()) == pytest.approx(float(expected.detach()), rel=1e-6)
    weights = list(model.parameters())
    for found, wanted in zip(torch.autograd.grad(loss, weights), torch.autograd.grad(expected, weights), strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-6, atol=1e-9)


@torch.no_grad()
def test_the_other_two_sums_are_the_references_own():
    model = make_model().double()
    loss = risk_loss(model, LESSONS, torch.device("cpu"), smoothing=0.1)
    scores = [log_probabilities(model, one.source, one.reference) for one in LESSONS]
    plain = -sum(
        log_p[range(len(one.reference)), list(one.reference)].sum() for log_p, one in zip(scores, LESSONS, strict=True)
    )
    mean = -sum(log_p.mean(dim=1).sum() for log_p in scores)
    assert float(loss.plain) == pytest.approx(float(plain), rel=1e-6)
    assert float(loss.smoothed) == pytest.approx(float(0.9 * plain + 0.1 * mean), rel=1e-6)


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


def test_the_candidates_are_what_search_finds_and_dropout_is_back_after_it(machine):
    model = make_model(dropout=0.5).train()
    (lessons,) = learner(model, machine, risk_candidates=3)._make_lessons([make_batch()])
    assert model.training
    assert [(one.source, one.reference) for one in lessons] == [
        ((5, 6, 7, END), (7, 6, 5, END)),
        ((8, END), (8, END)),
    ]
    assert all(len(set(one.candidates)) == len(one.candidates) == 3 for one in lessons)
    for lesson in lessons:
        assert all(candidate[-1] == END for candidate in lesson.candidates)
        words = [Letters().decode(candidate).split() for candidate in (lesson.reference, *lesson.candidates)]
        assert lesson.errors == tuple(1 - similarity(found, words[0]) for found in words[1:])


@settings(deadline=None, max_examples=10)
@given(piece=st.integers(1, 400))
def test_how_lessons_are_grouped_changes_nothing_but_the_order_of_sums(piece, machine):
    gradients = []
    for tokens_at_once in (piece, 10_000):
        model = make_model()
        made = learner(model, machine, batch_tokens=tokens_at_once, micro_batch_tokens=tokens_at_once)
        loss = made.learn([make_batch()], [3])
        gradients.append(torch.cat([weight.grad.flatten() for weight in model.parameters()]))
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
    loss = learner(model, machine).learn([make_batch()], [3])
    assert float(loss.plain) > 0
