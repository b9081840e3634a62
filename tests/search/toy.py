"""A model that is a table: random probabilities of the next token for every sentence and prefix.

It answers to the model protocol, is cheap, and everything about it can be found out by trying all sequences.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import torch

from regard.model.protocol import Memory
from regard.search.hypothesis import NEVER, Hypothesis, make_hypothesis
from regard.tokens import END, START

VOCABULARY = 7  # the four that are not text, and three words
WORDS = (4, 5, 6)


@dataclass(frozen=True)
class ToyState:
    sentences: tuple[int, ...]  # of each of the B·K hypotheses
    prefixes: tuple[tuple[int, ...], ...]

    def select(self, parents):
        rows = parents.flatten().tolist()
        return ToyState(tuple(self.sentences[row] for row in rows), tuple(self.prefixes[row] for row in rows))


class ToyModel:
    """A sentence is known by its first token; `spread` is the standard deviation of the logits."""

    def __init__(self, seed: int, spread: float = 1.0, end_bonus: float = 0.0) -> None:
        self.seed = seed
        self.spread = spread
        self.end_bonus = end_bonus
        self.steps = 0
        self.log_probabilities = cache(self._log_probabilities)

    def _log_probabilities(self, sentence: int, prefix: tuple[int, ...]) -> list[float]:
        chance = random.Random(f"{self.seed} {sentence} {prefix}")
        logits = torch.tensor([chance.gauss(0, self.spread) for _ in range(VOCABULARY)], dtype=torch.float64)
        logits[END] += self.end_bonus
        return logits.log_softmax(dim=0).tolist()

    def forward(self, src, tgt):
        raise NotImplementedError  # search never asks

    def encode(self, src):
        return Memory(src, None)

    def start(self, memory):
        sentences = tuple(memory.hidden[:, 0].tolist())
        return ToyState(sentences, ((),) * len(sentences))

    def step(self, state, tokens):
        batch, beams = tokens.shape
        assert len(state.prefixes) == batch * beams
        self.steps += 1
        newest = tokens.flatten().tolist()
        prefixes = tuple((*prefix, token) for prefix, token in zip(state.prefixes, newest, strict=True))
        rows = [self.log_probabilities(*row) for row in zip(state.sentences, prefixes, strict=True)]
        scores = torch.tensor(rows, dtype=torch.float32).view(batch, beams, VOCABULARY)
        return scores, replace(state, prefixes=prefixes)

    # ---- what search should find -------------------------------------------------------------------------------------

    def token_scores(self, sentence: int, tokens: tuple[int, ...]) -> list[float]:
        """The log-probability of each token of a target."""
        target = (START, *tokens)
        return [self.log_probabilities(sentence, target[:i])[target[i]] for i in range(1, len(target))]

    def all_targets(self, limit: int) -> Iterator[tuple[int, ...]]:
        """Every target of at most `limit` tokens, the end token counted."""
        beginnings: list[tuple[int, ...]] = [()]
        for _ in range(limit):
            yield from ((*beginning, END) for beginning in beginnings)
            beginnings = [(*beginning, word) for beginning in beginnings for word in WORDS]

    def exhaustive(self, sentence: int, limit: int, alpha: float) -> list[Hypothesis]:
        """Every target with its score, best first."""
        found = [
            make_hypothesis(list(tokens), self.token_scores(sentence, tokens), alpha)
            for tokens in self.all_targets(limit)
        ]
        return sorted(found, key=lambda one: one.score, reverse=True)

    def slow_beam(self, sentence: int, limit: int, beam: int, alpha: float) -> list[Hypothesis]:
        """Beam search in plain Python, one sentence, without a stop: what the batched one should find, best first."""
        live: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
        finished: list[tuple[int, ...]] = []
        for length in range(1, limit + 1):
            allowed = [END] if length == limit else [t for t in range(VOCABULARY) if t not in NEVER]
            extensions = [
                (score + self.log_probabilities(sentence, (START, *tokens))[token], (*tokens, token))
                for score, tokens in live
                for token in allowed
            ]
            best = sorted(extensions, reverse=True)[: beam - len(finished)]
            finished += [tokens for _, tokens in best if tokens[-1] == END]
            live = [(score, tokens) for score, tokens in best if tokens[-1] != END]
        hypotheses = [make_hypothesis(list(t), self.token_scores(sentence, t), alpha) for t in finished]
        return sorted(hypotheses, key=lambda one: one.score, reverse=True)


def toy_batch(count: int) -> torch.Tensor:
    """The sentences 0, 1, … of a toy model, as a batch (B, 1)."""
    return torch.arange(count)[:, None]


def tokens_of(results: list[list[Hypothesis]]) -> list[list[tuple[int, ...]]]:
    return [[one.tokens for one in found] for found in results]
