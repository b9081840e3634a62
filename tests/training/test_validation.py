"""Validation: the loss is the model's, and a choice between models is the right one."""

import math
from itertools import pairwise

import pytest
import torch
from digits import MODEL, recipe, write_corpus
from hypothesis import given
from hypothesis import strategies as st

from regard.data.batches import collate
from regard.model.build import build_model
from regard.settings import Corpus, ModelSettings
from regard.training.distributed import World
from regard.training.validation import (
    Validation,
    is_better,
    pick_sentences,
    validate,
    validation_loss,
    validations_since_best,
)


@pytest.fixture(scope="module")
def model(prepared):
    torch.manual_seed(5)
    return build_model(ModelSettings(**MODEL, dropout=0.5), len(prepared.vocabulary)).eval()


# ---- the loss --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("piece_tokens", [7, 20, 1000])
def test_the_loss_is_the_mean_over_tokens_computed_sentence_by_sentence(model, prepared, machine, piece_tokens):
    total = tokens = 0.0
    with torch.no_grad():
        for row in range(len(prepared.valid)):
            batch = collate(prepared.valid, torch.tensor([row]).numpy())
            tgt = torch.from_numpy(batch.tgt)
            logits = model(torch.from_numpy(batch.src), tgt[:, :-1]) @ model.output.weight.T
            total -= logits[0].double().log_softmax(-1).gather(1, tgt[0, 1:, None]).sum().item()
            tokens += batch.tokens
    found = validation_loss(model, prepared.valid, piece_tokens, machine, World())
    assert found == pytest.approx(total / tokens, rel=1e-5)  # float32 logits


def test_the_processes_parts_of_the_loss_make_up_the_whole(model, prepared, machine, monkeypatch):
    whole = validation_loss(model, prepared.valid, 10, machine, World())
    sums = []
    monkeypatch.setattr(World, "sum", lambda self, tensor: sums.append(tensor.clone()))
    for rank in range(3):
        validation_loss(model, prepared.valid, 10, machine, World(rank, 3))
    loss, tokens = sum(sums).tolist()
    assert tokens == prepared.valid.target_tokens
    assert loss / tokens == pytest.approx(whole, rel=1e-12)  # the same pieces, summed in float64


def test_validating_leaves_a_training_model_in_training(model, prepared, machine, corpus):
    settings = recipe(corpus)
    model.train()
    found, samples = validate(model, prepared, pick_sentences(settings.data.valid, 4), 7, settings, machine, World())
    assert model.training
    assert found.step == 7
    # Dropout is off: the same loss as in evaluation mode.
    assert found.loss == validation_loss(model.eval(), prepared.valid, settings.training.piece_tokens, machine, World())
    assert found.bleu is not None
    assert [source for source, _ in samples] == [pair.source for pair in pick_sentences(settings.data.valid, 4)][:3]


def test_bleu_is_left_out_if_it_is_not_wanted(model, prepared, machine, corpus):
    settings = recipe(corpus, validation_bleu=False)
    found, samples = validate(model, prepared, pick_sentences(settings.data.valid, 4), 7, settings, machine, World())
    assert found.bleu is None
    assert not samples
    assert "BLEU" not in found.describe()


def test_perplexity_is_e_to_the_loss():
    assert Validation(1, math.log(20), None).perplexity == pytest.approx(20)
    assert Validation(1, 1e6, None).perplexity == math.exp(700)  # more is no float
    assert Validation(1, None, 30.0).perplexity is None


def test_a_validation_is_told_in_a_line():
    assert Validation(9, math.log(20), 31.26).describe() == "loss 2.996 · perplexity 20.00 · BLEU 31.3"


# ---- the choice of sentences -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def two_corpora(tmp_path_factory):
    folder = write_corpus(tmp_path_factory.mktemp("two"), sizes={"a": 30, "b": 70})
    return [Corpus(source=folder / f"{name}.src", target=folder / f"{name}.tgt") for name in "ab"]


@given(count=st.integers(1, 130))
def test_sentences_are_evenly_spread_over_the_corpora_and_in_order(two_corpora, count):
    everything = [pair.source for pair in pick_sentences(two_corpora, 10_000)]
    assert len(everything) == 100
    places = [everything.index(pair.source) for pair in pick_sentences(two_corpora, count)]
    assert len(places) == min(count, 100)
    gaps = {after - before for before, after in pairwise(places)}
    assert places[0] == 0
    assert all(abs(gap - 100 / len(places)) < 1 for gap in gaps)


def test_sentences_without_text_are_not_picked(tmp_path):
    (tmp_path / "a").write_text("1 2\n\n3\n  \n4\n")
    (tmp_path / "b").write_text("1 2\nx\n3\n\n\n")
    picked = pick_sentences([Corpus(source=tmp_path / "a", target=tmp_path / "b")], 10)
    assert [pair.source for pair in picked] == ["1 2", "3"]


def test_without_validation_text_there_is_nothing_to_pick():
    assert pick_sentences([], 10) == []


# ---- better and best -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "choose_by", "better"),
    [
        ((2.0, 10.0), (3.0, 20.0), "loss", True),
        ((2.0, 10.0), (3.0, 20.0), "bleu", False),
        ((3.0, 20.0), (2.0, 10.0), "bleu", True),
        ((2.0, 10.0), (3.0, 10.0), "bleu", True),  # the same BLEU: the loss decides
        ((2.0, None), (3.0, 10.0), "bleu", True),
        ((2.0, 1.0), (2.0, 9.0), "loss", False),
        ((None, 20.0), (None, 10.0), "loss", False),
        ((None, 20.0), (None, 10.0), "bleu", True),
        ((9.0, 0.0), (math.nan, 0.0), "loss", True),  # any loss beats none
        ((math.nan, 0.0), (9.0, 0.0), "loss", False),
    ],
)
def test_lower_loss_or_higher_bleu_is_better(one, other, choose_by, better):
    assert is_better(Validation(1, *one), Validation(2, *other), choose_by) is better


@given(st.lists(st.integers(0, 5), max_size=12))
def test_patience_counts_from_the_first_of_the_best(losses):
    found = validations_since_best([Validation(n, float(loss), None) for n, loss in enumerate(losses)], "loss")
    assert found == (len(losses) - 1 - losses.index(min(losses)) if losses else 0)


def test_a_loss_that_is_no_number_is_never_the_best():
    validations = [Validation(step, loss, None) for step, loss in enumerate([math.nan, 5.0, 4.0])]
    assert validations_since_best(validations, "loss") == 0
