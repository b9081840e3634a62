"""A model that may use only some of the vocabulary's tokens, for a batch of sentences.

Shapes: B sentences, K hypotheses a sentence, D d_model, R tokens that the batch may use, S source length.

Outside, a token is its number among the R. Search needs no change for that: the tokens that are not text come first and
keep their numbers.
"""

from dataclasses import dataclass

from torch import Tensor

from regard.model.cache import DecoderState
from regard.model.protocol import Memory
from regard.model.transformer import Transformer


@dataclass(frozen=True)
class RestrictedState:
    """A decoder's state, and which of the R tokens each of its B sentences may use: (B, R)."""

    decoder: DecoderState
    allowed: Tensor

    def select(self, parents: Tensor) -> "RestrictedState":
        """Return the state of new hypotheses, (B', K'), that continue the rows `parents` of the old B·K."""
        sentences = parents[:, 0] // self.decoder.beams
        return RestrictedState(self.decoder.select(parents), self.allowed[sentences])


class RestrictedModel:
    """A Transformer whose output layer has R rows; each sentence's probabilities are those of its own tokens alone.

    So they do not depend on the other sentences of the batch. Answers to `regard.model.protocol.TranslationModel`.
    """

    def __init__(self, model: Transformer, rows: Tensor, allowed: Tensor) -> None:
        """Restrict a model to the tokens `rows` (R,), and sentence b of the batch to those that `allowed` (B, R)."""
        self.rows = rows
        self.allowed = allowed
        self._model = model
        self._logits = model.output.restricted(rows)

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        """Return the model's hidden states (B, T, D); `tgt` has ids of the whole vocabulary."""
        return self._model.forward(src, tgt)

    def encode(self, src: Tensor) -> Memory:
        """Read the source (B, S), which has ids of the whole vocabulary."""
        return self._model.encode(src)

    def start(self, memory: Memory) -> RestrictedState:
        """Return the state before the first token, with one hypothesis a sentence."""
        return RestrictedState(self._model.start(memory), self.allowed)

    def step(self, state: RestrictedState, tokens: Tensor) -> tuple[Tensor, RestrictedState]:
        """Read the newest token (B, K) of each hypothesis; return log-probabilities (B, K, R) of the next."""
        hidden, decoder = self._model.decoder.step(state.decoder, self.rows[tokens])
        logits = self._logits(hidden).float().masked_fill_(~state.allowed[:, None], float("-inf"))
        return logits.log_softmax(dim=-1), RestrictedState(decoder, state.allowed)
