"""The layers of encoder and decoder (§3.1): sub-layers, each inside a residual block.

Shapes: B batch, S source length, T target length, K beams, D d_model.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn
from torch.nn import functional as F

from regard.model.attention import CrossAttention, KeysValues, SelfAttention
from regard.model.dropout import Dropout, draw
from regard.model.initial import glorot, shrink
from regard.model.past import Past
from regard.native.functions import can_join, join

Activation = Literal["relu", "gelu", "swish"]
Norm = Literal["post", "pre"]

_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu, "swish": F.silu}


@dataclass(frozen=True)
class LayerShape:
    """The numbers that every layer of a model shares."""

    d_model: int
    d_ff: int
    heads: int
    d_k: int
    d_v: int
    dropout: float
    norm: Norm = "post"
    attention_bias: bool = False
    activation: Activation = "relu"
    neighbours: int | None = None
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    initial_gain: float = 1.0


class Residual(nn.Module):
    """The block around every sub-layer: LayerNorm(x + Dropout(Sublayer(x))) (§3.1, §5.4).

    Pre-norm, which is not the paper's, is x + Dropout(Sublayer(LayerNorm(x))).
    """

    def __init__(self, d_model: int, dropout: float, norm: Norm) -> None:
        super().__init__()
        self.layer_norm = nn.LayerNorm(d_model)
        self.dropout = Dropout(dropout)
        self.pre = norm == "pre"

    def enter(self, x: Tensor) -> Tensor:
        """Return what the sub-layer reads."""
        return self.layer_norm(x) if self.pre else x

    def leave(self, x: Tensor, change: Tensor) -> Tensor:
        """Join the block's input with the sub-layer's output."""
        if not self.pre and can_join(x, change):
            return self._join(x, change)
        x = x + self.dropout(change)
        return x if self.pre else self.layer_norm(x)

    def _join(self, x: Tensor, change: Tensor) -> Tensor:
        """Return LayerNorm(x + Dropout(change)), computed in one pass by the compiled library."""
        probability = self.dropout.probability if self.training else 0.0
        drawn = draw(change.shape, probability) if probability else None
        norm = self.layer_norm
        return join(x, change, norm.weight, norm.bias, norm.eps, drawn)


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W1 + b1) W2 + b2, at each position alike (§3.3).

    Dropout after the activation is not the paper's.
    """

    def __init__(self, d_model: int, d_ff: int, activation: Activation, dropout: float = 0.0) -> None:
        super().__init__()
        self.inner = glorot(nn.Linear(d_model, d_ff))
        self.outer = glorot(nn.Linear(d_ff, d_model))
        self.activation = _ACTIVATIONS[activation]
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of the same shape, (…, D)."""
        return self.outer(self.dropout(self.activation(self.inner(x))))  # type: ignore[no-any-return]


class EncoderLayer(nn.Module):
    """Self-attention, then a feed-forward network."""

    def __init__(self, shape: LayerShape) -> None:
        super().__init__()
        self.self_attention = _self_attention(shape)
        self.feed_forward = _feed_forward(shape)
        self.self_attention_residual = _residual(shape)
        self.feed_forward_residual = _residual(shape)
        shrink((self.self_attention.output, self.feed_forward.outer), shape.initial_gain)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Return (B, S, D); `mask` is (B, 1, 1, S)."""
        block = self.self_attention_residual
        x = block.leave(x, self.self_attention(block.enter(x), mask))
        block = self.feed_forward_residual
        return block.leave(x, self.feed_forward(block.enter(x)))


class DecoderLayer(nn.Module):
    """Masked self-attention, attention over the encoder's output, then a feed-forward network."""

    def __init__(self, shape: LayerShape) -> None:
        super().__init__()
        self.self_attention = _self_attention(shape)
        self.cross_attention = CrossAttention(
            shape.d_model, shape.heads, shape.d_k, shape.d_v, shape.attention_bias, shape.attention_dropout
        )
        self.feed_forward = _feed_forward(shape)
        self.self_attention_residual = _residual(shape)
        self.cross_attention_residual = _residual(shape)
        self.feed_forward_residual = _residual(shape)
        adding = self.self_attention.output, self.cross_attention.output, self.feed_forward.outer
        shrink(adding, shape.initial_gain)

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor | None) -> Tensor:
        """Return (B, T, D) for all positions at once; `memory` is (B, S, D), `mask` (B, 1, 1, S).

        Padding on the target's right needs no mask: no real position looks there.
        """
        block = self.self_attention_residual
        x = block.leave(x, self.self_attention(block.enter(x), causal=True))
        return self._look_and_think(x, self.cross_attention.project_memory(memory), mask)

    def step(self, x: Tensor, past: Past | None, source: KeysValues, mask: Tensor | None) -> tuple[Tensor, Past]:
        """Return (B, K, D) for one new position of each of the K hypotheses of B sentences, and the longer past."""
        batch, beams, width = x.shape
        block = self.self_attention_residual
        # Hypotheses have pasts of their own, so that to self-attention they are B·K separate sequences.
        change, past = self.self_attention.step(block.enter(x).reshape(batch * beams, 1, width), past)
        x = block.leave(x, change.view(batch, beams, width))
        return self._look_and_think(x, source, mask), past

    def _look_and_think(self, x: Tensor, source: KeysValues, mask: Tensor | None) -> Tensor:
        block = self.cross_attention_residual
        x = block.leave(x, self.cross_attention(block.enter(x), source, mask))
        block = self.feed_forward_residual
        return block.leave(x, self.feed_forward(block.enter(x)))


def _self_attention(shape: LayerShape) -> SelfAttention:
    return SelfAttention(
        shape.d_model,
        shape.heads,
        shape.d_k,
        shape.d_v,
        bias=shape.attention_bias,
        neighbours=shape.neighbours,
        dropout=shape.attention_dropout,
    )


def _feed_forward(shape: LayerShape) -> FeedForward:
    return FeedForward(shape.d_model, shape.d_ff, shape.activation, shape.activation_dropout)


def _residual(shape: LayerShape) -> Residual:
    return Residual(shape.d_model, shape.dropout, shape.norm)
