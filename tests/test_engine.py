"""The compiled engine against torch's model: the same probabilities, whatever the shapes."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.engine import NativeModel, can_run, lay_out_for
from regard.machine import choose_machine
from regard.model.quantize import use_int8_products
from regard.model.restricted import RestrictedModel
from regard.native.library import find_library, library_of
from regard.search.beam import beam_search
from regard.search.greedy import greedy_search
from regard.search.hypothesis import NotANumberError
from regard.search.predictor import Stepwise
from regard.tokens import END, START

CPU = torch.device("cpu")
FOUND = find_library()
KINDS = [] if FOUND is None else ["avx2"] if FOUND.kind == "avx2" else ["avx512", "avx2"]
WIDTHS = {"d_model": 32, "d_ff": 48, "d_k": 16, "d_v": 16, "heads": 2}

needs_library = pytest.mark.skipif(FOUND is None, reason="no compiled engine: no C compiler, or another processor")
each_kind = pytest.mark.parametrize("kind", KINDS)
pytestmark = needs_library


def follow(one, other, src, choices, count=3):
    """Ask two predictors the same; `choices` says step by step how many beams there are and who continues whom."""
    states = [predictor.begin(src) for predictor in (one, other)]
    batch, beams = len(src), 1
    newest = np.full((batch, 1), START)
    for step, wanted in enumerate(choices):
        at_limit = np.arange(batch) % 3 == (0 if step == 4 else 3)
        answers = []
        for place, predictor in enumerate((one, other)):
            found, states[place] = predictor.predict(states[place], newest, at_limit, count)
            answers.append(found)
        yield answers
        draw = np.random.default_rng(step)
        parents = np.arange(batch)[:, None] * beams + draw.integers(0, beams, (batch, wanted))
        if step == 2 and batch > 1:  # a sentence leaves
            parents = parents[1:]
        for place, predictor in enumerate((one, other)):
            states[place] = predictor.select(states[place], parents)
        batch, beams = parents.shape
        newest = draw.integers(END + 1, 60, (batch, beams))


@each_kind
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 1000),
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=5),
    norm=st.sampled_from(["post", "pre"]),
    bias=st.booleans(),
    positions=st.sampled_from(["sinusoidal", "learned"]),
    embeddings=st.sampled_from(["shared", "target", "separate"]),
    heads=st.integers(1, 3),
    d_k=st.sampled_from([16, 32, 48]),
    d_v=st.sampled_from([16, 64]),
    d_model=st.sampled_from([16, 48, 64]),
    d_ff=st.sampled_from([16, 80]),
    vocabulary=st.sampled_from([60, 64, 300, 1100]),
    layers=st.tuples(st.integers(1, 2), st.integers(1, 3)),
)
def test_the_engine_predicts_what_the_model_predicts(
    kind,
    tiny_model,
    random_source,
    seed,
    lengths,
    norm,
    bias,
    positions,
    embeddings,
    heads,
    d_k,
    d_v,
    d_model,
    d_ff,
    vocabulary,
    layers,
):
    model = tiny_model(
        vocabulary,
        seed,
        norm=norm,
        attention_bias=bias,
        positions=positions,
        max_positions=6,
        embeddings=embeddings,
        heads=heads,
        d_k=d_k,
        d_v=d_v,
        d_model=d_model,
        d_ff=d_ff,
        encoder_layers=layers[0],
        decoder_layers=layers[1],
    )
    shake(model, seed)
    native, src = NativeModel(model, library_of(kind)), random_source(lengths, 60, seed)
    with torch.inference_mode():
        for found, right in follow(native, Stepwise(model, CPU), src, [4, 2, 3, 1, 2, 2]):
            np.testing.assert_allclose(found.log_probabilities, right.log_probabilities, atol=2e-5, rtol=2e-5)
            assert (found.tokens == right.tokens)[without_ties(right.log_probabilities)].all()


def without_ties(scores):
    """Say which of the best (B, K, count) are clearly apart from the one before and the one after."""
    numbers = np.nan_to_num(scores, neginf=-1e9)
    apart = np.diff(numbers, axis=2) < -1e-4
    last = np.zeros_like(apart[:, :, :1])  # what follows the last is not known
    return (np.isfinite(scores)) & np.concatenate([~last, apart], axis=2) & np.concatenate([apart, last], axis=2)


def shake(model, seed):
    """Give every weight a value of its own, biases and norms too, which begin as zeros and ones."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.1 * torch.randn(weight.shape, generator=generator))


@each_kind
def test_searches_find_the_same(kind, tiny_model, random_source):
    model = tiny_model(60, seed=3, sharpness=4.0, **WIDTHS)
    native, src = NativeModel(model, library_of(kind)), random_source([9, 4, 1, 30], 60)
    limits = torch.tensor([12, 3, 5, 40])
    for beam in (1, 4):
        right = beam_search(model, src, limits, beam, 0.6, n_best=beam)
        found = beam_search(native, src, limits, beam, 0.6, n_best=beam)
        assert [[one.tokens for one in row] for row in found] == [[one.tokens for one in row] for row in right]
    greedy = greedy_search(native, src, limits)
    assert [one.tokens for one in greedy] == [one.tokens for one in greedy_search(model, src, limits)]


@each_kind
@pytest.mark.parametrize("eight_bits", [False, True])
def test_batches_change_nothing_at_all(kind, eight_bits, tiny_model, random_source):
    if eight_bits and not library_of(kind).has_int8:
        pytest.skip("torch computes in eight bits there")
    native = NativeModel(tiny_model(300, seed=1, sharpness=3.0, **WIDTHS), library_of(kind), eight_bits)
    lengths = [17, 3, 9, 33, 5]
    src, limits = random_source(lengths, 300), torch.full((5,), 20)
    together = beam_search(native, src, limits, 4, 0.6, n_best=4)
    for row, found in enumerate(together):
        (alone,) = beam_search(native, src[row : row + 1, : lengths[row]], limits[:1], 4, 0.6, n_best=4)
        assert alone == found  # to the last bit


def test_eight_bits_are_torch_s_eight_bits(tiny_model, random_source):
    if not FOUND.has_int8:
        pytest.skip("torch computes in eight bits there")
    model = tiny_model(300, seed=5, **WIDTHS)
    shake(model, 5)
    native, src = NativeModel(model, FOUND, eight_bits=True), random_source([12, 5], 60)
    use_int8_products(model)
    with torch.inference_mode():
        for found, right in follow(native, Stepwise(model, CPU), src, [4, 2, 2, 2]):
            np.testing.assert_allclose(found.log_probabilities, right.log_probabilities, atol=2e-3)


@each_kind
def test_a_shortlist_restricts_it_as_it_restricts_the_model(kind, tiny_model, random_source):
    model = tiny_model(700, seed=2, sharpness=3.0, **WIDTHS)
    src, limits = random_source([9, 4, 12], 700), torch.full((3,), 15)
    rows = torch.unique(torch.cat([torch.arange(4), torch.randint(4, 700, (400,))]))
    allowed = torch.rand(3, len(rows)) < 0.5
    allowed[:, :4] = True
    right = beam_search(RestrictedModel(model, rows, allowed), src, limits, 4, 0.6)
    restricted = NativeModel(model, library_of(kind)).restricted(rows.numpy(), allowed.numpy())
    found = beam_search(restricted, src, limits, 4, 0.6)
    assert [row[0].tokens for row in found] == [row[0].tokens for row in right]
    for one, other in zip(found, right, strict=True):
        assert one[0].score == pytest.approx(other[0].score, abs=1e-4)
    for sentence, (best, *_) in enumerate(found):
        assert allowed[sentence, list(best.tokens)].all()


@each_kind
def test_sentences_longer_than_any_table_are_read(kind, tiny_model, random_source):
    model = tiny_model(60, **WIDTHS)
    native, src = NativeModel(model, library_of(kind)), random_source([600, 2], 60)
    with torch.inference_mode():
        for found, right in follow(native, Stepwise(model, CPU), src, [2, 2]):
            np.testing.assert_allclose(found.log_probabilities, right.log_probabilities, atol=2e-5)
    assert len(greedy_search(native, src, torch.tensor([400, 3]))[0].tokens) <= 400


@each_kind
@pytest.mark.parametrize("eight_bits", [False, True])
@pytest.mark.parametrize(
    "name", ["decoder.stack.0.feed_forward.inner.weight", "encoder.stack.1.self_attention.output.weight"]
)
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_damaged_weights_are_found_out(kind, eight_bits, name, value, tiny_model, random_source):
    if eight_bits and not library_of(kind).has_int8:
        pytest.skip("torch computes in eight bits there")
    model = tiny_model(60, **WIDTHS)
    model.get_parameter(name).data[3, 3] = value
    native = NativeModel(model, library_of(kind), eight_bits)
    with pytest.raises(NotANumberError):
        greedy_search(native, random_source([5], 60), torch.tensor([5]))


def test_what_the_engine_does_not_know_is_left_to_torch(tiny_model):
    assert can_run(tiny_model(60, **WIDTHS))
    for odd in ({"d_ff": 40}, {"activation": "gelu"}, {"neighbours": 4}, {"heads": 3, "d_k": 20}):
        assert not can_run(tiny_model(60, **{**WIDTHS, **odd}))
    assert not can_run(tiny_model(60, **WIDTHS).double())
    machine = choose_machine("cpu", "float32", threads=1)
    assert isinstance(lay_out_for(machine, tiny_model(60, **WIDTHS)), NativeModel)
    assert lay_out_for(machine, tiny_model(60, activation="gelu", **WIDTHS)) is None


@each_kind
def test_threads_change_nothing_at_all(kind, tiny_model, random_source):
    native = NativeModel(tiny_model(9000, seed=1, sharpness=3.0, **{**WIDTHS, "d_model": 128}), library_of(kind))
    src, limits = random_source([17, 3, 9, 33, 5], 9000), torch.full((5,), 6)
    before, answers = torch.get_num_threads(), []
    for threads in (1, 3):
        torch.set_num_threads(threads)
        answers.append(beam_search(native, src, limits, 4, 0.6, n_best=4))
    torch.set_num_threads(before)
    assert answers[0] == answers[1]  # to the last bit
