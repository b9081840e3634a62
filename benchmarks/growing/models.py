"""Points that need a model: sentence length, vocabulary, beam. The model is regard's 'tiny', on one thread.

Sentences are random ids and without padding, in batches of `TOKENS` tokens whatever their length, so that time and
memory of a batch are those of a token times a constant.
"""

from typing import Any

import numpy as np
import torch

from growing.clock import forget_peak, peak, resident, typical_seconds
from growing.plan import LENGTH, NEIGHBOURS, TOKENS, VOCABULARY, Point
from regard.data.batches import Batch
from regard.machine import choose_machine
from regard.model.build import build_model
from regard.model.transformer import Transformer
from regard.search.beam import beam_search
from regard.search.greedy import greedy_search
from regard.settings import ModelSettings, preset
from regard.tokens import END, START
from regard.training.objective import batch_loss
from regard.training.optimizer import Adam

_SENTENCES = 16  # that are translated together
_TRANSLATED_LENGTH = 16
_FIRST_ID = 4  # those below are not text
_AWAY = 8.0  # logits by which an end is less likely than the average token


def model_settings(neighbours: int | None = None) -> ModelSettings:
    """Return 'tiny', with full attention or with a neighbourhood."""
    return preset("tiny").model.model_copy(update={"neighbours": neighbours})


def measure_length(point: Point) -> dict[str, Any]:
    """Time and memory of encoding and of training, at a sentence length."""
    neighbours = NEIGHBOURS if point.line == "restricted attention" else None
    return _measure(point, model_settings(neighbours), VOCABULARY, point.value)


def measure_vocabulary(point: Point) -> dict[str, Any]:
    """Time and memory of encoding and of training, with a size of the vocabulary."""
    return _measure(point, model_settings(), point.value, LENGTH)


def _measure(point: Point, settings: ModelSettings, vocabulary: int, length: int) -> dict[str, Any]:
    """Return seconds a token, and the peak of memory above what the process held before it had a model."""
    machine = choose_machine("cpu", "float32", threads=1)
    torch.manual_seed(1)
    batch = make_batch(length, vocabulary, TOKENS // (16 if point.quick else 1))
    empty = resident()
    model = build_model(settings, vocabulary)
    found = {}
    src = torch.from_numpy(batch.src)
    with torch.inference_mode():
        model.eval()
        forget_peak()
        found["encoding_seconds"] = typical_seconds(lambda: model.encode(src), point.quick) / batch.tokens
        found["encoding_memory"] = peak() - empty
    model.train()
    training = preset("tiny").training
    optimizer = Adam(model, training)

    def step() -> None:
        loss = batch_loss(model, batch, machine.device, training.label_smoothing)
        loss.smoothed.backward()
        optimizer.step(rate=1e-4, scale=1 / batch.tokens)

    forget_peak()
    found["training_seconds"] = typical_seconds(step, point.quick) / batch.tokens
    found["training_memory"] = peak() - empty
    return found


def make_batch(length: int, vocabulary: int, tokens: int) -> Batch:
    """Draw pairs of one length, as many as make `tokens` tokens on each side; a length counts the end token."""
    pairs = max(1, tokens // length)
    random = np.random.default_rng(1)
    src, tgt = random.integers(_FIRST_ID, vocabulary, (2, pairs, length))
    src[:, -1] = tgt[:, -1] = END
    tgt = np.concatenate([np.full((pairs, 1), START), tgt], axis=1)
    return Batch(src, tgt, pairs * length, np.arange(pairs))


def measure_beam(point: Point) -> dict[str, Any]:
    """Return seconds a sentence; every hypothesis becomes as long as it may."""
    choose_machine("cpu", "float32", threads=1)
    torch.manual_seed(1)
    vocabulary = VOCABULARY // 10 if point.quick else VOCABULARY
    model = without_ends(build_model(model_settings(), vocabulary)).eval()
    batch = make_batch(_TRANSLATED_LENGTH, vocabulary, _TRANSLATED_LENGTH * (2 if point.quick else _SENTENCES))
    src = torch.from_numpy(batch.src)
    limits = torch.full((len(src),), _TRANSLATED_LENGTH)

    def search() -> object:
        if point.value == 1:  # as the translator does
            return greedy_search(model, src, limits)
        return beam_search(model, src, limits, point.value, alpha=0.6)

    return {"translation_seconds": typical_seconds(search, point.quick) / len(src)}


@torch.no_grad()
def without_ends(model: Transformer) -> Transformer:
    """Let the last norm add a direction to every hidden state that the end token's embedding points away from."""
    norm = model.decoder.layers[-1].feed_forward_residual.layer_norm
    direction = torch.nn.functional.normalize(torch.randn_like(norm.bias), dim=0)
    norm.bias.copy_(_AWAY * direction)
    model.output.weight[END] = -direction
    return model
