"""The compiled library: found, loaded, and described to ctypes. engine.h has the same structures.

A C compiler builds it when regard is installed. Where there was none, or the processor is of another kind, there is no
library, and torch computes what it would have computed.
"""

import ctypes
import os
from ctypes import POINTER, c_float, c_int, c_int32, c_int64, c_void_p
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

_NAME = "_engine"
_SWITCH = "REGARD_NATIVE"  # the environment's way to say "off"
_INTERFACE = 10  # of engine.h
_KINDS = {512: "avx512", 256: "avx2"}


class LinearStruct(ctypes.Structure):
    """A linear map with its weights in panels."""

    _fields_ = (
        ("inputs", c_int32),
        ("outputs", c_int32),
        ("panels", c_void_p),
        ("scale", c_void_p),
        ("bias", c_void_p),
    )


class NormStruct(ctypes.Structure):
    """A layer norm's weight and bias."""

    _fields_ = (("weight", c_void_p), ("bias", c_void_p))


class LayerStruct(ctypes.Structure):
    """A layer of the encoder or the decoder."""

    _fields_ = (
        ("query_key_value", LinearStruct),
        ("self_output", LinearStruct),
        ("cross_query", LinearStruct),
        ("cross_key_value", LinearStruct),
        ("cross_output", LinearStruct),
        ("inner", LinearStruct),
        ("outer", LinearStruct),
        ("self_norm", NormStruct),
        ("cross_norm", NormStruct),
        ("feed_forward_norm", NormStruct),
    )


class StackStruct(ctypes.Structure):
    """An encoder or a decoder."""

    _fields_ = (
        ("layers", c_int32),
        ("heads", c_int32),
        ("d_model", c_int32),
        ("d_k", c_int32),
        ("d_v", c_int32),
        ("d_ff", c_int32),
        ("pre_norm", c_int32),
        ("positions", c_int32),
        ("epsilon", c_float),
        ("scale", c_float),
        ("layer", POINTER(LayerStruct)),
        ("last_norm", NormStruct),
        ("embedding", c_void_p),
        ("position", c_void_p),
    )


class StepStruct(ctypes.Structure):
    """One step of a search."""

    _fields_ = (
        ("sentences", c_int32),
        ("beams", c_int32),
        ("past", c_int32),
        ("count", c_int32),
        ("tokens", c_void_p),
        ("sentence", c_void_p),
        ("starts", c_void_p),
        ("lengths", c_void_p),
        ("memory", c_void_p),
        ("memory_size", c_int64),
        ("kept", c_void_p),
        ("kept_rows", c_void_p),
        ("ancestors", c_void_p),
        ("at_limit", c_void_p),
        ("allowed", c_void_p),
        ("scores", c_void_p),
        ("best", c_void_p),
    )


class ResidualStruct(ctypes.Structure):
    """The end of a residual block in training."""

    _fields_ = (
        ("rows", c_int32),
        ("width", c_int32),
        ("bits", c_void_p),
        ("bound", c_int32),
        ("scale", c_float),
        ("epsilon", c_float),
        ("weight", c_void_p),
        ("bias", c_void_p),
    )


class RowsStruct(ctypes.Structure):
    """Where the rows of a tensor (batch, heads, positions, width) are."""

    _fields_ = (("start", c_void_p), ("sentence", c_int64), ("head", c_int64), ("position", c_int64))


class AttentionStruct(ctypes.Structure):
    """Attention in training."""

    _fields_ = (
        ("batch", c_int32),
        ("heads", c_int32),
        ("queries", c_int32),
        ("keys", c_int32),
        ("d_k", c_int32),
        ("d_v", c_int32),
        ("causal", c_int32),
        ("allowed", c_void_p),
        ("query", RowsStruct),
        ("key", RowsStruct),
        ("value", RowsStruct),
    )


class LossStruct(ctypes.Structure):
    """The loss of some tokens."""

    _fields_ = (
        ("tokens", c_int32),
        ("d_model", c_int32),
        ("vocabulary", c_int32),
        ("drawn", c_int32),
        ("chunk", c_int32),
        ("passes", c_int32),
        ("stands_for", c_float),
        ("kept", c_float),
        ("uniform", c_float),
        ("consistency", c_float),
        ("hidden", c_void_p),
        ("targets", c_void_p),
        ("factors", c_void_p),
        ("weight", c_void_p),
        ("hidden_grad", c_void_p),
        ("weight_grad", c_void_p),
        ("sums", c_void_p),
    )


class TrainedLayerStruct(ctypes.Structure):
    """The weights of a layer in training."""

    _fields_ = (
        ("query_key_value", c_void_p),
        ("self_output", c_void_p),
        ("cross_query", c_void_p),
        ("cross_key_value", c_void_p),
        ("cross_output", c_void_p),
        ("inner", c_void_p),
        ("inner_bias", c_void_p),
        ("outer", c_void_p),
        ("outer_bias", c_void_p),
        ("self_norm", NormStruct),
        ("cross_norm", NormStruct),
        ("feed_forward_norm", NormStruct),
    )


class TrainedStruct(ctypes.Structure):
    """A model in training."""

    _fields_ = (
        ("encoder_layers", c_int32),
        ("decoder_layers", c_int32),
        ("heads", c_int32),
        ("d_model", c_int32),
        ("d_k", c_int32),
        ("d_v", c_int32),
        ("d_ff", c_int32),
        ("vocabulary", c_int32),
        ("epsilon", c_float),
        ("scale", c_float),
        ("encoder", POINTER(TrainedLayerStruct)),
        ("decoder", POINTER(TrainedLayerStruct)),
        ("source_embedding", c_void_p),
        ("target_embedding", c_void_p),
        ("output", c_void_p),
        ("position", c_void_p),
        ("weights", c_void_p),
    )


class DroppingStruct(ctypes.Structure):
    """What is dropped at places of one kind."""

    _fields_ = (
        ("bound", c_int32),
        ("drops", c_int32),
        ("scale", c_float),
    )


class LessonStruct(ctypes.Structure):
    """Sentences to learn from."""

    _fields_ = (
        ("sentences", c_int32),
        ("threads", c_int32),
        ("rows", c_int32),
        ("chunk", c_int32),
        ("passes", c_int32),
        ("source_lengths", c_void_p),
        ("target_lengths", c_void_p),
        ("source", c_void_p),
        ("target", c_void_p),
        ("following", c_void_p),
        ("draws", c_void_p),
        ("factors", c_void_p),
        ("ends", c_void_p),
        ("outputs", c_int32),
        ("drawn", c_int32),
        ("stands_for", c_float),
        ("dropping", DroppingStruct),
        ("inner_dropping", DroppingStruct),
        ("word_dropping", DroppingStruct),
        ("smoothing", c_float),
        ("consistency", c_float),
        ("gradients", c_void_p),
        ("output_gradients", c_void_p),
        ("sums", c_void_p),
    )


class Library(NamedTuple):
    """The functions for one kind of processor, and what they need to know to lay out weights."""

    kind: str
    panel: int  # outputs of a panel
    has_int8: bool
    encode: Any
    remember: Any
    memory_size: Any
    step: Any
    join: Any
    part: Any
    attend: Any
    attend_back: Any
    loss: Any
    learn: Any
    use_threads: Any  # so many threads share the work of every search from now on


_ARGUMENTS = {
    "encode": [POINTER(StackStruct), c_int, c_void_p, c_void_p, c_void_p],
    "remember": [POINTER(StackStruct), c_int, c_void_p, c_void_p, c_void_p, c_void_p, c_int64],
    "memory_size": [POINTER(StackStruct), c_int],
    "step": [POINTER(StackStruct), POINTER(LinearStruct), POINTER(StepStruct)],
    "join": [POINTER(ResidualStruct), *[c_void_p] * 5],
    "part": [POINTER(ResidualStruct), *[c_void_p] * 7],
    "attend": [POINTER(AttentionStruct), c_void_p],
    "attend_back": [POINTER(AttentionStruct), *[c_void_p] * 4],
    "loss": [POINTER(LossStruct)],
    "learn": [POINTER(TrainedStruct), POINTER(LessonStruct), c_void_p],
}


def address(array: NDArray[Any]) -> int:
    """Return where an array's numbers are, one after the other; it must stay alive as long as they are used."""
    assert array.flags.c_contiguous
    return array.__array_interface__["data"][0]  # type: ignore[no-any-return]


@cache
def find_library() -> Library | None:
    """Return the library for this processor, or None if there is none or it is not wished for."""
    if os.environ.get(_SWITCH) == "off":
        return None
    loaded = _load()
    kind = None if loaded is None else _KINDS.get(loaded.regard_kind())
    return None if kind is None else library_of(kind)


def library_of(kind: str) -> Library:
    """Return the functions for a kind of processor, which must be able to run them."""
    loaded = _load()
    assert loaded is not None
    functions = [getattr(loaded, f"regard_{name}_{kind}") for name in _ARGUMENTS]
    for function, arguments in zip(functions, _ARGUMENTS.values(), strict=True):
        function.argtypes = arguments
    for name in ("memory_size", "learn"):
        functions[list(_ARGUMENTS).index(name)].restype = c_int64
    functions.append(loaded.regard_use_threads)
    wide = kind == "avx512"
    return Library(kind, 32 if wide else 16, wide, *functions)


@cache
def _load() -> ctypes.CDLL | None:
    """Load the file that was built beside this one; one that does not fit is as good as none."""
    for suffix in EXTENSION_SUFFIXES:
        path = Path(__file__).with_name(_NAME + suffix)
        if path.exists():
            try:
                loaded = ctypes.CDLL(str(path))
            except OSError:
                return None
            return loaded if loaded.regard_interface() == _INTERFACE else None
    return None
