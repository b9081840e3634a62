"""Parts of the model that are compiled for training: attention and the end of a residual block, with their gradients.

Shapes: B batch, N queries, M keys, H heads, E head width, D d_model.

Each computes what the formula beside its call in `regard.model` says; on short sentences most of torch's time goes into
calling operators, copying heads to and fro, and passes over memory that one pass can do.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.native.library import AttentionStruct, Library, ResidualStruct, RowsStruct, find_library

_UNIT = 16  # all widths are multiples of this
_LONGEST = 256  # positions; torch cuts longer ones into blocks, which is better for them


def can_attend(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> bool:
    """Say whether `attend` can do this here, and does it well."""
    if queries.dim() != 4 or max(queries.size(2), keys.size(2)) > _LONGEST:
        return False
    if mask is not None and mask.shape != (queries.size(0), 1, 1, keys.size(2)):
        return False
    return all(_fits(one) for one in (queries, keys, values))


def can_join(x: Tensor, change: Tensor) -> bool:
    """Say whether `join` can do this here."""
    return _fits(x) and _fits(change)


def _fits(x: Tensor) -> bool:
    """Say whether the library can compute with a tensor's rows: plain floats on the CPU, one after the other.

    It computes in one thread, as training on a CPU does in each of its processes; with more of them torch is faster.
    """
    return (
        x.device.type == "cpu"
        and x.dtype == torch.float32
        and x.size(-1) % _UNIT == 0
        and x.stride(-1) == 1
        and torch.get_num_threads() == 1
        and find_library() is not None
        and not torch.is_autocast_enabled("cpu")
    )


def attend(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
    """Return softmax(Q Kᵀ / √d_k) V, (B, H, N, d_v); queries are (B, H, N, d_k), keys and values (B, H, M, …).

    `mask` (B, 1, 1, M) says which keys may be looked at; `causal` lets a query see the keys up to its own position.
    """
    return _Attend.apply(queries, keys, values, mask, causal)  # type: ignore[no-any-return, no-untyped-call]


class Drawn(NamedTuple):
    """What dropout has drawn: it drops the elements whose 16 random bits are below the bound, and scales the others."""

    bits: Tensor
    bound: int
    scale: float


def join(x: Tensor, change: Tensor, weight: Tensor, bias: Tensor, epsilon: float, drawn: Drawn | None) -> Tensor:
    """Return LayerNorm(x + Dropout(change)), (…, D)."""
    return _Join.apply(x, change, weight, bias, epsilon, drawn)  # type: ignore[no-any-return, no-untyped-call]


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        allowed = None if mask is None else mask.reshape(mask.size(0), mask.size(-1)).contiguous()
        ctx.save_for_backward(queries, keys, values, allowed)
        ctx.causal = causal
        batch, heads, length, _ = queries.shape
        mixed = queries.new_empty(batch, length, heads, values.size(3))
        _check(_library().attend(_attention(queries, keys, values, allowed, causal), mixed.data_ptr()))
        return mixed.transpose(1, 2)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        queries, keys, values, allowed = ctx.saved_tensors
        gradient = gradient.transpose(1, 2).contiguous()
        back = [one.new_empty(one.transpose(1, 2).shape) for one in (queries, keys, values)]
        what = _attention(queries, keys, values, allowed, ctx.causal)
        _check(_library().attend_back(what, gradient.data_ptr(), *(one.data_ptr() for one in back)))
        return *(one.transpose(1, 2) for one in back), None, None


class _Join(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, change: Tensor, weight: Tensor, bias: Tensor, epsilon: float, drawn: Drawn | None
    ) -> Tensor:
        x, change = x.contiguous(), change.contiguous()
        y, centred, factor = torch.empty_like(x), torch.empty_like(x), x.new_empty(x.shape[:-1])
        block = _block(x, weight, bias, epsilon, drawn)
        _library().join(block, *(one.data_ptr() for one in (x, change, centred, factor, y)))
        ctx.save_for_backward(centred, factor, weight, bias, None if drawn is None else drawn.bits)
        ctx.constants = epsilon, drawn and drawn[1:]
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        centred, factor, weight, bias, bits = ctx.saved_tensors
        epsilon, rest = ctx.constants
        gradient = gradient.contiguous()
        x_back, change_back = torch.empty_like(centred), torch.empty_like(centred)
        weight_back, bias_back = torch.zeros_like(weight), torch.zeros_like(bias)
        block = _block(centred, weight, bias, epsilon, None if bits is None else Drawn(bits, *rest))
        tensors = gradient, centred, factor, x_back, change_back, weight_back, bias_back
        _library().part(block, *(one.data_ptr() for one in tensors))
        return x_back, change_back, weight_back, bias_back, None, None


def _block(x: Tensor, weight: Tensor, bias: Tensor, epsilon: float, drawn: Drawn | None) -> ResidualStruct:
    width = x.size(-1)
    dropout = (None, 0, 1.0) if drawn is None else (drawn.bits.data_ptr(), drawn.bound, drawn.scale)
    return ResidualStruct(x.numel() // width, width, *dropout, epsilon, weight.data_ptr(), bias.data_ptr())


def _attention(queries: Tensor, keys: Tensor, values: Tensor, allowed: Tensor | None, causal: bool) -> AttentionStruct:
    batch, heads, length, d_k = queries.shape
    sizes = batch, heads, length, keys.size(2), d_k, values.size(3)
    mask = None if allowed is None else allowed.data_ptr()
    return AttentionStruct(*sizes, causal, mask, _rows(queries), _rows(keys), _rows(values))


def _rows(x: Tensor) -> RowsStruct:
    return RowsStruct(x.data_ptr(), *x.stride()[:3])


def _library() -> Library:
    library = find_library()
    assert library is not None
    return library


def _check(done: int) -> None:
    if not done:
        raise MemoryError("no memory for attention")
