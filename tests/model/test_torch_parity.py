"""The same numbers as torch.nn.Transformer with the same weights."""

import pytest
import torch
from torch import nn

from regard.tokens import PAD

CLOSE = 1e-10  # float64: the sums run in another order


def copy_attention(ours, theirs):
    """Copy torch's packed W^Q, W^K, W^V and W^O into a self-attention or a cross-attention."""
    if hasattr(ours, "query_key_value"):
        ours.query_key_value.weight.copy_(theirs.in_proj_weight)
        ours.query_key_value.bias.copy_(theirs.in_proj_bias)
    else:
        width = theirs.embed_dim
        ours.query.weight.copy_(theirs.in_proj_weight[:width])
        ours.query.bias.copy_(theirs.in_proj_bias[:width])
        ours.key_value.weight.copy_(theirs.in_proj_weight[width:])
        ours.key_value.bias.copy_(theirs.in_proj_bias[width:])
    ours.output.load_state_dict(theirs.out_proj.state_dict())


@torch.no_grad()
def copy_weights(ours, theirs):
    for mine, other in zip(ours.encoder.layers, theirs.encoder.layers, strict=True):
        copy_attention(mine.self_attention, other.self_attn)
        mine.self_attention_residual.layer_norm.load_state_dict(other.norm1.state_dict())
        mine.feed_forward.inner.load_state_dict(other.linear1.state_dict())
        mine.feed_forward.outer.load_state_dict(other.linear2.state_dict())
        mine.feed_forward_residual.layer_norm.load_state_dict(other.norm2.state_dict())
    for mine, other in zip(ours.decoder.layers, theirs.decoder.layers, strict=True):
        copy_attention(mine.self_attention, other.self_attn)
        mine.self_attention_residual.layer_norm.load_state_dict(other.norm1.state_dict())
        copy_attention(mine.cross_attention, other.multihead_attn)
        mine.cross_attention_residual.layer_norm.load_state_dict(other.norm2.state_dict())
        mine.feed_forward.inner.load_state_dict(other.linear1.state_dict())
        mine.feed_forward.outer.load_state_dict(other.linear2.state_dict())
        mine.feed_forward_residual.layer_norm.load_state_dict(other.norm3.state_dict())
    for mine, other in [(ours.encoder, theirs.encoder), (ours.decoder, theirs.decoder)]:
        if isinstance(mine.norm, nn.LayerNorm):
            mine.norm.load_state_dict(other.norm.state_dict())
        else:
            other.norm = None  # torch normalises once more after the last layer; the paper does not


def torchs_transformer(activation, norm):
    torch.manual_seed(0)
    theirs = nn.Transformer(
        d_model=16,
        nhead=4,
        num_encoder_layers=2,
        num_decoder_layers=3,
        dim_feedforward=32,
        dropout=0.0,
        activation=activation,
        batch_first=True,
        norm_first=norm == "pre",
        dtype=torch.float64,
    )
    for weight in theirs.parameters():  # gains and biases too
        nn.init.normal_(weight, std=0.3)
    return theirs  # in training mode: without torch's shortcut for inference, which leaves padded positions out


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True:UserWarning")  # torch's own default, with norm_first
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("padded", [False, True])
def test_encoder_and_decoder_give_torchs_numbers(tiny_model, random_source, activation, norm, padded):
    theirs = torchs_transformer(activation, norm)
    ours = tiny_model(norm=norm, activation=activation, attention_bias=True, decoder_layers=3).double()
    copy_weights(ours, theirs)
    src = random_source([7, 4, 2] if padded else [7, 7, 7])
    tgt = random_source([5, 6, 1] if padded else [6, 6, 6], seed=1)

    memory = ours.encode(src)
    hidden = ours.decoder(tgt, memory)

    later = ~torch.ones(6, 6, dtype=torch.bool).tril()
    padding = src == PAD if padded else None
    torchs_memory = theirs.encoder(ours.encoder.entry(src), src_key_padding_mask=padding)
    torchs_hidden = theirs.decoder(
        ours.decoder.entry(tgt), torchs_memory, tgt_mask=later, memory_key_padding_mask=padding
    )
    torch.testing.assert_close(memory.hidden, torchs_memory, atol=CLOSE, rtol=0)
    torch.testing.assert_close(hidden, torchs_hidden, atol=CLOSE, rtol=0)


def test_gradients_are_torchs(tiny_model, random_source):
    theirs = torchs_transformer("relu", "post")
    ours = tiny_model(attention_bias=True, decoder_layers=3).double()
    copy_weights(ours, theirs)
    src, tgt = random_source([7, 4]), random_source([5, 6], seed=1)
    pattern = torch.randn(2, 6, 16, dtype=torch.float64)

    (ours(src, tgt) * pattern).sum().backward()
    inputs = ours.encoder.entry(src).detach(), ours.decoder.entry(tgt).detach()
    later = ~torch.ones(6, 6, dtype=torch.bool).tril()
    out = theirs(*inputs, tgt_mask=later, src_key_padding_mask=src == PAD, memory_key_padding_mask=src == PAD)
    (out * pattern).sum().backward()

    for mine, other in zip(ours.encoder.layers, theirs.encoder.layers, strict=True):
        torch.testing.assert_close(
            mine.self_attention.query_key_value.weight.grad, other.self_attn.in_proj_weight.grad, atol=CLOSE, rtol=CLOSE
        )
        torch.testing.assert_close(mine.feed_forward.inner.bias.grad, other.linear1.bias.grad, atol=CLOSE, rtol=CLOSE)
    for mine, other in zip(ours.decoder.layers, theirs.decoder.layers, strict=True):
        cross = torch.cat([mine.cross_attention.query.weight.grad, mine.cross_attention.key_value.weight.grad])
        torch.testing.assert_close(cross, other.multihead_attn.in_proj_weight.grad, atol=CLOSE, rtol=CLOSE)
        torch.testing.assert_close(
            mine.feed_forward_residual.layer_norm.weight.grad, other.norm3.weight.grad, atol=CLOSE, rtol=CLOSE
        )
