"""The same numbers as Hugging Face's Marian with the same weights, up to its greedy translations.

Marian is the paper's Transformer with biases everywhere, activations of choice, and sines and cosines in two halves
instead of in turn.
"""

import pytest
import torch
from torch import nn
from transformers import MarianConfig, MarianMTModel

from regard.model.positions import sinusoids
from regard.search.greedy import greedy_search
from regard.search.hypothesis import NEVER
from regard.tokens import END, PAD, START

CLOSE = 1e-5  # float32, hidden states and logits of size 1 to 10
VOCABULARY = 13


def marian(shared, activation):
    torch.manual_seed(0)
    config = MarianConfig(
        vocab_size=VOCABULARY,
        decoder_vocab_size=VOCABULARY,
        d_model=16,
        encoder_layers=2,
        decoder_layers=3,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        activation_function=activation,
        max_position_embeddings=64,
        scale_embedding=True,
        share_encoder_decoder_embeddings=shared,
        tie_word_embeddings=True,
        pad_token_id=PAD,
        decoder_start_token_id=START,
        bos_token_id=START,
        eos_token_id=END,
        forced_eos_token_id=END,
        dropout=0.0,
        attention_dropout=0.0,
        activation_dropout=0.0,
    )
    model = MarianMTModel(config).eval()
    for name, weight in model.named_parameters():
        if "embed_positions" not in name:  # large matrices and small biases: translations that differ
            nn.init.normal_(weight, mean=float("norm.weight" in name), std=0.6 if weight.dim() == 2 else 0.1)
    return model


@torch.no_grad()
def copy_attention(ours, theirs):
    projections = [theirs.q_proj, theirs.k_proj, theirs.v_proj]
    maps = [ours.query_key_value] if hasattr(ours, "query_key_value") else [ours.query, ours.key_value]
    for kind in ("weight", "bias"):
        joined = torch.cat([getattr(projection, kind) for projection in projections])
        sizes = [getattr(linear, kind).size(0) for linear in maps]
        for linear, part in zip(maps, joined.split(sizes), strict=True):
            getattr(linear, kind).copy_(part)
    ours.output.load_state_dict(theirs.out_proj.state_dict())


@torch.no_grad()
def copy_weights(ours, theirs):
    encoder, decoder = theirs.get_encoder(), theirs.get_decoder()
    for stack, other in [(ours.encoder, encoder), (ours.decoder, decoder)]:
        stack.entry.embedding.weight.copy_(other.embed_tokens.weight)
        table = sinusoids(64, 16)
        stack.entry.positions.table = torch.cat([table[:, 0::2], table[:, 1::2]], dim=1)  # [sin | cos]
        for mine, layer in zip(stack.layers, other.layers, strict=True):
            copy_attention(mine.self_attention, layer.self_attn)
            mine.self_attention_residual.layer_norm.load_state_dict(layer.self_attn_layer_norm.state_dict())
            mine.feed_forward.inner.load_state_dict(layer.fc1.state_dict())
            mine.feed_forward.outer.load_state_dict(layer.fc2.state_dict())
            mine.feed_forward_residual.layer_norm.load_state_dict(layer.final_layer_norm.state_dict())
            if hasattr(layer, "encoder_attn"):
                copy_attention(mine.cross_attention, layer.encoder_attn)
                mine.cross_attention_residual.layer_norm.load_state_dict(layer.encoder_attn_layer_norm.state_dict())


@pytest.fixture(params=[(True, "relu"), (False, "swish"), (True, "gelu")], ids=str)
def both(request, tiny_model):
    """One of ours and one of Marian's with the same weights."""
    shared, activation = request.param
    theirs = marian(shared, activation)
    ours = tiny_model(
        vocabulary=VOCABULARY,
        decoder_layers=3,
        attention_bias=True,
        activation=activation,
        embeddings="shared" if shared else "target",
    )
    copy_weights(ours, theirs)
    return ours, theirs


def test_marians_position_table_is_the_papers_in_two_halves(both):
    ours, theirs = both
    table = theirs.get_encoder().embed_positions.weight
    torch.testing.assert_close(table, ours.encoder.entry.positions.table, atol=1e-6, rtol=0)


@torch.no_grad()
def test_hidden_states_and_logits_are_marians(both, random_source):
    ours, theirs = both
    src, tgt = random_source([7, 4, 2]), random_source([5, 6, 1], seed=1)
    tgt = torch.cat([torch.full((3, 1), START), tgt[:, :-1]], dim=1)  # shifted right

    memory = ours.encode(src)
    hidden = ours.decoder(tgt, memory)
    expected = theirs(input_ids=src, attention_mask=src != PAD, decoder_input_ids=tgt, output_hidden_states=True)

    real = src != PAD
    torch.testing.assert_close(memory.hidden[real], expected.encoder_last_hidden_state[real], atol=CLOSE, rtol=0)
    torch.testing.assert_close(hidden, expected.decoder_hidden_states[-1], atol=CLOSE, rtol=0)
    torch.testing.assert_close(ours.output(hidden), expected.logits, atol=CLOSE, rtol=CLOSE)


def test_greedy_translations_are_marians(both, random_source):
    ours, theirs = both
    src = random_source([7, 4, 2, 9, 5, 1])

    found = greedy_search(ours, src, torch.full((6,), 12))
    generated = theirs.generate(
        input_ids=src,
        attention_mask=(src != PAD).long(),
        max_length=13,  # Marian counts its start token
        num_beams=1,
        do_sample=False,
        suppress_tokens=list(NEVER),
    )

    theirs_found = [tuple(row[: row.index(END) + 1]) for row in generated[:, 1:].tolist()]
    assert [one.tokens for one in found] == theirs_found
    assert len(set(theirs_found)) > 1
