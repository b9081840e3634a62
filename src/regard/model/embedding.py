"""Embeddings and the output layer (§3.4): tokens to vectors and back.

Shapes: B batch, T length, D d_model, V vocabulary.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.model.dropout import Dropout, WordDropout
from regard.model.initial import embedding_matrix


class Embedding(nn.Module):
    """A vector for each token, multiplied by √d_model (§3.4)."""

    def __init__(self, vocabulary_size: int, d_model: int) -> None:
        super().__init__()
        self.weight = embedding_matrix(vocabulary_size, d_model)
        self.scale = math.sqrt(d_model)

    def forward(self, tokens: Tensor) -> Tensor:
        """Turn (B, T) token ids into (B, T, D)."""
        return F.embedding(tokens, self.weight) * self.scale


class InputLayer(nn.Module):
    """What a stack of layers reads: Dropout(embedding + position) (§3.4, §3.5, §5.4).

    With word dropout, which is not the paper's, some tokens have no embedding, and only their position tells of them.
    """

    def __init__(self, embedding: Embedding, positions: nn.Module, dropout: float, word_dropout: float = 0.0) -> None:
        super().__init__()
        self.embedding = embedding
        self.positions = positions
        self.word_dropout = WordDropout(word_dropout)
        self.dropout = Dropout(dropout)

    def forward(self, tokens: Tensor, start: int = 0) -> Tensor:
        """Turn (B, T) token ids at positions start, start + 1, … into (B, T, D)."""
        embedded = self.word_dropout(self.embedding(tokens))
        return self.dropout(embedded + self.positions(start, tokens.size(1)))  # type: ignore[no-any-return]


class OutputLayer(nn.Module):
    """The linear map before the softmax; the paper's is the embedding matrix itself and has no bias."""

    def __init__(self, embedding: Embedding | None, vocabulary_size: int, d_model: int) -> None:
        super().__init__()
        self.weight = embedding_matrix(vocabulary_size, d_model) if embedding is None else embedding.weight

    def forward(self, hidden: Tensor) -> Tensor:
        """Turn (…, D) into logits (…, V)."""
        return F.linear(hidden, self.weight)

    def restricted(self, rows: Tensor) -> Callable[[Tensor], Tensor]:
        """Return what turns (…, D) into the logits (…, R) of the tokens `rows` (R,) alone."""
        weight = self.weight.detach()[rows]
        return lambda hidden: F.linear(hidden, weight)

    def log_probabilities(self, hidden: Tensor) -> Tensor:
        """Turn (…, D) into log-probabilities (…, V), in single precision or better."""
        logits = self(hidden)
        if torch.is_grad_enabled() or logits.dtype != torch.float32:
            return logits.log_softmax(dim=-1, dtype=torch.promote_types(logits.dtype, torch.float32))  # type: ignore[no-any-return]
        return torch.log_softmax(logits, dim=-1, out=logits)  # in place: there is one for each word of the vocabulary
