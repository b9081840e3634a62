"""The Transformer (§3): the paper's model, whole.

Shapes: B batch, S source length, T target length, K beams, D d_model, V vocabulary.
"""

from collections.abc import Sequence

from torch import Tensor, nn

from regard.model.cache import DecoderState
from regard.model.embedding import InputLayer, OutputLayer
from regard.model.layers import DecoderLayer, EncoderLayer, LayerShape
from regard.model.past import Past
from regard.model.protocol import Memory
from regard.tokens import PAD


class Encoder(nn.Module):
    """N layers over the embedded source (§3.1)."""

    def __init__(self, shape: LayerShape, layers: int, entry: InputLayer) -> None:
        super().__init__()
        self.entry = entry
        self.stack = nn.ModuleList(EncoderLayer(shape) for _ in range(layers))
        self.norm = _last_norm(shape)

    @property
    def layers(self) -> Sequence[EncoderLayer]:
        """The layers from the first to the last."""
        return list(self.stack)  # type: ignore[arg-type]

    def forward(self, src: Tensor) -> Memory:
        """Read the source (B, S); nobody looks at padding."""
        real = src != PAD
        mask = None if bool(real.all()) else real[:, None, None, :]  # (B, 1, 1, S)
        x = self.entry(src)
        for layer in self.layers:
            x = layer(x, mask)
        return Memory(self.norm(x), mask)


class Decoder(nn.Module):
    """N layers over the embedded target so far, looking at the encoder's output (§3.1)."""

    def __init__(self, shape: LayerShape, layers: int, entry: InputLayer) -> None:
        super().__init__()
        self.entry = entry
        self.stack = nn.ModuleList(DecoderLayer(shape) for _ in range(layers))
        self.norm = _last_norm(shape)

    @property
    def layers(self) -> Sequence[DecoderLayer]:
        """The layers from the first to the last."""
        return list(self.stack)  # type: ignore[arg-type]

    def forward(self, tgt: Tensor, memory: Memory) -> Tensor:
        """Return (B, T, D) for all positions of the target (B, T) at once."""
        x = self.entry(tgt)
        for layer in self.layers:
            x = layer(x, memory.hidden, memory.mask)
        return self.norm(x)  # type: ignore[no-any-return]

    def start(self, memory: Memory) -> DecoderState:
        """Make the source's keys and values, once for all hypotheses and steps."""
        source = tuple(layer.cross_attention.project_memory(memory.hidden) for layer in self.layers)
        return DecoderState((None,) * len(source), source, memory.mask, beams=1, position=0)

    def step(self, state: DecoderState, tokens: Tensor) -> tuple[Tensor, DecoderState]:
        """Read one token a hypothesis (B, K); return (B, K, D) and the state one position on."""
        batch, beams = tokens.shape
        x = self.entry(tokens.reshape(batch * beams, 1), start=state.position).view(batch, beams, -1)
        past: list[Past] = []
        for layer, before, source in zip(self.layers, state.past, state.source, strict=True):
            x, now = layer.step(x, before, source, state.mask)
            past.append(now)
        return self.norm(x), DecoderState(tuple(past), state.source, state.mask, beams, state.position + 1)


class Transformer(nn.Module):
    """An encoder, a decoder and the output layer; answers to `regard.model.protocol.TranslationModel`."""

    def __init__(self, encoder: Encoder, decoder: Decoder, output: OutputLayer) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder
        self.output = output

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        """Return hidden states (B, T, D) for `src` (B, S) and `tgt` (B, T), the target shifted right by one."""
        return self.decoder(tgt, self.encoder(src))  # type: ignore[no-any-return]

    def encode(self, src: Tensor) -> Memory:
        """Read the source (B, S)."""
        return self.encoder(src)  # type: ignore[no-any-return]

    def start(self, memory: Memory) -> DecoderState:
        """Return the state before the first token, with one hypothesis a sentence."""
        return self.decoder.start(memory)

    def step(self, state: DecoderState, tokens: Tensor) -> tuple[Tensor, DecoderState]:
        """Read the newest token (B, K) of each hypothesis; return log-probabilities (B, K, V) of the next."""
        hidden, state = self.decoder.step(state, tokens)
        return self.output.log_probabilities(hidden), state


def _last_norm(shape: LayerShape) -> nn.Module:
    """Pre-norm leaves a stack's last sum as it is, so that it needs one norm more; post-norm does not."""
    return nn.LayerNorm(shape.d_model) if shape.norm == "pre" else nn.Identity()


def count_weights(model: nn.Module) -> int:
    """Return the number of trained weights, shared ones counted once."""
    return sum(parameter.numel() for parameter in model.parameters())
