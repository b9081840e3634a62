"""Looking in: what is shown is what the model does."""

import pytest
import torch

from regard.model.attention import join_heads, split_heads
from regard.model.observe import observe_attention, observe_cross_attention
from regard.tokens import PAD

CLOSE = 1e-6  # float32, weights between 0 and 1


@pytest.fixture(params=[None, 4], ids=["full", "neighbours"])
def model(request, tiny_model):
    return tiny_model(neighbours=request.param, encoder_layers=3)


@pytest.fixture
def pair(random_source):
    return random_source([7, 4, 2]), random_source([5, 6, 3], seed=1)


def test_there_is_a_matrix_for_each_layer_and_head(model, pair):
    seen = observe_attention(model, *pair)
    assert [tuple(weights.shape) for weights in seen.encoder] == [(3, 4, 7, 7)] * 3
    assert [tuple(weights.shape) for weights in seen.decoder] == [(3, 4, 6, 6)] * 2
    assert [tuple(weights.shape) for weights in seen.cross] == [(3, 4, 6, 7)] * 2


def test_each_row_is_a_distribution(model, pair):
    seen = observe_attention(model, *pair)
    real = (pair[0] != PAD)[:, None, :].expand(-1, 4, -1)  # a padded position may see nobody: all its neighbours are
    for weights in seen.encoder:
        assert (weights >= 0).all()
        torch.testing.assert_close(weights.sum(dim=-1)[real], torch.ones(int(real.sum())), atol=CLOSE, rtol=0)
    for weights in [*seen.decoder, *seen.cross]:
        assert (weights >= 0).all()
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones(3, 4, 6), atol=CLOSE, rtol=0)


def test_nobody_looks_at_padding_and_the_decoder_never_looks_ahead(model, pair):
    src, _ = pair
    seen = observe_attention(model, *pair)
    for weights in [*seen.encoder, *seen.cross]:
        assert not weights.transpose(1, 3)[src == PAD].any()
    for weights in seen.decoder:
        assert not weights.triu(1).any()


def test_neighbours_are_all_that_is_looked_at(tiny_model, pair):
    seen = observe_attention(tiny_model(neighbours=4), *pair)
    far = (torch.arange(7)[:, None] - torch.arange(7)).abs() > 2
    assert all(not weights[..., far].any() for weights in seen.encoder)


@torch.no_grad()
def test_the_weights_shown_give_the_output_that_the_model_computes(model, pair):
    outputs = {}
    modules = {
        "encoder": model.encoder.layers[1].self_attention,
        "decoder": model.decoder.layers[1].self_attention,
        "cross": model.decoder.layers[1].cross_attention,
    }
    for name, module in modules.items():
        module.register_forward_hook(lambda _, inputs, output, name=name: outputs.update({name: (inputs, output)}))
    seen = observe_attention(model, *pair)
    for name, module in modules.items():
        (x, *rest), output = outputs[name]
        values = rest[0].values if name == "cross" else module.project(x)[2]
        mixed = getattr(seen, name)[1] @ values
        torch.testing.assert_close(module.output(join_heads(mixed)), output, atol=CLOSE, rtol=0)


@pytest.mark.parametrize("layers", [[0], [1], [0, 1]])
def test_cross_attention_is_the_mean_of_all_heads_of_the_layers(model, pair, layers):
    seen = observe_attention(model, *pair)
    mean = observe_cross_attention(model, *pair, layers)
    assert mean.shape == (3, 6, 7)
    torch.testing.assert_close(mean, torch.cat([seen.cross[layer] for layer in layers], dim=1).mean(dim=1))


def test_the_weights_are_computed_from_queries_and_keys_by_the_formula(tiny_model, random_source):
    model = tiny_model(encoder_layers=1)
    src = random_source([5])
    attention = model.encoder.layers[0].self_attention
    x = model.encoder.entry(src)
    queries, keys = (split_heads(x @ part.T, 4) for part in attention.query_key_value.weight.split(16)[:2])
    expected = (queries @ keys.mT / 4**0.5).softmax(dim=-1)
    torch.testing.assert_close(observe_attention(model, src, src).encoder[0], expected, atol=CLOSE, rtol=0)


def test_looking_in_leaves_no_trace(model, pair):
    before = model(*pair)
    observe_attention(model, *pair)
    assert torch.equal(model(*pair), before)
    assert not any(module._forward_pre_hooks for module in model.modules())
