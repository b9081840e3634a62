"""Hugging Face's Marian, the paper's Transformer in the library `transformers`, with random weights or those of all."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from transformers import MarianConfig, MarianMTModel

from comparison.corpus import END
from comparison.job import Job

PAD, START = 0, 2


def make_model(job: Job) -> MarianMTModel:
    """Return a Marian of the job's shape with random weights."""
    shape = job.shape
    config = MarianConfig(
        vocab_size=shape.vocabulary,
        decoder_vocab_size=shape.vocabulary,
        d_model=shape.d_model,
        encoder_layers=shape.layers,
        decoder_layers=shape.layers,
        encoder_attention_heads=shape.heads,
        decoder_attention_heads=shape.heads,
        encoder_ffn_dim=shape.d_ff,
        decoder_ffn_dim=shape.d_ff,
        activation_function="relu",
        max_position_embeddings=512,
        scale_embedding=True,
        share_encoder_decoder_embeddings=True,
        tie_word_embeddings=True,
        pad_token_id=PAD,
        decoder_start_token_id=START,
        bos_token_id=START,
        eos_token_id=END,
        forced_eos_token_id=None,  # or the last step would write an end whatever the model says
        dropout=shape.dropout,
        attention_dropout=0.0,  # the paper has dropout on sub-layers' outputs and on embeddings only
        activation_dropout=0.0,
    )
    return MarianMTModel(config)


@torch.no_grad()
def load_weights(model: MarianMTModel, job: Job) -> None:
    """Copy the weights that all toolkits translate with.

    Marian's positions have all sines first and then all cosines. So the vectors' elements are put into that order
    wherever one is read or written; the model computes the same.
    """
    weights = np.load(job.material("weights.npz"))
    order = np.r_[0 : job.shape.d_model : 2, 1 : job.shape.d_model : 2]

    def take(name: str, reads: bool = False, writes: bool = False) -> torch.Tensor:
        array = weights[name]
        array = array[order] if writes else array
        return torch.from_numpy(array[:, order] if reads else array)

    def fill_attention(attention: Any, joined: Sequence[str], output: str) -> None:
        rows = torch.cat([take(name, reads=True) for name in joined])
        for linear, part in zip((attention.q_proj, attention.k_proj, attention.v_proj), rows.chunk(3), strict=True):
            linear.weight.copy_(part)
            linear.bias.zero_()
        attention.out_proj.weight.copy_(take(output, writes=True))
        attention.out_proj.bias.zero_()

    def fill_norm(norm: Any, name: str) -> None:
        norm.weight.copy_(take(f"{name}.layer_norm.weight", writes=True))
        norm.bias.copy_(take(f"{name}.layer_norm.bias", writes=True))

    model.get_encoder().embed_tokens.weight.copy_(take("encoder.entry.embedding.weight", reads=True))
    for side, stack in (("encoder", model.get_encoder()), ("decoder", model.get_decoder())):
        for number, layer in enumerate(stack.layers):
            name = f"{side}.stack.{number}"
            own = f"{name}.self_attention"
            fill_attention(layer.self_attn, [f"{own}.query_key_value.weight"], f"{own}.output.weight")
            fill_norm(layer.self_attn_layer_norm, f"{own}_residual")
            if side == "decoder":
                cross = f"{name}.cross_attention"
                joined = [f"{cross}.query.weight", f"{cross}.key_value.weight"]
                fill_attention(layer.encoder_attn, joined, f"{cross}.output.weight")
                fill_norm(layer.encoder_attn_layer_norm, f"{cross}_residual")
            layer.fc1.weight.copy_(take(f"{name}.feed_forward.inner.weight", reads=True))
            layer.fc1.bias.copy_(take(f"{name}.feed_forward.inner.bias"))
            layer.fc2.weight.copy_(take(f"{name}.feed_forward.outer.weight", writes=True))
            layer.fc2.bias.copy_(take(f"{name}.feed_forward.outer.bias", writes=True))
            fill_norm(layer.final_layer_norm, f"{name}.feed_forward_residual")
