"""A Transformer laid out for the compiled engine, and the state of its searches.

Shapes: B sentences, K hypotheses a sentence, S source length, T positions so far, D d_model, V vocabulary.
"""

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.machine import Machine
from regard.model.layers import DecoderLayer, EncoderLayer
from regard.model.quantize import round_rows
from regard.model.transformer import Decoder, Encoder, Transformer
from regard.native.library import (
    LayerStruct,
    Library,
    LinearStruct,
    NormStruct,
    StackStruct,
    StepStruct,
    address,
    find_library,
)
from regard.search.predictor import Array, Likeliest
from regard.tokens import PAD

_UNIT = 16  # all widths must be multiples of this
_PIECE = 1 << 25  # bytes of an arena's piece; numpy asks for huge pages for large arrays
_LINE = 64  # bytes of a line of the processor's cache
_POSITIONS = 256  # of the tables of positions at first; they grow


def lay_out_for(machine: Machine, model: Transformer) -> "NativeModel | None":
    """Lay out a model as it is now for the compiled engine; None where there is none for this machine or model."""
    library, eight_bits = find_library(), machine.precision == "int8"
    if library is None or machine.device.type != "cpu" or not can_run(model):
        return None
    if machine.precision not in ("float32", "int8") or (eight_bits and not library.has_int8):
        return None
    return NativeModel(model, library, eight_bits)


def can_run(model: Transformer) -> bool:
    """Say whether the engine knows everything that this model is made of."""
    layers: list[EncoderLayer | DecoderLayer] = [*model.encoder.layers, *model.decoder.layers]
    return model.output.weight.dtype == torch.float32 and all(
        layer.feed_forward.activation is nn.functional.relu
        and layer.self_attention.neighbours is None
        and not any(width % _UNIT for width in _widths(layer))
        for layer in layers
    )


def _widths(layer: EncoderLayer | DecoderLayer) -> tuple[int, ...]:
    attention, inner = layer.self_attention, layer.feed_forward.inner
    heads = attention.heads
    return inner.in_features, inner.out_features, attention.widths[0] // heads, attention.widths[2] // heads


@dataclass(frozen=True)
class NativeState:
    """What a search has behind it. Nothing is copied from step to step: hypotheses say where their past lies."""

    memory: Array  # keys and values of all sources, laid out by the engine
    memory_size: int  # of one layer
    starts: Array  # of each sentence of the batch in a layer's part
    lengths: Array  # of the sources
    sentence: Array  # (B,) which sentence of the batch this is
    ancestors: Array  # (T, B·K): the row of each step that a hypothesis comes from
    kept: tuple[Array, ...] = ()  # each step's keys and values, (layers, rows, width)
    places: tuple[int, ...] = ()  # where in memory they are
    heights: tuple[int, ...] = ()  # how many rows they have


class NativeModel:
    """A model that finds the likeliest next tokens by itself, in float32 or in eight bits: a `Predictor` for search."""

    def __init__(self, model: Transformer, library: Library, eight_bits: bool = False) -> None:
        self._library, self._eight_bits = library, eight_bits
        self._weights = self._output_weights = Arena()
        self._entries = model.encoder.entry, model.decoder.entry
        self._encoder, self._decoder = self._stack(model.encoder), self._stack(model.decoder)
        self._matrix = _numbers(model.output.weight)
        self._output = self._linear(model.output.weight, None, self._output_weights)
        self._rows: Array | None = None  # with a shortlist: the id of each output,
        self._allowed: Array | None = None  # and which of them each sentence may use

    def restricted(self, rows: Array, allowed: Array) -> "NativeModel":
        """Return this model with the tokens `rows` (R,) alone, of which sentence b may use those `allowed` (B, R).

        Outside, a token is its number among the R, as in `regard.model.restricted`.
        """
        narrow = copy(self)
        narrow._output_weights = Arena()
        narrow._output = self._linear(torch.from_numpy(self._matrix[rows]), None, narrow._output_weights)
        narrow._rows, narrow._allowed = rows, np.ascontiguousarray(allowed, np.uint8)
        return narrow

    def begin(self, src: Tensor) -> NativeState:
        """Read the source (B, S); return the state before the first token, with one hypothesis a sentence."""
        real = (src != PAD).numpy()
        lengths = real.sum(axis=1, dtype=np.int32)
        tokens = src.numpy()[real].astype(np.int32)
        hidden = np.empty((len(tokens), self._encoder.d_model), np.float32)
        self._reach(src.size(1))
        self._call(
            self._library.encode, self._encoder, len(lengths), address(lengths), address(tokens), address(hidden)
        )
        sizes = np.array([self._library.memory_size(self._decoder, length) for length in lengths.tolist()], np.int64)
        starts, size = np.cumsum(sizes) - sizes, int(sizes.sum())
        memory = np.empty((self._decoder.layers, size), np.float32)
        arguments = address(lengths), address(hidden), address(starts), address(memory), size
        self._call(self._library.remember, self._decoder, len(lengths), *arguments)
        sentence = np.arange(len(lengths), dtype=np.int32)
        return NativeState(memory, size, starts, lengths, sentence, np.empty((0, len(lengths)), np.int32))

    def predict(self, state: NativeState, newest: Array, at_limit: Array, count: int) -> tuple[Likeliest, NativeState]:
        """Read the newest token (B, K) of each hypothesis; return the `count` likeliest next ones; see `Predictor`."""
        batch, beams = newest.shape
        stack, rows, past = self._decoder, batch * beams, len(state.kept)
        self._reach(past + 1)
        kept = np.empty((stack.layers, rows, stack.heads * (stack.d_k + stack.d_v)), np.float32)
        state = replace(
            state,
            ancestors=np.concatenate([state.ancestors, np.arange(rows, dtype=np.int32)[None]]),
            kept=(*state.kept, kept),
            places=(*state.places, address(kept)),
            heights=(*state.heights, rows),
        )
        tokens = np.array(newest if self._rows is None else self._rows[newest], np.int32)
        limited = np.array(at_limit, np.uint8)
        places, heights = np.array(state.places, np.uint64), np.array(state.heights, np.int32)
        shape = batch, beams, count
        found = Likeliest(np.empty(shape, np.float32), np.empty(shape, np.int32))
        step = StepStruct(
            *(batch, beams, past, count),
            *(
                address(tokens),
                address(state.sentence),
                address(state.starts),
                address(state.lengths),
                address(state.memory),
            ),
            state.memory_size,
            *(address(places), address(heights), address(state.ancestors), address(limited)),
            None if self._allowed is None else address(self._allowed),
            address(found.log_probabilities),
            address(found.tokens),
        )
        self._call(self._library.step, stack, self._output, step)
        return found, state

    def select(self, state: NativeState, parents: Array) -> NativeState:
        """Return the state of hypotheses (B', K') that continue the rows `parents` of the old B·K."""
        beams = state.ancestors.shape[1] // len(state.sentence)
        return replace(
            state,
            ancestors=state.ancestors.take(parents.ravel(), axis=1),
            sentence=state.sentence[parents[:, 0] // beams],
        )

    def _call(self, function: Any, *arguments: Any) -> None:
        self._library.use_threads(torch.get_num_threads())
        if not function(*arguments):
            raise MemoryError("no memory for a step of search")

    # ---- laying out --------------------------------------------------------------------------------------------------

    def _stack(self, stack: Encoder | Decoder) -> StackStruct:
        layers = (LayerStruct * len(stack.layers))(*map(self._layer, stack.layers))
        first = stack.layers[0]
        d_model, d_ff, d_k, d_v = _widths(first)
        embedding, norm = stack.entry.embedding, first.self_attention_residual
        return StackStruct(
            layers=len(layers),
            heads=first.self_attention.heads,
            d_model=d_model,
            d_k=d_k,
            d_v=d_v,
            d_ff=d_ff,
            pre_norm=norm.pre,
            epsilon=norm.layer_norm.eps,
            scale=embedding.scale,
            layer=layers,
            last_norm=self._norm(stack.norm),
            embedding=self._weights.put(_numbers(embedding.weight)),
        )

    def _layer(self, layer: EncoderLayer | DecoderLayer) -> LayerStruct:
        attention, feed_forward = layer.self_attention, layer.feed_forward
        parts = {
            "query_key_value": self._map(attention.query_key_value),
            "self_output": self._map(attention.output),
            "inner": self._map(feed_forward.inner),
            "outer": self._map(feed_forward.outer),
            "self_norm": self._norm(layer.self_attention_residual.layer_norm),
            "feed_forward_norm": self._norm(layer.feed_forward_residual.layer_norm),
        }
        if isinstance(layer, DecoderLayer):
            cross = layer.cross_attention
            parts["cross_query"] = self._map(cross.query)
            parts["cross_key_value"] = self._map(cross.key_value)
            parts["cross_output"] = self._map(cross.output)
            parts["cross_norm"] = self._norm(layer.cross_attention_residual.layer_norm)
        return LayerStruct(**parts)

    def _map(self, linear: nn.Linear) -> LinearStruct:
        return self._linear(linear.weight, linear.bias, self._weights)

    def _linear(self, weight: Tensor, bias: Tensor | None, arena: "Arena") -> LinearStruct:
        """Lay out weights (outputs, inputs) in panels."""
        outputs, inputs = weight.shape
        scale = None
        if self._eight_bits:
            rounded = round_rows(weight.detach().float())
            panels = eight_bit_panels(rounded.numbers.numpy(), self._library.panel)
            scale = arena.put(_filled_up(rounded.scale.numpy(), self._library.panel))
        else:
            panels = float_panels(_numbers(weight), self._library.panel)
        added = None if bias is None else arena.put(_filled_up(_numbers(bias), self._library.panel))
        return LinearStruct(inputs, outputs, arena.put(panels), scale, added)

    def _norm(self, norm: nn.Module) -> NormStruct:
        if not isinstance(norm, nn.LayerNorm):
            return NormStruct()
        return NormStruct(self._weights.put(_numbers(norm.weight)), self._weights.put(_numbers(norm.bias)))

    def _reach(self, length: int) -> None:
        """Let the tables of positions reach that far."""
        for stack, entry in zip((self._encoder, self._decoder), self._entries, strict=True):
            if length > stack.positions:
                far = max(_POSITIONS, 2 * length)
                stack.position, stack.positions = self._weights.put(_numbers(entry.positions(0, far))), far


class Arena:
    """Memory for weights in few large pieces, which the system backs by huge pages: so it is read fast."""

    def __init__(self) -> None:
        self._pieces: list[Array] = []
        self._used = 0

    def put(self, array: Array) -> int:
        """Copy an array into the arena, where it stays as long as the arena does; return its address."""
        data = np.ascontiguousarray(array).view(np.uint8).ravel()
        if not self._pieces or self._used + len(data) > len(self._pieces[-1]):
            self._pieces.append(np.empty(max(len(data), _PIECE) + _LINE, np.uint8))
            self._used = -address(self._pieces[-1]) % _LINE
        place = self._pieces[-1][self._used : self._used + len(data)]
        place[:] = data
        self._used += -(-len(data) // _LINE) * _LINE
        return address(place)


def float_panels(weight: Array, panel: int) -> Array:
    """Lay out (outputs, inputs) as (panels, inputs, outputs of a panel)."""
    weight = _filled_up(weight, panel)
    return np.ascontiguousarray(weight.reshape(-1, panel, weight.shape[1]).transpose(0, 2, 1))


def eight_bit_panels(numbers: Array, panel: int) -> Array:
    """Lay out (outputs, inputs) as (panels, fours of inputs, outputs of a panel, 4), each number raised by 128."""
    numbers = (_filled_up(numbers, panel).astype(np.int16) + 128).astype(np.uint8)
    return np.ascontiguousarray(numbers.reshape(-1, panel, numbers.shape[1] // 4, 4).transpose(0, 2, 1, 3))


def _filled_up(array: Array, unit: int) -> Array:
    """Fill up the first dimension with zeros to a multiple of `unit`."""
    missing = -len(array) % unit
    return np.pad(array, [(0, missing)] + [(0, 0)] * (array.ndim - 1))


def _numbers(tensor: Tensor) -> Array:
    return tensor.detach().float().cpu().numpy()
