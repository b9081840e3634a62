"""Layers (§3.1, §3.3): the residual formulas, sub-layer by sub-layer."""

import pytest
import torch
from torch.nn import functional as F

from regard.model.layers import DecoderLayer, EncoderLayer, FeedForward, LayerShape, Residual

EXACT = 1e-12  # float64


def shape(**options):
    return LayerShape(**{"d_model": 8, "d_ff": 12, "heads": 2, "d_k": 4, "d_v": 3, "dropout": 0.0, **options})


def shaken(layer, seed=0):
    """The same layer in float64 with all weights random, so that gains and biases count too."""
    generator = torch.Generator().manual_seed(seed)
    for weight in layer.double().parameters():
        weight.data.copy_(torch.randn(weight.shape, generator=generator, dtype=torch.float64) * 0.5)
    return layer


def random(*sizes, seed=1):
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def norm(block, x):
    """LayerNorm written out: mean and variance over the width, gain and bias."""
    mean, variance = x.mean(dim=-1, keepdim=True), x.var(dim=-1, keepdim=True, unbiased=False)
    return (x - mean) / (variance + 1e-5).sqrt() * block.layer_norm.weight + block.layer_norm.bias


@pytest.mark.parametrize("activation", ["relu", "gelu", "swish"])
def test_the_feed_forward_network_is_two_maps_with_an_activation_between(activation):
    network = shaken(FeedForward(8, 12, activation))
    x = random(2, 5, 8)
    inner = x @ network.inner.weight.T + network.inner.bias
    formula = {
        "relu": inner.clamp(min=0),
        "gelu": inner * 0.5 * (1 + torch.erf(inner / 2**0.5)),
        "swish": inner / (1 + torch.exp(-inner)),
    }[activation]
    expected = formula @ network.outer.weight.T + network.outer.bias
    torch.testing.assert_close(network(x), expected, atol=EXACT, rtol=0)


def test_post_norm_is_the_papers_formula():
    block = shaken(Residual(8, dropout=0.0, norm="post"))
    x, change = random(2, 5, 8), random(2, 5, 8, seed=2)
    assert block.enter(x) is x
    torch.testing.assert_close(block.leave(x, change), norm(block, x + change), atol=EXACT, rtol=0)


def test_pre_norm_normalises_what_the_sub_layer_reads():
    block = shaken(Residual(8, dropout=0.0, norm="pre"))
    x, change = random(2, 5, 8), random(2, 5, 8, seed=2)
    torch.testing.assert_close(block.enter(x), norm(block, x), atol=EXACT, rtol=0)
    assert torch.equal(block.leave(x, change), x + change)


def test_dropout_falls_on_the_sub_layers_output_alone():
    block = Residual(512, dropout=0.5, norm="pre")  # pre-norm: the sum comes out as it is
    x = torch.full((4, 512), 100.0)
    out = block.leave(x, torch.ones(4, 512))
    assert set(out.unique().tolist()) == {100.0, 102.0}


@pytest.mark.parametrize("order", ["post", "pre"])
def test_an_encoder_layer_is_self_attention_then_feed_forward(order):
    layer = shaken(EncoderLayer(shape(norm=order)))
    x = random(2, 5, 8)
    mask = torch.ones(2, 1, 1, 5, dtype=torch.bool)
    mask[1, ..., 3:] = False
    expected = x
    for block, sublayer in [
        (layer.self_attention_residual, lambda y: layer.self_attention(y, mask)),
        (layer.feed_forward_residual, layer.feed_forward),
    ]:
        if order == "post":
            expected = norm(block, expected + sublayer(expected))
        else:
            expected = expected + sublayer(norm(block, expected))
    torch.testing.assert_close(layer(x, mask), expected, atol=EXACT, rtol=0)


@pytest.mark.parametrize("order", ["post", "pre"])
def test_a_decoder_layer_looks_back_then_at_the_source_then_thinks(order):
    layer = shaken(DecoderLayer(shape(norm=order)))
    x, memory = random(2, 4, 8), random(2, 5, 8, seed=2)
    mask = torch.ones(2, 1, 1, 5, dtype=torch.bool)
    mask[1, ..., 3:] = False
    source = layer.cross_attention.project_memory(memory)
    expected = x
    for block, sublayer in [
        (layer.self_attention_residual, lambda y: layer.self_attention(y, causal=True)),
        (layer.cross_attention_residual, lambda y: layer.cross_attention(y, source, mask)),
        (layer.feed_forward_residual, layer.feed_forward),
    ]:
        if order == "post":
            expected = norm(block, expected + sublayer(expected))
        else:
            expected = expected + sublayer(norm(block, expected))
    out = layer(x, memory, mask)
    assert out.shape == (2, 4, 8)
    torch.testing.assert_close(out, expected, atol=EXACT, rtol=0)


def test_a_post_norm_layers_output_is_normalised():
    layer = EncoderLayer(shape())
    out = layer(torch.randn(3, 4, 8) * 7, None)
    torch.testing.assert_close(out, F.layer_norm(out, (8,)), atol=1e-4, rtol=0)  # 1e-5 inside the root, twice


def test_dropout_inside_the_feed_forward_network_falls_behind_the_activation():
    torch.manual_seed(1)
    network = FeedForward(4, 50, "relu", dropout=0.5)
    inner: list[torch.Tensor] = []
    network.outer.register_forward_pre_hook(lambda _, given: inner.append(given[0]))
    x = torch.randn(3, 4)
    network.train()(x)
    network.eval()(x)
    kept = inner[0] != 0
    assert torch.equal(inner[0], 2 * inner[1] * kept)
    assert 0.2 < kept[inner[1] > 0].float().mean() < 0.8


@pytest.mark.parametrize("layer", [EncoderLayer, DecoderLayer])
def test_a_gain_scales_the_first_weights_of_what_is_added_and_nothing_else(layer):
    def made(**options):
        torch.manual_seed(5)
        return dict(layer(shape(attention_bias=True, **options)).named_parameters())

    usual, small = made(), made(initial_gain=0.25)
    added = {name for name in usual if name.rpartition(".")[0].endswith(("attention.output", "feed_forward.outer"))}
    assert len(added) == (4 if layer is EncoderLayer else 6)
    assert all(torch.equal(small[name], usual[name] * (0.25 if name in added else 1)) for name in usual)
