"""Named settings: the paper's two models, each row of its Table 3, and what suits less text than the paper had."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple


class Preset(NamedTuple):
    """What a preset says beyond the defaults, and for whom it is."""

    purpose: str
    values: Mapping[str, Mapping[str, Any]]


DEFAULT_PRESET = "paper-base"

_BIG: Mapping[str, Mapping[str, Any]] = {
    "model": {"d_model": 1024, "d_ff": 4096, "heads": 16, "dropout": 0.3},
    "training": {"steps": 300_000, "average_checkpoints": 20, "checkpoint_steps": 600},
}

_SMALL: Mapping[str, Mapping[str, Any]] = {
    "model": {
        "d_model": 256,
        "d_ff": 1024,
        "heads": 4,
        "encoder_layers": 4,
        "decoder_layers": 4,
        "dropout": 0.2,
    },
    "data": {"vocabulary_size": 16_000},
    "training": {
        "steps": 30_000,
        "batch_tokens": 8_192,
        "warmup": 2_000,
        "learning_rate": 0.0015,
        "checkpoint_steps": 1_000,
    },
}
_TINY: Mapping[str, Mapping[str, Any]] = {
    "model": {
        "d_model": 128,
        "d_ff": 256,
        "heads": 4,
        "encoder_layers": 4,
        "decoder_layers": 4,
        "dropout": 0.3,
    },
    "data": {"vocabulary_size": 10_000},
    "training": {
        "steps": 8_000,
        "batch_tokens": 8_192,
        "warmup": 2_000,
        "learning_rate": 0.005,
        "checkpoint_steps": 250,
        "average_checkpoints": 10,
    },
}


def _deep_encoder(name: str, values: Mapping[str, Mapping[str, Any]], encoder_layers: int) -> Preset:
    """The twin of a preset with about as many weights, most of them in the encoder, which runs once a sentence."""
    layers = {"encoder_layers": encoder_layers, "decoder_layers": 1}
    purpose = f"like {name}, with {encoder_layers} + 1 layers: about as many weights, and a faster search"
    return Preset(purpose, {**values, "model": {**values.get("model", {}), **layers}})


def _row(row: str, **values: Any) -> tuple[str, Preset]:
    """One row of Table 3: all settings are the model's but label smoothing."""
    smoothing = {key: values.pop(key) for key in ("label_smoothing",) if key in values}
    sections = {"model": values, "training": smoothing}
    changes = ", ".join(f"{key} {value}" for key, value in {**values, **smoothing}.items())
    return row, Preset(f"Table 3: {changes}", {name: section for name, section in sections.items() if section})


PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "paper-base": Preset("the paper's base model, for millions of pairs and GPUs", {}),
        "paper-big": Preset("the paper's big model, English–German (use model.dropout=0.1 for English–French)", _BIG),
        "small": Preset("modest corpora: some hundred thousand pairs", _SMALL),
        "tiny": Preset("small corpora: some ten thousand pairs, trained on a laptop within the hour", _TINY),
        "base-deep-encoder": _deep_encoder("paper-base", {}, encoder_layers=12),
        "small-deep-encoder": _deep_encoder("small", _SMALL, encoder_layers=8),
        "tiny-deep-encoder": _deep_encoder("tiny", _TINY, encoder_layers=8),
        "demo": Preset(
            "the embedded corpus: a few minutes on two cores",
            {
                "model": {
                    "d_model": 128,
                    "d_ff": 512,
                    "heads": 4,
                    "encoder_layers": 2,
                    "decoder_layers": 2,
                },
                "data": {"vocabulary_size": 3_000},
                "training": {
                    "steps": 1_300,
                    "batch_tokens": 2_500,
                    "warmup": 150,
                    "learning_rate": 0.004,
                    "log_steps": 25,
                    "checkpoint_steps": 100,
                    "validation_sentences": 100,
                },
            },
        ),
        **dict(
            [
                _row("table3-heads-1", heads=1, d_k=512, d_v=512),
                _row("table3-heads-4", heads=4, d_k=128, d_v=128),
                _row("table3-heads-16", heads=16, d_k=32, d_v=32),
                _row("table3-heads-32", heads=32, d_k=16, d_v=16),
                _row("table3-keys-16", d_k=16),
                _row("table3-keys-32", d_k=32),
                _row("table3-layers-2", encoder_layers=2, decoder_layers=2),
                _row("table3-layers-4", encoder_layers=4, decoder_layers=4),
                _row("table3-layers-8", encoder_layers=8, decoder_layers=8),
                _row("table3-width-256", d_model=256, d_k=32, d_v=32),
                _row("table3-width-1024", d_model=1024, d_k=128, d_v=128),
                _row("table3-feed-forward-1024", d_ff=1024),
                _row("table3-feed-forward-4096", d_ff=4096),
                _row("table3-dropout-0.0", dropout=0.0),
                _row("table3-dropout-0.2", dropout=0.2),
                _row("table3-smoothing-0.0", label_smoothing=0.0),
                _row("table3-smoothing-0.2", label_smoothing=0.2),
                _row("table3-positions-learned", positions="learned"),
                ("table3-big", Preset("Table 3, last row: the big model", _BIG)),
            ]
        ),
    }
)


def preset_for(pairs: int) -> str:
    """Choose a preset by the size of the training corpus."""
    if pairs < 100_000:
        return "tiny"
    return "small" if pairs < 2_000_000 else "paper-base"
