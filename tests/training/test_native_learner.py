"""Learning in the compiled library: the loss and the gradients that torch finds, whoever computes them."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.batches import Batch
from regard.model import dropout
from regard.model.build import build_model
from regard.native.library import find_library, library_of
from regard.settings import ModelSettings, TrainingSettings
from regard.tokens import END, PAD, START
from regard.training import native_learner
from regard.training.learner import TorchLearner, choose_learner, native_library_for
from regard.training.native_learner import NativeLearner, can_learn
from regard.training.optimizer import Adam
from regard.training.output_sample import OutputSampler

FOUND = find_library()
pytestmark = pytest.mark.skipif(FOUND is None, reason="no compiled library: no C compiler, or another processor")
KINDS = [] if FOUND is None else ["avx2"] if FOUND.kind == "avx2" else ["avx512", "avx2"]
each_kind = pytest.mark.parametrize("kind", KINDS)

SMALL = {"d_model": 64, "d_ff": 96, "heads": 2, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0}
VOCABULARY = 301


@pytest.fixture(autouse=True)
def _threads_as_before():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def make_model(seed=0, **model):
    torch.manual_seed(seed)
    made = build_model(ModelSettings(**{**SMALL, **model}), VOCABULARY).train()
    with torch.no_grad():
        for weight in made.parameters():  # norms and biases too shall be no zeros and ones
            weight.add_(torch.randn_like(weight), alpha=0.05)
    return made


def make_batch(lengths, seed=0):
    """Return a batch of pairs with these (source, target) lengths, end tokens counted."""
    random = np.random.default_rng(seed)
    src = np.full((len(lengths), max(source for source, _ in lengths)), PAD)
    tgt = np.full((len(lengths), 1 + max(target for _, target in lengths)), PAD)
    for row, (source, target) in enumerate(lengths):
        src[row, :source] = [*random.integers(4, VOCABULARY, source - 1), END]
        tgt[row, : target + 1] = [START, *random.integers(4, VOCABULARY, target - 1), END]
    return Batch(src, tgt, sum(target for _, target in lengths), np.arange(len(lengths)))


def learn_natively(kind, model, batch, seed=7, smoothing=0.1, consistency=0.0, sampler=None):
    optimizer = Adam(model, TrainingSettings())
    learner = NativeLearner(model, optimizer.weights, optimizer.gradient, smoothing, library_of(kind))
    loss = learner.learn([batch], [seed], consistency, sampler)
    learner.gather()
    return [float(part) for part in loss], optimizer.gradient


def learn_by_torch(model, batch, machine, smoothing=0.1, consistency=0.0, sampler=None):
    model = model.double()
    optimizer = Adam(model, TrainingSettings())
    loss = TorchLearner(model, smoothing, machine).learn([batch], [7], consistency, sampler)
    return [float(part) for part in loss], optimizer.gradient


def assert_same(native, torchs):
    assert native[0] == pytest.approx(torchs[0], rel=1e-5)
    assert_close(native[1].double(), torchs[1])


def assert_close(gradient, other):
    """Check that gradients are the same but for the order of sums in float32, relative to the largest."""
    torch.testing.assert_close(gradient, other, rtol=0, atol=1e-5 * float(other.abs().max()))


LENGTHS = st.lists(st.tuples(st.integers(1, 70), st.integers(1, 70)), min_size=1, max_size=12)


@each_kind
@settings(deadline=None, max_examples=8)
@given(lengths=LENGTHS, smoothing=st.sampled_from([0.0, 0.1]), threads=st.integers(1, 2), seed=st.integers(0, 10**6))
def test_loss_and_gradients_are_torchs(kind, lengths, smoothing, threads, seed, machine):
    torch.set_num_threads(threads)
    batch = make_batch(lengths, seed)
    native = learn_natively(kind, make_model(seed), batch, smoothing=smoothing)
    assert_same(native, learn_by_torch(make_model(seed), batch, machine, smoothing=smoothing))


@each_kind
@pytest.mark.parametrize(
    "model",
    [
        {"d_model": 32, "d_ff": 64, "heads": 2},
        {"d_model": 128, "heads": 4, "encoder_layers": 3, "decoder_layers": 1},
        {"d_ff": 1024},  # whose rows are laid out with a gap
        {"d_k": 16, "d_v": 48},
        {"d_k": 64, "d_v": 16},
        {"embeddings": "target"},
        {"embeddings": "separate"},
    ],
    ids=str,
)
def test_other_shapes_of_the_papers_model_are_known(kind, model, machine):
    batch = make_batch([(3, 40), (25, 2), (9, 9)])
    native = learn_natively(kind, make_model(**model), batch)
    assert_same(native, learn_by_torch(make_model(**model), batch, machine))


@each_kind
@pytest.mark.parametrize("size", [90, 250, 290, VOCABULARY])  # less than a block of the loss, and more
@pytest.mark.parametrize("consistency", [0.0, 2.0])
@pytest.mark.parametrize("model", [{}, {"embeddings": "separate"}], ids=str)
def test_a_softmax_over_some_tokens_is_torchs(kind, size, consistency, model, machine):
    torch.set_num_threads(2)
    batch = make_batch([(3, 40), (25, 2), (9, 9)])
    sampler = OutputSampler(np.arange(VOCABULARY), size)
    native = learn_natively(kind, make_model(**model), batch, consistency=consistency, sampler=sampler)
    assert_same(native, learn_by_torch(make_model(**model), batch, machine, consistency=consistency, sampler=sampler))


@each_kind
@pytest.mark.parametrize("size", [90, VOCABULARY])
def test_pairs_that_count_more_less_or_the_other_way_round_are_torchs(kind, size, machine):
    torch.set_num_threads(2)
    batch = make_batch([(3, 40), (25, 2), (9, 9), (6, 30)])._replace(factors=np.float32([0.5, -2.0, 0.0, 3.0]))
    sampler = OutputSampler(np.arange(VOCABULARY), size)
    native = learn_natively(kind, make_model(), batch, sampler=sampler)
    assert_same(native, learn_by_torch(make_model(), batch, machine, sampler=sampler))


@each_kind
def test_each_batch_has_a_sample_of_its_own_whoever_learns_from_it(kind):
    batches, sampler = [make_batch([(5, 9)], seed) for seed in range(2)], OutputSampler(np.arange(VOCABULARY), 90)
    alone = [learn_natively(kind, make_model(), batch, seed, sampler=sampler)[1] for seed, batch in enumerate(batches)]
    model = make_model()
    optimizer = Adam(model, TrainingSettings())
    learner = NativeLearner(model, optimizer.weights, optimizer.gradient, 0.1, library_of(kind))
    learner.learn(batches, range(2), 0.0, sampler)
    learner.gather()
    assert_close(optimizer.gradient, sum(alone))


@each_kind
@pytest.mark.parametrize("rows", [1, 40, 100])
def test_groups_and_threads_change_nothing_but_the_order_of_sums(kind, rows, monkeypatch):
    batch = make_batch([(5 + number % 7, 3 + number % 11) for number in range(40)])
    torch.set_num_threads(1)
    expected, gradient = learn_natively(kind, make_model(dropout=0.3), batch, consistency=2.0)
    monkeypatch.setattr(native_learner, "_ROWS", rows)
    torch.set_num_threads(3)
    found, other = learn_natively(kind, make_model(dropout=0.3), batch, consistency=2.0)
    assert found == pytest.approx(expected, rel=1e-6)
    assert_close(other, gradient)


@each_kind
def test_the_same_seed_gives_the_same_bits_and_another_does_not(kind):
    torch.set_num_threads(2)
    batch = make_batch([(8, 9), (7, 12), (3, 3)])

    def gradient(seed):
        return learn_natively(kind, make_model(dropout=0.2), batch, seed)[1]

    assert torch.equal(gradient(3), gradient(3))
    assert not torch.equal(gradient(3), gradient(4))


@each_kind
def test_what_an_earlier_batch_left_in_memory_does_not_matter(kind):
    torch.set_num_threads(2)
    small, large = make_batch([(4, 5), (6, 3)], 1), make_batch([(9 + number, 30 - number) for number in range(20)], 2)
    model = make_model(dropout=0.2)
    optimizer = Adam(model, TrainingSettings())
    learner = NativeLearner(model, optimizer.weights, optimizer.gradient, 0.1, library_of(kind))
    gradients = []
    for batch in (small, large, small, large):
        learner.learn([batch], [3], 2.0)
        learner.gather()
        gradients.append(optimizer.gradient.clone())
        optimizer.clear()
    assert torch.equal(gradients[0], gradients[2])
    assert torch.equal(gradients[1], gradients[3])


@each_kind
def test_memory_that_the_system_refuses_is_told_as_such(kind, monkeypatch):
    def refuse(*_):
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(native_learner, "mmap", refuse)
    with pytest.raises(MemoryError, match="no memory for a batch"):
        learn_natively(kind, make_model(), make_batch([(3, 3)]))


@each_kind
@pytest.mark.parametrize("calls", [1, 2], ids=["counting", "learning"])
def test_a_library_without_memory_of_its_own_learns_nothing(kind, calls):
    answers = [*[1] * (calls - 1), 0]  # floats that are needed, then what was taken; 0 for want of memory
    model = make_model()
    optimizer = Adam(model, TrainingSettings())
    library = library_of(kind)._replace(learn=lambda *_: answers.pop(0))
    learner = NativeLearner(model, optimizer.weights, optimizer.gradient, 0.1, library)
    with pytest.raises(MemoryError, match="no memory for a batch"):
        learner.learn([make_batch([(3, 3)])], [1], 0.0)
    assert not answers


@each_kind
def test_several_batches_at_once_are_as_one_after_the_other(kind):
    torch.set_num_threads(2)
    batches, seeds = [make_batch([(8, 9), (7, 12), (3, 3)], 1), make_batch([(4, 20)], 2)], [5, 6]
    model = make_model(dropout=0.2)
    optimizer = Adam(model, TrainingSettings())
    learner = NativeLearner(model, optimizer.weights, optimizer.gradient, 0.1, library_of(kind))
    together = learner.learn(batches, seeds, 2.0)
    learner.gather()
    gradient = optimizer.gradient.clone()
    optimizer.clear()
    alone = [learner.learn([batch], [seed], 2.0) for batch, seed in zip(batches, seeds, strict=True)]
    learner.gather()
    assert [float(part) for part in together] == pytest.approx(
        [float(sum(parts)) for parts in zip(*alone, strict=True)]
    )
    assert_close(gradient, optimizer.gradient)


# ---- dropout ---------------------------------------------------------------------------------------------------------


def scrambled(z):
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def drawn(seed, site, rows, width):
    """Return the random bits of rows (R,) as native/drawing.h says, (R, width)."""
    golden = np.uint64(0x9E3779B97F4A7C15)
    with np.errstate(over="ignore"):
        at_site = scrambled(np.uint64(seed) + golden * np.uint64(site + 1))
        key = scrambled(at_site + golden * (rows.astype(np.uint64) + np.uint64(1)))
        words = scrambled(key[:, None] + golden * np.arange(1, width // 4 + 1, dtype=np.uint64))
    return words.view(np.int16)


class Masks:
    """Gives torch's model, at each place where it drops something, what the library draws there."""

    def __init__(self, batch, model, seed, passes):
        self.seed, self.passes = seed, passes
        self.real = {"source": batch.src != PAD, "target": batch.tgt[:, 1:] != PAD}
        self.sites = list(_dropping_sites(model))

    def mask(self, shape, probability, dtype=torch.float32):
        side, site, expected = self.sites.pop(0)
        assert probability == expected
        real = np.tile(self.real[side], (self.passes, 1))
        is_of_words = len(shape) == 2
        width = 4 if is_of_words else shape[-1]
        bits = np.full((*real.shape, width), 32767, np.int16)  # padding is kept
        bits[real] = drawn(self.seed, site, np.arange(real.sum()), width)
        if is_of_words:
            bits = bits[..., :1]
        bound = dropout.dropped_levels(probability) - dropout.LEVELS // 2
        return torch.from_numpy(bits >= bound).to(dtype).view(shape) / (1 - probability)


def _dropping_sites(model):
    """Yield, in the order of torch's model: side, site and probability of each place where something is dropped."""
    words = 2 + sum(per_layer * len(stack.layers) for per_layer, stack in ((2, model.encoder), (3, model.decoder)))
    site, inner = 2, words + 2
    for which, (side, stack) in enumerate((("source", model.encoder), ("target", model.decoder))):
        found = [(words + which, stack.entry.word_dropout), (which, stack.entry.dropout)]
        for layer in stack.layers:
            for _ in range(1 + which):  # attention
                found.append((site, layer.self_attention_residual.dropout))
                site += 1
            found += [(inner, layer.feed_forward.dropout), (site, layer.feed_forward_residual.dropout)]
            site, inner = site + 1, inner + 1
        yield from ((side, number, place.probability) for number, place in found if place.probability)


@each_kind
@pytest.mark.parametrize("consistency", [0.0, 3.0])
@pytest.mark.parametrize(
    "probabilities",
    [
        {"dropout": 0.3},
        {"dropout": 0.0, "word_dropout": 0.4},
        {"dropout": 0.0, "activation_dropout": 0.4},
        {"dropout": 0.3, "word_dropout": 0.2, "activation_dropout": 0.1},
    ],
    ids=str,
)
def test_with_dropout_it_learns_what_torch_learns_from_the_same_draws(
    kind, probabilities, consistency, machine, monkeypatch
):
    batch = make_batch([(5, 9), (12, 3), (7, 7), (1, 30)])
    native = learn_natively(kind, make_model(**probabilities), batch, 7, consistency=consistency)
    model = make_model(**probabilities)
    masks = Masks(batch, model, seed=7, passes=2 if consistency else 1)
    monkeypatch.setattr(dropout, "dropout_mask", masks.mask)
    assert_same(native, learn_by_torch(model, batch, machine, consistency=consistency))
    assert masks.sites == []
    assert (native[0][0] > native[0][1] + 0.01) == bool(consistency)  # the passes did disagree


def test_as_much_is_dropped_as_was_asked_for_evenly_and_without_pattern():
    bits = drawn(seed=1, site=3, rows=np.arange(1000), width=512)
    dropped = bits < dropout.dropped_levels(0.3) - dropout.LEVELS // 2
    deviation = (0.3 * 0.7 / dropped.size) ** 0.5
    assert abs(dropped.mean() - 0.3) < 5 * deviation
    for axis in (0, 1):  # neighbours, in a row and across rows, agree as often as chance says
        first, second = np.delete(dropped, 0, axis), np.delete(dropped, -1, axis)
        assert abs((first & second).mean() - 0.09) < 5 * deviation
    assert abs((dropped & (drawn(2, 3, np.arange(1000), 512) < -13107)).mean() - 0.09) < 5 * deviation


# ---- what goes wrong, and what is left to torch ----------------------------------------------------------------------


@each_kind
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_show_in_the_loss(kind, bad):
    model = make_model()
    with torch.no_grad():
        model.decoder.layers[1].feed_forward.inner.weight[3, 5] = bad
    assert not np.isfinite(learn_natively(kind, model, make_batch([(4, 4), (3, 3)]))[0]).any()


@pytest.mark.parametrize(
    "model",
    [
        {"norm": "pre"},
        {"activation": "gelu"},
        {"attention_bias": True},
        {"positions": "learned"},
        {"neighbours": 4},
        {"attention_dropout": 0.1},
        {"d_model": 48},
        {"d_ff": 100},
    ],
    ids=str,
)
def test_what_the_library_does_not_know_torch_learns(model, machine):
    made = make_model(**model)
    assert not can_learn(made, FOUND)
    assert isinstance(choose_learner(made, Adam(made, TrainingSettings()), 0.1, machine), TorchLearner)


def test_the_papers_model_is_known(machine):
    model = make_model()
    assert native_library_for(model, machine) is FOUND
    assert isinstance(choose_learner(model, Adam(model, TrainingSettings()), 0.1, machine), NativeLearner)
