"""Embeddings and the output layer (§3.4), and how weights begin."""

import math

import pytest
import torch
from torch import nn

from regard.model.embedding import Embedding, InputLayer, OutputLayer
from regard.model.initial import embedding_matrix, glorot
from regard.model.positions import SinusoidalPositions, sinusoids


def test_an_embedding_is_a_row_times_the_root_of_the_width():
    embedding = Embedding(10, 16)
    out = embedding(torch.tensor([[3, 7], [7, 0]]))
    assert out.shape == (2, 2, 16)
    assert torch.equal(out[0, 1], embedding.weight[7] * 4)
    assert torch.equal(out[1, 0], out[0, 1])


def test_the_input_layer_adds_positions_from_where_it_is_told():
    layer = InputLayer(Embedding(10, 16), SinusoidalPositions(16), dropout=0.0)
    tokens = torch.tensor([[3, 7]])
    assert torch.equal(layer(tokens), layer.embedding(tokens) + sinusoids(2, 16))
    assert torch.equal(layer(tokens[:, 1:], start=1), layer(tokens)[:, 1:])


def test_dropout_falls_on_the_sum_of_embedding_and_position():
    layer = InputLayer(Embedding(10, 512), SinusoidalPositions(512), dropout=0.5)
    tokens = torch.tensor([[3, 7, 3]])
    out, whole = layer(tokens), layer.eval()(tokens)
    kept = out != 0
    assert 0.3 < kept.float().mean() < 0.7
    torch.testing.assert_close(out[kept], 2 * whole[kept])


def test_the_output_layer_is_a_product_with_the_embedding_matrix_and_has_no_bias():
    embedding = Embedding(10, 16)
    output = OutputLayer(embedding, 10, 16)
    hidden = torch.randn(2, 3, 16)
    assert output.weight is embedding.weight
    assert [name for name, _ in output.named_parameters()] == ["weight"]
    torch.testing.assert_close(output(hidden), hidden @ embedding.weight.T)  # not scaled on the way out
    torch.testing.assert_close(output.log_probabilities(hidden), output(hidden).log_softmax(dim=-1))


@pytest.mark.parametrize(
    ("given", "expected"),
    [(torch.bfloat16, torch.float32), (torch.float32, torch.float32), (torch.float64, torch.float64)],
    ids=str,
)
def test_log_probabilities_are_never_less_than_single_precision(given, expected):
    output = OutputLayer(None, 10, 16).to(given)
    assert output.log_probabilities(torch.randn(3, 16, dtype=given)).dtype == expected


@pytest.mark.parametrize(
    ("embeddings", "source_is_target", "output_is_target"),
    [("shared", True, True), ("target", False, True), ("separate", False, False)],
)
def test_embeddings_are_shared_as_the_setting_says(tiny_model, embeddings, source_is_target, output_is_target):
    model = tiny_model(embeddings=embeddings)
    source, target = model.encoder.entry.embedding.weight, model.decoder.entry.embedding.weight
    assert (source is target) == source_is_target
    assert (model.output.weight is target) == output_is_target
    assert model.output.weight is not source or source_is_target
    matrices = [weight for weight in model.parameters() if weight.shape == source.shape]
    assert len(matrices) == {"shared": 1, "target": 2, "separate": 3}[embeddings]


def test_a_shared_matrix_learns_from_all_its_three_uses(tiny_model):
    model = tiny_model(vocabulary=13)
    hidden = model(torch.tensor([[5, 3]]), torch.tensor([[2, 6]]))
    model.output(hidden)[0, 0, 7].backward()
    touched = model.output.weight.grad.abs().sum(dim=1) > 0
    assert touched.nonzero().flatten().tolist() == [2, 3, 5, 7]  # target, source, source, output


def test_embeddings_begin_with_variance_one_over_the_width():
    torch.manual_seed(0)
    matrix = embedding_matrix(2000, 64)
    assert matrix.std().item() == pytest.approx(1 / 8, rel=0.02)  # 128,000 draws: a standard deviation is 0.2 %
    assert Embedding(2000, 64)(torch.arange(2000)).std().item() == pytest.approx(1, rel=0.02)


def test_maps_that_share_a_matrix_are_each_drawn_within_glorots_bound():
    torch.manual_seed(0)
    linear = glorot(nn.Linear(64, 64 + 256), [64, 256])
    for part, width in zip(linear.weight.split([64, 256]), [64, 256], strict=True):
        bound = math.sqrt(6 / (64 + width))
        assert 0.98 * bound < part.abs().max() <= bound
        assert part.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.03)
    assert not linear.bias.any()
    assert linear.weight.is_leaf
    assert linear.weight.requires_grad


def test_word_dropout_leaves_the_position_of_a_token(tiny_model):
    model = tiny_model(word_dropout=0.5).train()
    torch.manual_seed(1)
    tokens = torch.full((1, 40), 5)
    for entry in (model.encoder.entry, model.decoder.entry):
        alone, whole = entry.positions(0, 40), entry.eval()(tokens)[0]
        seen = entry.train()(tokens)[0]
        lost = (seen == alone).all(dim=1)
        assert 5 < int(lost.sum()) < 35
        assert torch.equal(seen[~lost], whole[~lost])
