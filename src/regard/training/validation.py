"""Validation: loss, perplexity and BLEU of real decoding on text that training does not see."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from regard.data.batches import collate, sequential_pieces
from regard.data.prepare import Prepared
from regard.data.store import Store
from regard.engine import lay_out_for
from regard.evaluate import bleu
from regard.machine import Machine
from regard.model.transformer import Transformer
from regard.settings import Corpus, Settings
from regard.text.corpus import Pair, read_pairs
from regard.training.distributed import World
from regard.training.objective import batch_loss
from regard.translator import Translator

_SAMPLES = 3  # validation sentences shown with their translations


@dataclass(frozen=True)
class Validation:
    """What a model's weights at one step are worth."""

    step: int
    loss: float | None  # negative log-likelihood a token, in nats
    bleu: float | None

    @property
    def perplexity(self) -> float | None:
        """e^loss, per token of the vocabulary."""
        return None if self.loss is None else math.exp(min(self.loss, 700))

    def facts(self) -> dict[str, float | None]:
        """Return it for logs."""
        return {"step": self.step, "loss": self.loss, "perplexity": self.perplexity, "bleu": self.bleu}

    def describe(self) -> str:
        """Say it in one line."""
        parts = []
        if self.loss is not None:
            parts.append(f"loss {self.loss:.3f} · perplexity {self.perplexity:.2f}")
        if self.bleu is not None:
            parts.append(f"BLEU {self.bleu:.1f}")
        return " · ".join(parts)


def is_better(one: Validation, other: Validation, choose_by: Literal["bleu", "loss"]) -> bool:
    """Say whether one validation beats another; where BLEU is missing or equal, the loss decides."""
    if choose_by == "bleu" and one.bleu is not None and other.bleu is not None and one.bleu != other.bleu:
        return one.bleu > other.bleu
    return _or_worst(one.loss) < _or_worst(other.loss)


def _or_worst(loss: float | None) -> float:
    return math.inf if loss is None or math.isnan(loss) else loss


def validations_since_best(validations: Sequence[Validation], choose_by: Literal["bleu", "loss"]) -> int:
    """Return how many validations have passed since the best one."""
    best = 0
    for index, validation in enumerate(validations):
        if is_better(validation, validations[best], choose_by):
            best = index
    return len(validations) - 1 - best if validations else 0


def pick_sentences(corpora: Sequence[Corpus], count: int) -> list[Pair]:
    """Return `count` validation pairs, evenly spread over the corpora, or all if there are fewer; none is empty."""
    pairs = [pair for corpus in corpora for pair in read_pairs(corpus) if pair.source.strip() and pair.target.strip()]
    count = min(count, len(pairs))
    return [pairs[number * len(pairs) // count] for number in range(count)]


def validate(
    model: Transformer,
    data: Prepared,
    pairs: Sequence[Pair],
    step: int,
    settings: Settings,
    machine: Machine,
    world: World,
) -> tuple[Validation, list[tuple[str, str]]]:
    """Return loss and BLEU (by greedy search) of a model as it is, and some sources with their translations.

    The processes share the work, and all get the same answer.
    """
    was_training = model.training
    model.eval()
    loss = score = None
    samples: list[tuple[str, str]] = []
    if data.valid is not None:
        loss = validation_loss(model, data.valid, settings.training.piece_tokens, machine, world)
    if pairs and settings.training.validation_bleu:
        native = lay_out_for(machine, model)
        longest = data.train.longest_source
        translator = Translator(model, data.vocabulary, settings, machine, longest, native=native)
        part = translator.translate([pair.source for pair in world.share(pairs)], beam=1)
        texts = world.gather([found.text for found in part])
        score = bleu(texts, [pair.target for pair in pairs])
        samples = [(pair.source, text) for pair, text in zip(pairs, texts, strict=True)][:_SAMPLES]
    model.train(was_training)
    return Validation(step, loss, score), samples


@torch.inference_mode()
def validation_loss(model: Transformer, store: Store, piece_tokens: int, machine: Machine, world: World) -> float:
    """Return the negative log-likelihood a token, in nats; the model is expected in evaluation mode."""
    sums = torch.zeros(2, dtype=torch.float64)  # loss, tokens
    for number, rows in enumerate(sequential_pieces(store, piece_tokens)):
        if number % world.size == world.rank:
            batch = collate(store, rows)
            with machine.autocast():
                loss = batch_loss(model, batch, machine.device, smoothing=0.0)
            sums[0] += loss.plain.to(sums)
            sums[1] += batch.tokens
    world.sum(sums)
    loss_sum, tokens = sums.tolist()
    return float(loss_sum / max(tokens, 1))
