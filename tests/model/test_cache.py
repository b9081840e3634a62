"""Decoding step by step: the same numbers as all at once, at the cost of one position a step."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.model.cache import DecoderState
from regard.search.beam import beam_search
from regard.tokens import START

EXACT = 1e-10  # float64: the sums run in another order
VOCABULARY = 13


def uncached_scores(model, src, prefixes):
    """Log-probabilities of what follows each prefix (B, K, T), computed from the beginning: (B, K, V)."""
    batch, beams, length = prefixes.shape
    hidden = model(src.repeat_interleave(beams, dim=0), prefixes.reshape(batch * beams, length))
    return model.output.log_probabilities(hidden[:, -1]).view(batch, beams, -1)


def choose_parents(draw, batch, beams):
    """Some of the sentences in their order, at least one, and K' parents for each, the same one twice if it comes so.

    Returns the sentences chosen (B',) and the parents (B', K') as rows of the old B·K.
    """
    sentences = sorted(draw(st.sets(st.integers(0, batch - 1), min_size=1, max_size=batch)))
    width = draw(st.integers(1, 3))
    chosen = [[row * beams + draw(st.integers(0, beams - 1)) for _ in range(width)] for row in sentences]
    return torch.tensor(sentences), torch.tensor(chosen)


@pytest.mark.parametrize(
    "options",
    [{}, {"norm": "pre"}, {"neighbours": 4}, {"positions": "learned", "max_positions": 4}, {"d_k": 3, "d_v": 5}],
    ids=str,
)
@settings(max_examples=15)
@given(data=st.data())
@torch.no_grad()
def test_cached_equals_uncached_at_every_step_whatever_survives(tiny_model, random_source, options, data):
    model = tiny_model(**options).double()
    src = random_source([7, 2, 5, 4])
    prefixes = torch.full((4, 1, 1), START)
    state = model.start(model.encode(src))
    for _ in range(6):
        scores, state = model.step(state, prefixes[:, :, -1])
        torch.testing.assert_close(scores, uncached_scores(model, src, prefixes), atol=EXACT, rtol=0)

        batch, beams, length = prefixes.shape
        sentences, parents = choose_parents(data.draw, batch, beams)
        state, src = state.select(parents), src[sentences]
        old = prefixes.view(batch * beams, length)[parents]  # (B', K', T)
        newest = data.draw(st.lists(st.integers(4, VOCABULARY - 1), min_size=parents.numel(), max_size=parents.numel()))
        prefixes = torch.cat([old, torch.tensor(newest).view(*parents.shape, 1)], dim=2)


def test_the_source_is_held_once_a_sentence_however_many_hypotheses_look_at_it(tiny_model, random_source):
    model = tiny_model()
    state = model.start(model.encode(random_source([5, 3, 4])))
    _, state = model.step(state, torch.full((3, 1), START))
    wide = state.select(torch.tensor([[0] * 7, [1] * 7, [2] * 7]))
    assert all(ours is before for ours, before in zip(wide.source, state.source, strict=True))  # not even copied
    _, wide = model.step(wide, torch.full((3, 7), 5))
    assert {layer.keys.size(0) for layer in wide.source} == {3}
    assert {layer.buffers.keys.size(0) for layer in wide.past} == {3 * 7}
    fewer = wide.select(torch.tensor([[0, 3], [14, 14]]))
    assert {layer.values.size(0) for layer in fewer.source} == {2}
    assert fewer.mask.size(0) == 2


def test_a_selection_of_everything_in_order_copies_nothing(tiny_model, random_source):
    model = tiny_model()
    _, state = model.step(model.start(model.encode(random_source([5, 3]))), torch.full((2, 1), START))
    same = state.select(torch.tensor([[0], [1]]))
    assert all(new is old for new, old in zip(same.past, state.past, strict=True))
    swapped = state.select(torch.tensor([[1], [0]]))
    assert torch.equal(swapped.past[0].last()[0], state.past[0].last()[0][[1, 0]])
    assert torch.equal(swapped.source[0].keys, state.source[0].keys[[1, 0]])


def test_a_step_leaves_the_state_before_it_as_it_was(tiny_model, random_source):
    model = tiny_model()
    before = model.start(model.encode(random_source([5, 3])))
    first, after = model.step(before, torch.full((2, 1), START))
    again, _ = model.step(before, torch.full((2, 1), START))
    assert isinstance(after, DecoderState)
    assert (before.position, after.position) == (0, 1)
    assert torch.equal(first, again)
    one, _ = model.step(after, torch.tensor([[5], [6]]))
    other, _ = model.step(after, torch.tensor([[7], [8]]))
    assert torch.equal(one, model.step(after, torch.tensor([[5], [6]]))[0])
    assert not torch.equal(one, other)


def test_in_search_the_decoder_sees_one_position_a_step_and_the_source_once(tiny_model, random_source, monkeypatch):
    model = tiny_model(decoder_layers=3)
    positions, thinking, source = [], [], []
    for layer in model.decoder.layers:
        for module, shapes in [
            (layer.self_attention.query_key_value, positions),
            (layer.feed_forward, thinking),
            (layer.cross_attention.key_value, source),
        ]:
            module.register_forward_pre_hook(lambda _, inputs, shapes=shapes: shapes.append(tuple(inputs[0].shape)))
    steps = []
    step = model.step
    monkeypatch.setattr(
        model, "step", lambda state, tokens: (steps.append(tuple(tokens.shape)), step(state, tokens))[1]
    )

    beam_search(model, random_source([6, 4]), torch.tensor([9, 9]), beam=4, alpha=0.6)

    assert len(steps) > 1
    assert positions == [(batch * beams, 1, 16) for batch, beams in steps for _ in range(3)]  # 3 layers
    assert thinking == [(batch, beams, 16) for batch, beams in steps for _ in range(3)]
    assert source == [(2, 6, 16)] * 3
