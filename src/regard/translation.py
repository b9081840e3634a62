"""What a translator is asked and what it answers: search options, candidates, translations."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from math import isfinite
from typing import TypedDict

from regard.errors import UserError, did_you_mean
from regard.search.hypothesis import length_penalty
from regard.settings import MOST_EXTRA_LENGTH
from regard.text.segment import Segment, join

Points = tuple[tuple[int, int], ...]
"""A word alignment: (source word, target word), words split at white space and counted from 0."""


class SearchChanges(TypedDict, total=False):
    """Search options as keyword arguments, all optional; `SearchOptions` says what they mean."""

    beam: int
    length_penalty: float
    extra_length: int
    n_best: int
    sampling: bool
    temperature: float
    top_k: int | None
    seed: int
    alignments: bool
    batch_tokens: int


@dataclass(frozen=True)
class SearchOptions:
    """How to search; a model's own settings unless the caller says otherwise."""

    beam: int
    length_penalty: float
    extra_length: int
    n_best: int = 1
    sampling: bool = False  # draw translations by their probability instead of searching for the best
    temperature: float = 1.0
    top_k: int | None = None  # draw from the likeliest tokens only
    seed: int = 1
    alignments: bool = False
    batch_tokens: int = 4096  # padded source tokens of a batch, times hypotheses a sentence

    @property
    def hypotheses(self) -> int:
        """How many hypotheses a sentence has at a time."""
        return self.n_best if self.sampling else self.beam

    def change(self, changes: SearchChanges) -> "SearchOptions":
        """Return these options with changes; raises `UserError` for what is unknown or makes no sense."""
        known = [field.name for field in fields(self)]
        for name in changes:
            if name not in known:
                raise UserError(f"no search option {name!r}.{did_you_mean(name, known)} Known: {', '.join(known)}")
        options = replace(self, **changes)
        if "beam" not in changes and options.n_best > options.beam:
            options = replace(options, beam=options.n_best)
        options._check()
        return options

    def _check(self) -> None:
        if not (self.temperature > 0 and isfinite(self.temperature)):
            raise UserError(f"temperature = {self.temperature}: must be a number above 0")
        for name in ("beam", "n_best", "batch_tokens", "top_k"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UserError(f"{name} = {value}: must be at least 1")
        for name in ("length_penalty", "extra_length"):
            value = getattr(self, name)
            if not (value >= 0 and isfinite(value)):
                raise UserError(f"{name} = {value}: must be a number of at least 0")
        if self.extra_length > MOST_EXTRA_LENGTH:
            raise UserError(f"extra_length = {self.extra_length}: must be at most {MOST_EXTRA_LENGTH:,}")
        if not self.sampling and self.n_best > self.beam:
            raise UserError(f"n_best = {self.n_best} needs a beam of at least that; it is {self.beam}")


@dataclass(frozen=True)
class Candidate:
    """One translation of a text, with what the model thinks of it; scores are log-probabilities."""

    text: str
    score: float  # the sum of the token scores, divided by the length penalty
    tokens: tuple[str, ...] = ()
    token_scores: tuple[float, ...] = ()
    alignment: Points = ()

    @property
    def log_probability(self) -> float:
        """The logarithm of P(target | source)."""
        return sum(self.token_scores, 0.0)


@dataclass(frozen=True)
class Translation:
    """A source text and its translations, best first; `error` says why there is none."""

    source: str
    candidates: tuple[Candidate, ...]
    error: str | None = None

    @property
    def text(self) -> str:
        """The best translation."""
        return self.candidates[0].text

    @property
    def score(self) -> float:
        """The best translation's score."""
        return self.candidates[0].score

    @property
    def tokens(self) -> tuple[str, ...]:
        """The best translation's subwords, the end token included."""
        return self.candidates[0].tokens

    @property
    def token_scores(self) -> tuple[float, ...]:
        """The log-probability of each of the best translation's subwords."""
        return self.candidates[0].token_scores

    @property
    def alignment(self) -> Points:
        """Which source word each target word of the best translation looks at, if it was asked for."""
        return self.candidates[0].alignment

    def __str__(self) -> str:
        return self.text


def assemble(
    source: str, segments: Sequence[Segment], results: Sequence[list[Candidate] | str], options: SearchOptions
) -> Translation:
    """Make one translation of what was found for a text's pieces, or of the reason why one failed.

    A blank text has no pieces and is translated to an empty one. The n-th best of the whole is made of the n-th best of
    each piece.
    """
    if not segments:
        return Translation(source, (Candidate("", 0.0),))
    for result in results:
        if isinstance(result, str):
            return Translation(source, (Candidate("", float("-inf")),), error=result)
    found = [result for result in results if not isinstance(result, str)]
    if len(found) == 1:
        return Translation(source, tuple(found[0]))
    ranks = range(max(map(len, found)))
    candidates = [_join([part[min(rank, len(part) - 1)] for part in found], segments, options) for rank in ranks]
    return Translation(source, tuple(candidates))


def _join(parts: Sequence[Candidate], segments: Sequence[Segment], options: SearchOptions) -> Candidate:
    """Put the translations of a text's pieces together: text, scores and alignment."""
    alignment: list[tuple[int, int]] = []
    source_words = target_words = 0
    for part, segment in zip(parts, segments, strict=True):
        alignment += [(source + source_words, target + target_words) for source, target in part.alignment]
        cut_inside_a_word = not segment.space  # the word goes on in the next piece
        source_words += len(segment.text.split()) - cut_inside_a_word
        target_words += len(part.text.split()) - cut_inside_a_word
    token_scores = tuple(chain.from_iterable(part.token_scores for part in parts))
    return Candidate(
        text=join(segments, [part.text for part in parts]),
        score=sum(token_scores) / length_penalty(len(token_scores), options.length_penalty),
        tokens=tuple(chain.from_iterable(part.tokens for part in parts)),
        token_scores=token_scores,
        alignment=tuple(alignment),
    )
