"""Looking in: the attention weights of a sentence pair, layer by layer and head by head.

Shapes: B batch, S source length, T target length, H heads.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from regard.model.attention import CrossAttention, SelfAttention
from regard.model.transformer import Transformer


class Attention(NamedTuple):
    """Who looks at whom: a tensor a layer, each row a distribution."""

    encoder: list[Tensor]  # (B, H, S, S)
    decoder: list[Tensor]  # (B, H, T, T)
    cross: list[Tensor]  # (B, H, T, S)


@torch.inference_mode()
def observe_attention(model: Transformer, src: Tensor, tgt: Tensor) -> Attention:
    """Run the model once over `src` (B, S) and `tgt` (B, T), shifted right, and return all attention weights."""
    encoder = [layer.self_attention for layer in model.encoder.layers]
    decoder = [layer.self_attention for layer in model.decoder.layers]
    cross = [layer.cross_attention for layer in model.decoder.layers]
    with _recorded([*encoder, *decoder, *cross]) as weights:
        model.forward(src, tgt)
    return Attention([weights[m] for m in encoder], [weights[m] for m in decoder], [weights[m] for m in cross])


@torch.inference_mode()
def observe_cross_attention(model: Transformer, src: Tensor, tgt: Tensor, layers: Sequence[int]) -> Tensor:
    """Return how the target looks at the source, (B, T, S), averaged over all heads of some decoder layers."""
    attentions: list[nn.Module] = [model.decoder.layers[layer].cross_attention for layer in layers]
    with _recorded(attentions) as weights:
        model.forward(src, tgt)
    return torch.stack([weights[one].mean(dim=1) for one in attentions]).mean(dim=0)


@contextmanager
def _recorded(modules: list[nn.Module]) -> Iterator[dict[nn.Module, Tensor]]:
    """Record the weights of attention modules while the block runs, from what each is called with."""
    weights: dict[nn.Module, Tensor] = {}

    def record(module: nn.Module, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        assert isinstance(module, SelfAttention | CrossAttention)
        weights[module] = module.weights(*arguments, **named)

    hooks = [module.register_forward_pre_hook(record, with_kwargs=True) for module in modules]
    try:
        yield weights
    finally:
        for hook in hooks:
            hook.remove()
