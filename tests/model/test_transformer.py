"""The Transformer (§3): shapes, masks, weight counts, and every option from end to end."""

import pytest
import torch

from regard.model.build import build_model
from regard.model.loss import token_loss
from regard.model.positions import LearnedPositions
from regard.model.transformer import count_weights
from regard.search.beam import beam_search
from regard.settings import ModelSettings, preset
from regard.tokens import PAD, START

CLOSE = 2e-6  # float32, hidden states of size 1 after some layers; sums run in another order

OPTIONS = {
    "the paper": {},
    "pre-norm": {"norm": "pre"},
    "learned positions": {"positions": "learned", "max_positions": 8},
    "target embeddings": {"embeddings": "target"},
    "separate embeddings": {"embeddings": "separate"},
    "biases": {"attention_bias": True},
    "GELU": {"activation": "gelu"},
    "Swish": {"activation": "swish"},
    "deep encoder": {"encoder_layers": 4, "decoder_layers": 1},
    "deep decoder": {"encoder_layers": 1, "decoder_layers": 3},
    "widths of their own": {"d_k": 3, "d_v": 5},
    "neighbours": {"neighbours": 4},
    "neighbours, pre-norm": {"neighbours": 2, "norm": "pre"},
    "one head": {"heads": 1},
    "dropout": {"dropout": 0.3},
}
every_option = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())


# ---- shapes and options ----------------------------------------------------------------------------------------------


def test_shapes_are_as_stated(tiny_model, random_source):
    model = tiny_model(vocabulary=13)
    src, tgt = random_source([5, 3, 2]), random_source([4, 7, 1], seed=1)
    memory = model.encode(src)
    assert memory.hidden.shape == (3, 5, 16)
    assert memory.mask.shape == (3, 1, 1, 5)
    assert model(src, tgt).shape == (3, 7, 16)
    scores, state = model.step(model.start(memory), tgt[:, :1])
    assert scores.shape == (3, 1, 13)
    scores, _ = model.step(state.select(torch.tensor([[0, 0], [1, 1]])), tgt[:2, :2])
    assert scores.shape == (2, 2, 13)


@every_option
def test_every_option_runs_forward_and_backward_and_decodes(tiny_model, random_source, options):
    model = tiny_model(**options).train()
    src, tgt = random_source([11, 4, 9]), random_source([12, 7, 2], seed=1)
    hidden = model(src, tgt)
    real = tgt != PAD
    token_loss(hidden[real], tgt[real], model.output.weight, 0.1).smoothed.backward()
    for name, weight in model.named_parameters():
        assert weight.grad is not None, name
        assert weight.grad.isfinite().all(), name
        assert weight.grad.any(), name
    (best, *_), *others = beam_search(model.eval(), src, torch.tensor([6, 20, 1]), beam=3, alpha=0.6)
    assert 1 <= len(best.tokens) <= 6
    assert len(others) == 2


def test_log_probabilities_are_those_of_a_distribution(tiny_model, random_source):
    model = tiny_model()
    scores, _ = model.step(model.start(model.encode(random_source([5, 3]))), torch.full((2, 1), START))
    torch.testing.assert_close(scores.exp().sum(dim=-1), torch.ones(2, 1))


def test_no_dropout_beside_the_papers_makes_training_without_it_exact(tiny_model, random_source):
    model = tiny_model(dropout=0.0)
    src, tgt = random_source([5, 3]), random_source([4, 6], seed=1)
    assert torch.equal(model.train()(src, tgt), model.eval()(src, tgt))


# ---- who sees whom ---------------------------------------------------------------------------------------------------


@every_option
def test_a_later_target_token_never_changes_an_earlier_output(tiny_model, random_source, options):
    model = tiny_model(**options)
    src, tgt = random_source([11, 4]), torch.randint(4, 13, (2, 10), generator=torch.Generator().manual_seed(1))
    before = model(src, tgt)
    for position in range(1, 10):
        changed = tgt.clone()
        changed[:, position:] = (changed[:, position:] - 3) % 9 + 4
        after = model(src, changed)
        assert torch.equal(after[:, :position], before[:, :position])  # exactly: the same sums of the same numbers
        assert not torch.equal(after[:, position], before[:, position])


@every_option
def test_padding_the_source_changes_nothing(tiny_model, random_source, options):
    model = tiny_model(**options)
    src, tgt = random_source([6]), random_source([5], seed=1)
    longer = torch.nn.functional.pad(src, (0, 9), value=PAD)
    torch.testing.assert_close(model.encode(longer).hidden[:, :6], model.encode(src).hidden, atol=CLOSE, rtol=0)
    torch.testing.assert_close(model(longer, tgt), model(src, tgt), atol=CLOSE, rtol=0)


@every_option
def test_padding_the_target_changes_nothing(tiny_model, random_source, options):
    model = tiny_model(**options)
    src, tgt = random_source([6]), random_source([5], seed=1)
    longer = torch.nn.functional.pad(tgt, (0, 9), value=PAD)
    torch.testing.assert_close(model(src, longer)[:, :5], model(src, tgt), atol=CLOSE, rtol=0)


def test_every_source_position_reaches_every_target_position(tiny_model, random_source):
    model = tiny_model()
    src, tgt = random_source([6]), random_source([5], seed=1)
    before = model(src, tgt)
    for position in range(6):
        changed = src.clone()
        changed[0, position] = (changed[0, position] - 2) % 9 + 4
        assert ((model(changed, tgt) - before).abs().amax(dim=-1) > 1e-4).all()


def test_a_neighbourhood_is_all_that_one_layer_sees(tiny_model, random_source):
    model = tiny_model(neighbours=4, encoder_layers=1)
    src = random_source([12])
    changed = src.clone()
    changed[0, 6] = (changed[0, 6] - 3) % 9 + 4
    difference = (model.encode(changed).hidden - model.encode(src).hidden).abs().amax(dim=-1)[0]
    assert (difference > 1e-6).nonzero().flatten().tolist() == [4, 5, 6, 7, 8]


def test_a_source_of_nothing_but_padding_gives_numbers(tiny_model, random_source):
    model = tiny_model()
    src = random_source([4, 4])
    src[1] = PAD
    assert model(src, random_source([3, 3])).isfinite().all()


# ---- weights ---------------------------------------------------------------------------------------------------------

TABLE_3 = {  # weights in millions, PAPER.md
    "paper-base": 65,
    "table3-keys-16": 58,
    "table3-keys-32": 60,
    "table3-layers-2": 36,
    "table3-layers-4": 50,
    "table3-layers-8": 80,
    "table3-width-256": 28,
    "table3-width-1024": 168,
    "table3-feed-forward-1024": 53,
    "table3-feed-forward-4096": 90,
}
SAME_AS_BASE = [
    "table3-heads-1",
    "table3-heads-4",
    "table3-heads-16",
    "table3-heads-32",
    "table3-dropout-0.0",
    "table3-dropout-0.2",
    "table3-smoothing-0.0",
    "table3-smoothing-0.2",
]


def weights_of(name, vocabulary):
    with torch.device("meta"):  # shapes only: no memory, no random numbers
        return count_weights(build_model(preset(name).model, vocabulary))


@pytest.mark.parametrize(("name", "millions"), TABLE_3.items())
def test_a_row_of_table_3_has_the_papers_number_of_weights(name, millions):
    assert abs(weights_of(name, 41_000) / 1e6 - millions) <= 1


@pytest.mark.parametrize("name", SAME_AS_BASE)
def test_rows_without_a_number_have_as_many_weights_as_the_base_model(name):
    assert weights_of(name, 41_000) == weights_of("paper-base", 41_000)


@pytest.mark.parametrize("name", ["paper-big", "table3-big"])
def test_the_big_model_has_the_papers_number_of_weights(name):
    assert weights_of(name, 37_000) == pytest.approx(213e6, rel=0.01)


def test_the_base_models_weights_are_counted_out_by_hand():
    attention, feed_forward, norm = 4 * 512 * 512, 2 * 512 * 2048 + 2048 + 512, 2 * 512
    encoder = 6 * (attention + feed_forward + 2 * norm)
    decoder = 6 * (2 * attention + feed_forward + 3 * norm)
    assert weights_of("paper-base", 41_000) == 41_000 * 512 + encoder + decoder


def test_learned_positions_are_one_table_more():
    assert weights_of("table3-positions-learned", 41_000) - weights_of("paper-base", 41_000) in (1024 * 512, 2048 * 512)


def test_every_row_of_table_3_is_held_to_the_paper():
    from regard.presets import PRESETS

    counted = {*TABLE_3, *SAME_AS_BASE, "paper-big", "table3-big", "table3-positions-learned"}
    assert {name for name in PRESETS if name.startswith(("table3-", "paper-"))} == counted


def test_settings_reach_the_layers():
    settings = ModelSettings(
        d_model=12, d_ff=20, heads=2, d_k=3, d_v=5, encoder_layers=1, decoder_layers=3, dropout=0.25, norm="pre",
        positions="learned", max_positions=9, attention_bias=True, neighbours=4,
    )  # fmt: skip
    model = build_model(settings, 17)
    layer = model.decoder.layers[2]
    assert (len(model.encoder.layers), len(model.decoder.layers)) == (1, 3)
    assert layer.self_attention.query_key_value.weight.shape == (2 * (3 + 3 + 5), 12)
    assert layer.self_attention.output.weight.shape == (12, 10)
    assert layer.cross_attention.key_value.bias.shape == (2 * (3 + 5),)
    assert layer.self_attention.neighbours == 4
    assert layer.feed_forward.inner.weight.shape == (20, 12)
    assert layer.feed_forward_residual.dropout.probability == 0.25
    assert model.decoder.entry.dropout.probability == model.encoder.entry.dropout.probability == 0.25
    assert isinstance(model.encoder.entry.positions, LearnedPositions)
    assert model.encoder.entry.positions.table.shape == (9, 12)
    assert isinstance(model.decoder.norm, torch.nn.LayerNorm)
    assert model.output.weight.shape == (17, 12)


def test_the_same_seed_builds_the_same_model(tiny_model):
    one, same, other = (tiny_model(seed=seed).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not all(torch.equal(one[name], other[name]) for name in one)
