"""The presets are the paper's models, row by row, and every one resolves."""

import pytest

from regard.presets import DEFAULT_PRESET, PRESETS, preset_for
from regard.settings import Settings, list_settings, preset

BASE = Settings()

# PAPER.md, Table 3: what each row changes in the base model; nothing else may differ.
TABLE_3 = {
    "table3-heads-1": {"model.heads": 1, "model.d_k": 512, "model.d_v": 512},
    "table3-heads-4": {"model.heads": 4, "model.d_k": 128, "model.d_v": 128},
    "table3-heads-16": {"model.heads": 16, "model.d_k": 32, "model.d_v": 32},
    "table3-heads-32": {"model.heads": 32, "model.d_k": 16, "model.d_v": 16},
    "table3-keys-16": {"model.d_k": 16},
    "table3-keys-32": {"model.d_k": 32},
    "table3-layers-2": {"model.encoder_layers": 2, "model.decoder_layers": 2},
    "table3-layers-4": {"model.encoder_layers": 4, "model.decoder_layers": 4},
    "table3-layers-8": {"model.encoder_layers": 8, "model.decoder_layers": 8},
    "table3-width-256": {"model.d_model": 256, "model.d_k": 32, "model.d_v": 32},
    "table3-width-1024": {"model.d_model": 1024, "model.d_k": 128, "model.d_v": 128},
    "table3-feed-forward-1024": {"model.d_ff": 1024},
    "table3-feed-forward-4096": {"model.d_ff": 4096},
    "table3-dropout-0.0": {"model.dropout": 0.0},
    "table3-dropout-0.2": {"model.dropout": 0.2},
    "table3-smoothing-0.0": {"training.label_smoothing": 0.0},
    "table3-smoothing-0.2": {"training.label_smoothing": 0.2},
    "table3-positions-learned": {"model.positions": "learned"},
}
BIG = {"model.d_model": 1024, "model.d_ff": 4096, "model.heads": 16, "model.dropout": 0.3, "training.steps": 300_000}


def changes(settings: Settings) -> dict[str, object]:
    """What settings say beyond the paper's base model, by dotted name."""

    def value(whole: Settings, key: str) -> object:
        section, _, name = key.partition(".")
        return getattr(getattr(whole, section), name)

    return {key: value(settings, key) for key, _ in list_settings() if value(settings, key) != value(BASE, key)}


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_resolves(name):
    assert preset(name).model.key_width >= 1


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_says_for_whom_it_is(name):
    assert len(PRESETS[name].purpose) > 10


def test_the_default_preset_is_the_papers_base_model():
    assert DEFAULT_PRESET == "paper-base"
    assert preset(DEFAULT_PRESET) == BASE
    model, training, search = BASE.model, BASE.training, BASE.search
    assert (model.d_model, model.d_ff, model.heads, model.encoder_layers, model.decoder_layers) == (512, 2048, 8, 6, 6)
    assert (model.key_width, model.value_width, model.dropout) == (64, 64, 0.1)
    assert (model.norm, model.positions, model.embeddings, model.activation) == ("post", "sinusoidal", "shared", "relu")
    assert not model.attention_bias
    assert model.neighbours is None
    assert (training.beta1, training.beta2, training.epsilon) == (0.9, 0.98, 1e-9)
    assert (training.steps, training.warmup, training.batch_tokens) == (100_000, 4000, 25_000)
    assert (training.label_smoothing, training.average_checkpoints, training.average) == (0.1, 5, "last")
    assert training.clip_norm is None
    assert training.learning_rate is None
    assert (search.beam, search.length_penalty, search.extra_length) == (4, 0.6, 50)


TWINS = {"base-deep-encoder": "paper-base", "small-deep-encoder": "small", "tiny-deep-encoder": "tiny"}


@pytest.mark.parametrize("name", TWINS)
def test_a_deep_encoder_is_its_twin_but_for_the_layers(name):
    twin, settings = preset(TWINS[name]), preset(name)
    layers = {"model.encoder_layers", "model.decoder_layers"}
    ours, theirs = changes(settings), changes(twin)
    assert {key for key in ours | theirs if ours.get(key) != theirs.get(key)} == layers
    assert settings.model.decoder_layers == 1
    assert TWINS[name] in PRESETS[name].purpose


@pytest.mark.parametrize("name", TWINS)
def test_a_deep_encoder_has_about_as_many_weights_as_its_twin(name):
    def layers(name):
        model = preset(name).model
        attention, feed_forward = 4 * model.d_model**2, 2 * model.d_model * model.d_ff
        encoder, decoder = attention + feed_forward, 2 * attention + feed_forward
        return model.encoder_layers * encoder + model.decoder_layers * decoder

    assert layers(name) == pytest.approx(layers(TWINS[name]), rel=0.06)


@pytest.mark.parametrize("name", TABLE_3)
def test_a_row_of_table_3_changes_only_what_the_paper_says(name):
    assert changes(preset(name)) == TABLE_3[name]


@pytest.mark.parametrize("name", [name for name in TABLE_3 if name.startswith("table3-heads")])
def test_a_row_of_heads_keeps_the_amount_of_computation(name):
    model = preset(name).model
    assert model.heads * model.key_width == model.heads * model.value_width == 512


@pytest.mark.parametrize("name", ["paper-big", "table3-big"])
def test_the_big_model_is_the_papers(name):
    # Twenty checkpoints are averaged, one every ten minutes: 600 steps of a second.
    averaging = {"training.average_checkpoints": 20, "training.checkpoint_steps": 600}
    settings = preset(name)
    assert changes(settings) == BIG | averaging
    assert settings.model.key_width == 64


def test_every_row_of_table_3_has_a_preset_and_no_other_claims_to_be_one():
    assert {name for name in PRESETS if name.startswith("table3")} == {*TABLE_3, "table3-big"}


@pytest.mark.parametrize("name", TABLE_3)
def test_a_row_says_what_it_changes(name):
    for key, value in TABLE_3[name].items():
        assert f"{key.partition('.')[2]} {value}" in PRESETS[name].purpose


def test_presets_cannot_be_changed_by_accident():
    with pytest.raises(TypeError):
        PRESETS["mine"] = PRESETS["tiny"]
    before = preset("tiny")
    preset("tiny", ["model.d_model=64"])
    assert preset("tiny") == before


@pytest.mark.parametrize(
    ("pairs", "name"),
    [
        (1, "tiny"),
        (29_000, "tiny"),
        (99_999, "tiny"),
        (100_000, "small"),
        (1_999_999, "small"),
        (4_500_000, "paper-base"),
    ],
)
def test_the_size_of_the_corpus_chooses_the_preset(pairs, name):
    assert preset_for(pairs) == name


def test_a_larger_corpus_never_gets_a_smaller_model():
    sizes = [preset(preset_for(pairs)).model.d_model for pairs in (1_000, 50_000, 100_000, 500_000, 2_000_000, 10**8)]
    assert sizes == sorted(sizes)


def test_the_demo_is_small_enough_for_two_cores():
    model = preset("demo").model
    assert model.d_model <= 256
    assert model.encoder_layers + model.decoder_layers <= 6
