"""The two sizes of model that are compared, and how much work one measurement of each is."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """A model's size, and the lengths of what it is given; a length counts the end token."""

    name: str
    layers: int  # of the encoder, and as many of the decoder
    d_model: int
    d_ff: int
    heads: int
    vocabulary: int
    dropout: float
    batch_tokens: int  # target tokens of a training step, padding counted
    mean_length: float
    pairs: int  # to train on
    warmup_steps: int  # taken before a measurement of training begins
    steps: int  # of a measurement of training
    translated_lengths: tuple[int, ...]  # of sentences that are translated: so many kinds,
    sentences_a_length: int  # and so many of each


TINY = Shape(
    name="tiny",
    layers=4,
    d_model=128,
    d_ff=256,
    heads=4,
    vocabulary=10_000,
    dropout=0.3,
    batch_tokens=4096,
    mean_length=13,
    pairs=50_000,
    warmup_steps=5,
    steps=20,
    translated_lengths=(22, 14, 10, 6),
    sentences_a_length=128,
)
BASE = Shape(
    name="base",
    layers=6,
    d_model=512,
    d_ff=2048,
    heads=8,
    vocabulary=37_000,
    dropout=0.1,
    batch_tokens=2048,
    mean_length=28,
    pairs=10_000,
    warmup_steps=2,
    steps=4,
    translated_lengths=(52, 28, 20, 12),
    sentences_a_length=32,
)
SHAPES = {shape.name: shape for shape in (TINY, BASE)}
