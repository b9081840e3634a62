"""Minimum risk training (Shen and others 2016): learning from one's own translations what is wrong with them.

For each source the likeliest candidates are searched for with the weights as they are. What is minimised is the
reference's smoothed loss, which keeps the model what it is (Edunov and others 2018), and the candidates' expected
error, counted for each token of the reference:

    loss(reference) + μ · |reference| · Σ_y q(y) e(y),   e(y) = 1 - similarity(y, reference),   q(y) = P(y) / Σ_y' P(y')

where y and y' are the candidates of one source, and similarity is BLEU of words: by subwords less was won (measured).
As log q changes with log P, the gradient of the expected error E is that of

    Σ_y -w(y) · log P(y),   w(y) = -q(y) (e(y) - E),

with the weights w taken as they are. So it is learned as any pairs are, each of which counts w: a candidate that is
better than expected is learned, and one that is worse is unlearned. Those that count next to nothing are left out.
"""

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from regard.data.batches import Batch
from regard.engine import lay_out_for
from regard.evaluate import word_splitter
from regard.machine import Machine
from regard.model.loss import Loss
from regard.model.transformer import Transformer
from regard.search.beam import beam_search
from regard.search.hypothesis import Hypothesis
from regard.seeds import mix
from regard.settings import Settings
from regard.text.vocabulary import Vocabulary
from regard.tokens import PAD, START
from regard.training.learner import Learner
from regard.training.output_sample import OutputSampler

_RISK = 7 / 3  # μ
_LEAST = 1 / 500  # |w| of what is learned from: a third of all candidates count less, and together for a thirtieth
_LONGEST = 4  # n-grams that are compared

Tokens = tuple[int, ...]


@dataclass(frozen=True)
class Candidate:
    """A source with what the model makes of it, and how much that counts; both end in the end token."""

    source: Tokens
    target: Tokens
    factor: float

    @property
    def longest(self) -> int:
        """Tokens of the longer side."""
        return max(len(self.source), len(self.target))


class RiskLearner:
    """Lowers risk, with the help of a learner of weighted pairs; the model may be any that search knows."""

    def __init__(self, model: Transformer, vocabulary: Vocabulary, settings: Settings, machine: Machine) -> None:
        self._model, self._vocabulary, self._machine = model, vocabulary, machine
        self._training, self._search = settings.training, settings.search
        self._split = word_splitter(settings.data.target_language)

    def learn(
        self, learner: Learner, batches: Sequence[Batch], seeds: Sequence[int], sampler: OutputSampler | None = None
    ) -> Loss:
        """Return the loss of some batches, summed over the references' tokens, and add its gradient.

        With a sampler, the softmax of what is learned is over some of the tokens; search knows all. Of the three sums
        only the objective knows of candidates: the other two are the references' own. What is held in memory at a time
        is about what a batch of training takes.
        """
        found = [self.find_candidates(batch) for batch in batches]
        loss = learner.learn(batches, seeds, sampler=sampler)
        groups, draws = [], []
        for (candidates, _), seed in zip(found, seeds, strict=True):
            for number, group in enumerate(_groups(candidates, self._training.piece_tokens), start=1):
                groups.append(group)
                draws.append(mix(seed, number))
        if groups:
            learner.learn(groups, draws, sampler=sampler)
        return loss._replace(objective=loss.objective + sum(risk for _, risk in found))

    def find_candidates(self, batch: Batch) -> tuple[list[Candidate], float]:
        """Search for what the model makes of a batch's sources, without dropout; return that, and the risk."""
        candidates, risk = [], 0.0
        for source, target, hypotheses in zip(batch.src, batch.tgt[:, 1:], self._search_batch(batch), strict=True):
            reference = _real(target)
            factors, error = self._weigh(hypotheses, reference)
            risk += _RISK * len(reference) * error
            candidates += [
                Candidate(_real(source), one.tokens, _RISK * len(reference) * factor)
                for one, factor in zip(hypotheses, factors, strict=True)
                if abs(factor) >= _LEAST
            ]
        return candidates, risk

    def _search_batch(self, batch: Batch) -> list[list[Hypothesis]]:
        src = torch.from_numpy(batch.src).to(self._machine.device)
        limits = (src != PAD).sum(dim=1) + self._search.extra_length
        count = self._training.risk_candidates
        was_training = self._model.training
        self._model.eval()
        try:
            searched = lay_out_for(self._machine, self._model) or self._model
            with self._machine.autocast():
                return beam_search(searched, src, limits, count, self._search.length_penalty, count)
        finally:
            self._model.train(was_training)

    def _weigh(self, hypotheses: Sequence[Hypothesis], reference: Tokens) -> tuple[list[float], float]:
        """Return w of each candidate, and their expected error."""
        wanted = self._words(reference)
        errors = np.array([1 - similarity(self._words(one.tokens), wanted) for one in hypotheses])
        scores = np.array([one.log_probability for one in hypotheses])
        powers = np.exp(scores - scores.max())
        q = powers / powers.sum()
        expected = float(q @ errors)
        return (-q * (errors - expected)).tolist(), expected

    def _words(self, tokens: Tokens) -> list[str]:
        return self._split(self._vocabulary.decode(tokens))


def _real(row: NDArray[np.int64]) -> Tokens:
    return tuple(row[row != PAD].tolist())


def _groups(candidates: Sequence[Candidate], tokens: int) -> Iterator[Batch]:
    """Yield candidates as batches of at most so many tokens a side, padding counted, or of one pair."""
    group: list[Candidate] = []
    for candidate in sorted(candidates, key=lambda one: one.longest):
        if group and (len(group) + 1) * candidate.longest > tokens:
            yield _batch(group)
            group = []
        group.append(candidate)
    if group:
        yield _batch(group)


def _batch(group: Sequence[Candidate]) -> Batch:
    return Batch(
        src=_array([one.source for one in group]),
        tgt=_array([(START, *one.target) for one in group]),
        tokens=sum(len(one.target) for one in group),
        rows=np.full(len(group), -1),  # of no store
        factors=np.array([one.factor for one in group], np.float32),
    )


def _array(rows: Sequence[Tokens]) -> NDArray[np.int64]:
    longest = max(map(len, rows))
    return np.array([(*row, *[PAD] * (longest - len(row))) for row in rows])


def similarity(found: Sequence[Hashable], wanted: Sequence[Hashable]) -> float:
    """Return BLEU of two sentences of words, from 0 to 1.

    Longer n-grams are counted as if one more were there and found (Lin and Och 2004): few sentences have them all.
    """
    if not found or not wanted:
        return float(len(found) == len(wanted))
    logarithms = 0.0
    for n in range(1, _LONGEST + 1):
        grams, others = (Counter(zip(*(one[start:] for start in range(n)), strict=False)) for one in (found, wanted))
        more = int(n > 1)
        right, all_of_them = (grams & others).total() + more, grams.total() + more
        if right == 0:
            return 0.0
        logarithms += math.log(right / all_of_them)
    brevity = min(0.0, 1 - len(wanted) / len(found))
    return math.exp(brevity + logarithms / _LONGEST)
