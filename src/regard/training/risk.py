"""Minimum risk training (Shen and others 2016): learning from one's own translations what is wrong with them.

For each source the likeliest candidates are searched for with the weights as they are. What is minimised is a mean of
the candidates' expected error, counted for each token of the reference, and of the reference's smoothed loss:

    (1 - λ) · |reference| · Σ_y q(y) (1 - similarity(y, reference)) + λ · loss(reference),  q(y) = P(y) / Σ_y' P(y')

where y and y' are the candidates of one source, and similarity is BLEU of words: by subwords less was won (measured).
The second term keeps the model what it is (Edunov and others 2018).

Shapes: B sources, R rows (each reference and each candidate is one), S source length, T target length, D d_model.
"""

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.data.batches import Batch
from regard.engine import lay_out_for
from regard.evaluate import word_splitter
from regard.machine import Machine
from regard.model.loss import Loss
from regard.model.protocol import Memory
from regard.model.transformer import Transformer
from regard.search.beam import beam_search
from regard.settings import Settings
from regard.text.vocabulary import Vocabulary
from regard.tokens import PAD, START

_LIKELIHOOD = 0.3  # λ
_LONGEST = 4  # n-grams that are compared

Tokens = tuple[int, ...]


@dataclass(frozen=True)
class Lesson:
    """A source with what it should become, what the model makes of it, and how wrong that is, from 0 to 1.

    All sentences end in the end token.
    """

    source: Tokens
    reference: Tokens
    candidates: tuple[Tokens, ...]
    errors: tuple[float, ...]

    @property
    def targets(self) -> tuple[Tokens, ...]:
        """The reference, then the candidates."""
        return (self.reference, *self.candidates)

    @property
    def longest(self) -> int:
        """Tokens of the longest target."""
        return max(map(len, self.targets))


class RiskLearner:
    """A `Learner` (learner.py) that minimises risk, by torch; the model may be any that search knows."""

    at_once = 1

    def __init__(self, model: Transformer, vocabulary: Vocabulary, settings: Settings, machine: Machine) -> None:
        self._model, self._vocabulary, self._machine = model, vocabulary, machine
        self._training, self._search = settings.training, settings.search
        self._split = word_splitter(settings.data.target_language)

    def learn(self, batches: Sequence[Batch], seeds: Sequence[int], consistency: float = 0.0) -> Loss:
        """Return the loss of some batches, summed over the references' tokens, and add its gradient.

        Of the three sums only the objective knows of candidates: the other two are the references' own. What is held in
        memory at a time is about what a batch of training takes.
        """
        sums = torch.zeros(len(Loss._fields), dtype=torch.float64)
        for lessons, seed in zip(self._make_lessons(batches), seeds, strict=True):
            torch.manual_seed(seed)
            for group in _groups(lessons, self._training.piece_tokens):
                with self._machine.autocast():
                    loss = risk_loss(self._model, group, self._machine.device, self._training.label_smoothing)
                loss.objective.backward()  # type: ignore[no-untyped-call]
                sums += torch.stack(loss).detach().to(sums)
        return Loss(*sums)

    def gather(self) -> None:
        """Do nothing: torch has put the gradients where the optimizer finds them."""

    def _make_lessons(self, batches: Sequence[Batch]) -> list[list[Lesson]]:
        """Search for the candidates of all batches, without dropout."""
        was_training = self._model.training
        self._model.eval()
        try:
            searched = lay_out_for(self._machine, self._model) or self._model
            with self._machine.autocast():
                return [self._search_batch(searched, batch) for batch in batches]
        finally:
            self._model.train(was_training)

    def _search_batch(self, model: "Transformer | object", batch: Batch) -> list[Lesson]:
        src = torch.from_numpy(batch.src).to(self._machine.device)
        limits = (src != PAD).sum(dim=1) + self._search.extra_length
        count = self._training.risk_candidates
        found = beam_search(model, src, limits, count, self._search.length_penalty, count)  # type: ignore[arg-type]
        return [
            self._make_lesson(_real(source), _real(target[1:]), tuple(one.tokens for one in candidates))
            for source, target, candidates in zip(batch.src, batch.tgt, found, strict=True)
        ]

    def _make_lesson(self, source: Tokens, reference: Tokens, candidates: tuple[Tokens, ...]) -> Lesson:
        wanted = self._words(reference)
        errors = tuple(1 - similarity(self._words(candidate), wanted) for candidate in candidates)
        return Lesson(source, reference, candidates, errors)

    def _words(self, tokens: Tokens) -> list[str]:
        return self._split(self._vocabulary.decode(tokens))


def _real(row: NDArray[np.int64]) -> Tokens:
    return tuple(row[row != PAD].tolist())


def _groups(lessons: Sequence[Lesson], tokens: int) -> Iterator[list[Lesson]]:
    """Yield lessons in groups of at most so many target tokens, padding counted, or of one."""
    group: list[Lesson] = []
    for lesson in sorted(lessons, key=lambda one: one.longest):
        if group and sum(len(one.targets) for one in (*group, lesson)) * lesson.longest > tokens:
            yield group
            group = []
        group.append(lesson)
    if group:
        yield group


def risk_loss(model: Transformer, lessons: Sequence[Lesson], device: torch.device, smoothing: float) -> Loss:
    """Return what is minimised, summed over the tokens of the references, and the references' own losses."""
    targets = [target for lesson in lessons for target in lesson.targets]
    counts = torch.tensor([len(lesson.targets) for lesson in lessons])
    lesson_of = torch.arange(len(lessons)).repeat_interleave(counts).to(device)  # (R,)
    is_reference = torch.zeros(len(targets), dtype=torch.bool)
    is_reference[counts.cumsum(0) - counts] = True
    is_reference = is_reference.to(device)

    memory = model.encode(_tensor([lesson.source for lesson in lessons], device))
    mask = None if memory.mask is None else memory.mask[lesson_of]
    tgt = _tensor([(START, *target) for target in targets], device)  # (R, T + 1)
    hidden = model.decoder(tgt[:, :-1], Memory(memory.hidden[lesson_of], mask))  # (R, T, D)
    real = tgt[:, 1:] != PAD
    log_p, mean = _token_scores(model, hidden[real], tgt[:, 1:][real])  # (N,) each
    row_of = torch.arange(len(targets), device=device)[:, None].expand_as(real)[real]

    of_reference = is_reference[row_of]
    plain = -log_p[of_reference].sum()
    smoothed = (1 - smoothing) * plain - smoothing * mean[of_reference].sum()
    scores = log_p.new_zeros(len(targets)).index_add(0, row_of, log_p)  # log P of each row
    errors = [len(lesson.reference) * error for lesson in lessons for error in (0.0, *lesson.errors)]
    q = _share_out(scores.masked_fill(is_reference, -math.inf), lesson_of, len(lessons))
    risk = (q * torch.tensor(errors, device=device)).sum()
    return Loss((1 - _LIKELIHOOD) * risk + _LIKELIHOOD * smoothed, smoothed.detach(), plain.detach())


def _token_scores(model: Transformer, hidden: Tensor, following: Tensor) -> tuple[Tensor, Tensor]:
    """Return of each token (N,) its log-probability, and the mean of those of all tokens of the vocabulary."""
    log_p = model.output.log_probabilities(hidden)  # (N, V)
    return log_p.gather(1, following[:, None])[:, 0], log_p.mean(dim=1)


def _share_out(scores: Tensor, lesson_of: Tensor, lessons: int) -> Tensor:
    """Return e^score of each row as a share of its lesson's sum."""
    most = scores.new_full((lessons,), -math.inf).scatter_reduce(0, lesson_of, scores.detach(), "amax")
    powers = (scores - most[lesson_of]).exp()
    return powers / powers.new_zeros(lessons).index_add(0, lesson_of, powers)[lesson_of]


def _tensor(rows: Sequence[Tokens], device: torch.device) -> Tensor:
    longest = max(map(len, rows))
    return torch.tensor([(*row, *[PAD] * (longest - len(row))) for row in rows], device=device)


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
