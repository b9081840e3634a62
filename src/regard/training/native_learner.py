"""A Transformer in training, laid out for the compiled library, which learns from a batch in one call.

Shapes: B pairs, S source length, T target length, D d_model, V vocabulary.
"""

from collections.abc import Sequence
from ctypes import Array
from dataclasses import dataclass
from functools import partial
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from regard.data.batches import Batch
from regard.model.dropout import LEVELS, Dropout, dropped_levels
from regard.model.layers import DecoderLayer, EncoderLayer
from regard.model.loss import Loss
from regard.model.positions import SinusoidalPositions
from regard.model.transformer import Transformer
from regard.native.library import (
    DroppingStruct,
    LessonStruct,
    Library,
    NormStruct,
    TrainedLayerStruct,
    TrainedStruct,
    address,
)
from regard.training.lesson import Pairs, TokenCost, join, share_out
from regard.training.output_sample import OutputSample, OutputSampler

_Array = NDArray[Any]

_POSITIONS = 256  # of the table of positions at first; it grows
_ROWS = 1024  # target tokens that a thread works on at a time: for them, weights are read and gradients written once
_TOKENS = 384  # of them whose logits are held at a time; a whole number of panels and of tiles
_LOGITS = 1 << 24  # but no more than these, 64 MiB
_FLOAT = 4  # bytes
_FLAGS = MAP_PRIVATE | MAP_ANONYMOUS


def can_learn(model: Transformer, library: Library) -> bool:
    """Say whether the library knows everything that this model is made of: the paper's model is."""
    layers: list[EncoderLayer | DecoderLayer] = [*model.encoder.layers, *model.decoder.layers]
    return (
        model.output.weight.dtype == torch.float32
        and isinstance(model.encoder.entry.positions, SinusoidalPositions)
        and all(_knows(layer, library) for layer in layers)
    )


def _knows(layer: EncoderLayer | DecoderLayer, library: Library) -> bool:
    attention, feed_forward, block = layer.self_attention, layer.feed_forward, layer.self_attention_residual
    heads = [width // attention.heads for width in attention.widths]
    widths = feed_forward.inner.in_features, feed_forward.inner.out_features, *attention.widths
    return (
        not block.pre
        and feed_forward.activation is nn.functional.relu
        and attention.neighbours is None
        and attention.query_key_value.bias is None
        and attention.dropout == 0
        and not any(width % library.panel for width in widths)
        and not any(width % 16 for width in heads)
    )


@dataclass(frozen=True)
class _Outputs:
    """Rows of the output layer, which of them were drawn (output_sample.py), and where their gradients go."""

    weight: Tensor
    drawn: int | None = None  # from this one on; None: none
    stands_for: float = 1.0
    gradients: NDArray[np.uint64] | None = None  # (threads,) addresses; None: to those of all weights


@dataclass(frozen=True)
class _Aim:
    """What is minimised."""

    smoothing: float
    consistency: float
    is_weighted: bool  # by the pairs' factors

    @property
    def passes(self) -> int:
        """How often each pair passes the model."""
        return 2 if self.consistency else 1


class NativeLearner:
    """Computes the loss of batches and adds up gradients, in as many threads as torch has; see `Learner`.

    The model's parameters are views of the flat `weights`; their gradients lie in `gradient` in the same order.
    """

    def __init__(
        self, model: Transformer, weights: Tensor, gradient: Tensor, smoothing: float, library: Library
    ) -> None:
        self._library, self._model, self._weights, self._gradient = library, model, weights, gradient
        self._smoothing = smoothing
        entry, inner = model.encoder.entry, model.encoder.layers[0].feed_forward
        self._droppings = [_dropping(place) for place in (entry.dropout, inner.dropout, entry.word_dropout)]
        self._layers = [
            (TrainedLayerStruct * len(stack.layers))(*map(_layer, stack.layers))
            for stack in (model.encoder, model.decoder)
        ]
        self._trained = _describe(model, self._layers, weights)
        self._position: Tensor | None = None
        self._parts: list[Tensor] = []  # gradients of all threads but the first
        self._rooms: list[mmap] = []  # what threads keep a group's numbers in

    @property
    def at_once(self) -> int:
        """See `Learner`: each thread may hold a whole batch's."""
        return torch.get_num_threads()

    def learn(
        self,
        batches: Sequence[Batch],
        seeds: Sequence[int],
        consistency: float = 0.0,
        sampler: OutputSampler | None = None,
    ) -> Loss:
        """Return the loss summed over all target tokens, and add up its gradient; see `Learner`.

        What threads but the first have added is theirs until `gather` is called.
        """
        self._reach(max(batch.src.shape[1] + batch.tgt.shape[1] for batch in batches))
        weighted = {batch.factors is not None for batch in batches} == {True}
        aim = _Aim(0.0 if weighted else self._smoothing, consistency, weighted)
        rows = min(_ROWS, max(batch.tokens for batch in batches))
        if sampler is None:
            return self._loss(self._learn_all(join(batches, seeds), rows, aim), aim)
        sums = np.zeros(4)
        for batch, seed in zip(batches, seeds, strict=True):
            sample = sampler.draw(batch.tgt, seed)
            learn = self._learn_all if sample is None else partial(self._learn_sample, sample)
            sums += learn(join([batch], [seed]), rows, aim)
        return self._loss(sums, aim)

    def _learn_all(self, pairs: Pairs, rows: int, aim: "_Aim") -> _Array:
        """Learn from pairs with all of the output layer."""
        return self._learn(pairs, rows, aim, _Outputs(self._model.output.weight))

    def _learn_sample(self, sample: OutputSample, pairs: Pairs, rows: int, aim: "_Aim") -> _Array:
        """Learn from pairs with a part of the output layer, which is laid out for that."""
        weight, tokens = self._model.output.weight, torch.from_numpy(sample.tokens)
        assert weight.grad is not None
        with torch.no_grad():
            part = weight[tokens]
            gradients = part.new_zeros(torch.get_num_threads(), *part.shape)
            addresses = np.array([*map(_at, gradients)], np.uint64)
            outputs = _Outputs(part, sample.certain, sample.stands_for, addresses)
            sums = self._learn(pairs._replace(following=sample.find(pairs.following)), rows, aim, outputs)
            weight.grad.index_add_(0, tokens, gradients.sum(dim=0))
        return sums

    def _learn(self, pairs: Pairs, rows: int, aim: "_Aim", outputs: "_Outputs") -> _Array:
        """Learn from pairs; return the loss's sums, as the library has them."""
        threads = torch.get_num_threads()
        gradients, sums = self._gradients(threads), np.zeros((threads, 4))
        pairs, ends = share_out(pairs, _cost_of_tokens(self._trained, len(outputs.weight)), threads)
        self._trained.output = _at(outputs.weight)
        problem = self._trained, self._lesson(pairs, ends, rows, aim, gradients, outputs, sums)
        needed = self._library.learn(*problem, None)
        if not needed or not self._library.learn(*problem, address(self._make_room(threads, needed * _FLOAT))):
            raise MemoryError("no memory for a batch")
        return np.asarray(sums.sum(axis=0))

    def _make_room(self, threads: int, size: int) -> NDArray[np.uint64]:
        """Return where each thread has that many bytes to work in.

        The same ones in every step: memory taken and freed step by step, in other sizes each time, would leave gaps.
        """
        if len(self._rooms) < threads or len(self._rooms[0]) < size:
            self._rooms.clear()  # before new ones are made
            try:
                self._rooms.extend(mmap(-1, size, _FLAGS) for _ in range(threads))
            except OSError:
                raise MemoryError("no memory for a batch") from None
        return np.array([address(np.frombuffer(room, np.uint8)) for room in self._rooms[:threads]], np.uint64)

    def _lesson(
        self, pairs: Pairs, ends: _Array, rows: int, aim: "_Aim", gradients: _Array, outputs: "_Outputs", sums: _Array
    ) -> LessonStruct:
        """Describe what is to be learned; the arrays must stay alive as long as it is used."""
        count = len(outputs.weight)
        *texts, factors = pairs
        return LessonStruct(
            *(len(factors), len(gradients), rows, self._chunk(count), aim.passes),
            *map(address, texts),
            *(address(factors) if aim.is_weighted else None, address(ends)),
            *(count, count if outputs.drawn is None else outputs.drawn, outputs.stands_for),
            *self._droppings,
            *(aim.smoothing, aim.consistency / 4),
            *(address(gradients), None if outputs.gradients is None else address(outputs.gradients), address(sums)),
        )

    def gather(self) -> None:
        """Add what the other threads have learned to the gradient."""
        for part in self._parts:
            self._gradient += part
            part.zero_()

    def _loss(self, sums: _Array, aim: "_Aim") -> Loss:
        right, log_sum, logits, divergence = sums.tolist()
        plain = right / aim.passes
        uniform = (log_sum - logits / self._model.output.weight.size(0)) / aim.passes
        smoothed = (1 - aim.smoothing) * plain + aim.smoothing * uniform
        objective = smoothed + aim.consistency / 4 * divergence
        return Loss(*(torch.tensor(number, dtype=torch.float64) for number in (objective, smoothed, plain)))

    def _chunk(self, outputs: int) -> int:
        """Return how many tokens' logits are held at a time."""
        panel = self._library.panel
        fitting = (_LOGITS // outputs - panel // 2) // panel * panel
        return max(panel, min(_TOKENS, fitting))

    def _gradients(self, threads: int) -> NDArray[np.uint64]:
        """Return where each thread's gradient is."""
        while len(self._parts) < threads - 1:
            self._parts.append(torch.zeros_like(self._gradient))
        return np.array([_at(self._gradient), *map(_at, self._parts[: threads - 1])], np.uint64)

    def _reach(self, length: int) -> None:
        """Let the table of positions reach that far."""
        if self._position is None or self._position.size(0) < length:
            self._position = self._model.encoder.entry.positions(0, max(_POSITIONS, 2 * length)).contiguous()
            self._trained.position = _at(self._position)


def _describe(model: Transformer, layers: Sequence[Array[TrainedLayerStruct]], weights: Tensor) -> TrainedStruct:
    encoder, decoder = layers
    first = model.encoder.layers[0]
    attention, inner = first.self_attention, first.feed_forward.inner
    return TrainedStruct(
        encoder_layers=len(encoder),
        decoder_layers=len(decoder),
        heads=attention.heads,
        d_model=inner.in_features,
        d_k=attention.widths[0] // attention.heads,
        d_v=attention.widths[2] // attention.heads,
        d_ff=inner.out_features,
        vocabulary=model.output.weight.size(0),
        epsilon=first.self_attention_residual.layer_norm.eps,
        scale=model.encoder.entry.embedding.scale,
        encoder=encoder,
        decoder=decoder,
        source_embedding=_at(model.encoder.entry.embedding.weight),
        target_embedding=_at(model.decoder.entry.embedding.weight),
        weights=_at(weights),
    )


def _cost_of_tokens(trained: TrainedStruct, outputs: int) -> TokenCost:
    keys, mixed = trained.heads * trained.d_k, trained.heads * trained.d_v
    own, other = 2 * keys + 2 * mixed + 2 * trained.d_ff, keys + mixed
    return TokenCost(
        source=trained.encoder_layers * own + trained.decoder_layers * other,
        target=trained.decoder_layers * (own + other) + outputs,
    )


def _layer(layer: EncoderLayer | DecoderLayer) -> TrainedLayerStruct:
    attention, feed_forward = layer.self_attention, layer.feed_forward
    struct = TrainedLayerStruct(
        query_key_value=_at(attention.query_key_value.weight),
        self_output=_at(attention.output.weight),
        inner=_at(feed_forward.inner.weight),
        inner_bias=_at(feed_forward.inner.bias),
        outer=_at(feed_forward.outer.weight),
        outer_bias=_at(feed_forward.outer.bias),
        self_norm=_norm(layer.self_attention_residual.layer_norm),
        feed_forward_norm=_norm(layer.feed_forward_residual.layer_norm),
    )
    if isinstance(layer, DecoderLayer):
        cross = layer.cross_attention
        struct.cross_query = _at(cross.query.weight)
        struct.cross_key_value = _at(cross.key_value.weight)
        struct.cross_output = _at(cross.output.weight)
        struct.cross_norm = _norm(layer.cross_attention_residual.layer_norm)
    return struct


def _dropping(place: Dropout) -> DroppingStruct:
    probability = place.probability
    return DroppingStruct(dropped_levels(probability) - LEVELS // 2, probability > 0, 1 / (1 - probability))


def _norm(norm: nn.LayerNorm) -> NormStruct:
    return NormStruct(_at(norm.weight), _at(norm.bias))


def _at(tensor: Tensor) -> int:
    assert tensor.is_contiguous()
    return tensor.data_ptr()
