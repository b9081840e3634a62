"""From settings to a model; the only file of this room that knows settings."""

from torch import nn

from regard.model.embedding import Embedding, InputLayer, OutputLayer
from regard.model.layers import LayerShape
from regard.model.positions import LearnedPositions, SinusoidalPositions
from regard.model.transformer import Decoder, Encoder, Transformer
from regard.settings import ModelSettings


def build_model(settings: ModelSettings, vocabulary_size: int) -> Transformer:
    """Return a freshly initialised model; weights come from torch's default generator."""
    shape = LayerShape(
        d_model=settings.d_model,
        d_ff=settings.d_ff,
        heads=settings.heads,
        d_k=settings.key_width,
        d_v=settings.value_width,
        dropout=settings.dropout,
        norm=settings.norm,
        attention_bias=settings.attention_bias,
        activation=settings.activation,
        neighbours=settings.neighbours,
        attention_dropout=settings.attention_dropout,
        activation_dropout=settings.activation_dropout,
        initial_gain=settings.initial_gain,
    )
    source = Embedding(vocabulary_size, settings.d_model)
    target = source if settings.embeddings == "shared" else Embedding(vocabulary_size, settings.d_model)
    tied = None if settings.embeddings == "separate" else target
    positions = _positions(settings)
    entries = [InputLayer(side, positions, settings.dropout, settings.word_dropout) for side in (source, target)]
    return Transformer(
        Encoder(shape, settings.encoder_layers, entries[0]),
        Decoder(shape, settings.decoder_layers, entries[1]),
        OutputLayer(tied, vocabulary_size, settings.d_model),
    )


def _positions(settings: ModelSettings) -> nn.Module:
    match settings.positions:
        case "sinusoidal":
            return SinusoidalPositions(settings.d_model)
        case "learned":
            return LearnedPositions(settings.d_model, settings.max_positions)
