"""What training and search may ask of a model; every architecture that answers gets the same of both.

Shapes: B batch, S source length, T target length, K beams, D d_model, V vocabulary.
"""

from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

from torch import Tensor


@dataclass(frozen=True)
class Memory:
    """The encoder's output: hidden states (B, S, D) and which of them are real (B, 1, 1, S); None: all."""

    hidden: Tensor
    mask: Tensor | None


class State(Protocol):
    """What a decoder remembers between two steps."""

    def select(self, parents: Tensor) -> Self:
        """Return the state of hypotheses (B', K') that continue the rows `parents` of the old B·K."""
        ...


StateType = TypeVar("StateType", bound=State)


class TranslationModel(Protocol[StateType]):
    """A model that reads a source and predicts a target token by token."""

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        """Return hidden states (B, T, D) before the output layer; `src` (B, S), `tgt` (B, T) shifted right."""
        ...

    def encode(self, src: Tensor) -> Memory:
        """Read the source (B, S)."""
        ...

    def start(self, memory: Memory) -> StateType:
        """Return the state before the first token, with one hypothesis a sentence."""
        ...

    def step(self, state: StateType, tokens: Tensor) -> tuple[Tensor, StateType]:
        """Read the newest token (B, K) of each hypothesis; return log-probabilities (B, K, V) of the next."""
        ...
