"""What all toolkits are given: the data set in files, and one set of weights.

The weights are random, and then changed in three ways:

- What feed-forward networks add is made larger, and logits sharper. A freshly made Transformer repeats the token it was
  given and finds all others about equally likely, so that equal outputs would say little.
- The last norm adds a direction to every hidden state, and the end token's embedding points the other way. So no
  toolkit ever finds an end likely, and a search goes on for exactly as long as it is let.
- Tokens that are not text have embeddings of zero. They are never among the best, so that it does not matter which of
  them a toolkit rules out.
"""

import io
import json
import shutil
from pathlib import Path

import numpy as np

from comparison.corpus import LONGEST, characters, make_pairs, make_sentences, text
from comparison.shapes import Shape

VERSION = 2  # raised when what is written here changes
LOUDER = 3.0  # how many times larger what feed-forward networks add is
SHARPER = 4.0  # how many times larger logits are
AWAY = 8.0  # logits by which the end token is less likely than the average token


def make_materials(shape: Shape, folder: Path) -> Path:
    """Write everything for a shape, unless it is there; return the folder."""
    home, stamp = folder / shape.name, f"{VERSION} {shape}"
    done = home / "made_from"
    if done.exists() and done.read_text() == stamp:
        return home
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    _write_data(shape, home)
    _write_model(shape, home)
    done.write_text(stamp)
    return home


def _write_data(shape: Shape, home: Path) -> None:
    pairs, letters = make_pairs(shape), characters(shape.vocabulary)
    (home / "pairs.json").write_text(json.dumps(pairs))
    (home / "sentences.json").write_text(json.dumps(make_sentences(shape)))
    (home / "letters.json").write_text(json.dumps(letters))
    for number, side in enumerate(("source", "target")):
        (home / f"train.{side}").write_text("".join(text(pair[number], letters) + "\n" for pair in pairs))
        (home / f"spaced.{side}").write_text("".join(text(pair[number], letters, " ") + "\n" for pair in pairs))


def _write_model(shape: Shape, home: Path) -> None:
    """Write a model as regard's folder, and its weights for the others."""
    import torch

    from regard.model.build import build_model
    from regard.model_folder import named_weights, write_model
    from regard.settings import resolve
    from regard.text.vocabulary import Vocabulary
    from regard.tokens import END, PAD, START, UNKNOWN

    vocabulary = Vocabulary(_make_vocabulary(shape.vocabulary))
    vocabulary.save(home / "vocabulary.spm")
    assert len(vocabulary) == shape.vocabulary
    settings = resolve({"model": model_settings(shape), "data": {"max_length": LONGEST}})
    torch.manual_seed(1)
    weights = named_weights(build_model(settings.model, shape.vocabulary))
    for name, weight in weights.items():
        if name.endswith(".outer.weight"):
            weight.mul_(LOUDER)
    last = f"decoder.stack.{shape.layers - 1}.feed_forward_residual.layer_norm"
    direction = torch.nn.functional.normalize(torch.randn(shape.d_model), dim=0)
    weights[f"{last}.weight"].fill_(SHARPER)
    weights[f"{last}.bias"].copy_(AWAY * direction)
    embedding = weights["encoder.entry.embedding.weight"]
    embedding[END] = -direction
    embedding[[PAD, UNKNOWN, START]] = 0
    write_model(home / "model", weights, vocabulary, settings, {}, "Random weights, for benchmarks.\n")
    np.savez(home / "weights.npz", **{name: weight.numpy() for name, weight in weights.items()})


def model_settings(shape: Shape) -> dict[str, float]:
    """Return a shape as regard's settings name it."""
    return {
        "d_model": shape.d_model,
        "d_ff": shape.d_ff,
        "heads": shape.heads,
        "encoder_layers": shape.layers,
        "decoder_layers": shape.layers,
        "dropout": shape.dropout,
    }


def _make_vocabulary(size: int) -> bytes:
    """Return a SentencePiece model whose pieces are the 256 bytes and single characters, in the order of their ids."""
    import sentencepiece

    model, letters = io.BytesIO(), characters(size)
    # Pieces are ordered by frequency, then by character; each character comes once, so that its number decides.
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(letters),
        model_writer=model,
        model_type="bpe",
        vocab_size=size,
        character_coverage=1.0,
        byte_fallback=True,
        normalization_rule_name="identity",
        add_dummy_prefix=False,
        remove_extra_whitespaces=False,
        minloglevel=2,
        pad_id=0,
        unk_id=1,
        bos_id=2,
        eos_id=3,
    )
    return model.getvalue()
