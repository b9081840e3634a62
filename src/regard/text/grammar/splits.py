"""Pairs of sentences without end, and a corpus in four parts that share none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from zlib import crc32

from regard.text.grammar import joined, questions, statements
from regard.text.grammar.meaning import Dice
from regard.text.grammar.phrases import Phrase

# How many times in a hundred each kind of sentence is written.
SHARES: dict[Callable[[Dice], Phrase], int] = {
    statements.simple_statement: 15,
    statements.fronted_statement: 12,
    statements.subject_with_relative: 6,
    statements.object_with_relative: 7,
    statements.passive: 4,
    statements.description: 3,
    statements.mood: 2,
    statements.comparison: 3,
    statements.age: 2,
    statements.price: 1,
    statements.profession: 2,
    statements.existence: 2,
    statements.weather_statement: 1,
    statements.time_of_day: 1,
    statements.birthday: 1,
    statements.timetable: 1,
    questions.yes_no_question: 6,
    questions.who_question: 3,
    questions.object_question: 3,
    questions.adverb_question: 3,
    questions.request: 3,
    joined.subordination: 7,
    joined.reported_clause: 3,
    joined.indirect_question: 2,
    joined.infinitive_clause: 2,
    joined.purpose: 2,
    joined.judgement: 1,
    joined.coordination: 2,
}
WHEEL = tuple(kind for kind, share in SHARES.items() for _ in range(share))

HELD_OUT_PER_THOUSAND = 30


@dataclass(frozen=True, slots=True)
class Pair:
    """A sentence in English and its translation into German."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Splits:
    """A corpus in four parts that share no sentence; `heldout` has combinations of words that the others never show."""

    train: tuple[Pair, ...]
    valid: tuple[Pair, ...]
    test: tuple[Pair, ...]
    heldout: tuple[Pair, ...]


@dataclass(frozen=True, slots=True)
class Draft:
    """A pair and the combinations of words that went into it: adjective with noun, verb with object."""

    pair: Pair
    combinations: tuple[tuple[str, str], ...]

    def is_held_out(self) -> bool:
        """Say whether any of its combinations is kept from training."""
        return any(is_held_out(combination) for combination in self.combinations)


@cache
def is_held_out(combination: tuple[str, str]) -> bool:
    """Decide by a checksum, so that the same combinations are held out whatever the seed or the size."""
    return crc32("+".join(combination).encode()) % 1000 < HELD_OUT_PER_THOUSAND


def write_drafts(seed: int) -> Iterator[Draft]:
    """Write pairs without end."""
    dice = Dice(f"regard grammar {seed}")
    while True:
        dice.combinations.clear()
        english, german = dice.pick(WHEEL)(dice)
        if english.count(" ") < 2:  # two words teach little
            continue
        yield Draft(Pair(english, german), tuple(dice.combinations))


def write_pairs(count: int, seed: int) -> Iterator[Pair]:
    """Write this many pairs, always the same for the same seed; some sentences may come up again."""
    for _, draft in zip(range(count), write_drafts(seed), strict=False):
        yield draft.pair


def make_splits(train: int = 24_000, valid: int = 500, test: int = 1_000, heldout: int = 500, seed: int = 1) -> Splits:
    """Write a corpus whose parts share neither an English nor a German sentence.

    Every sentence of `heldout` contains a combination of words (a verb with its object, an adjective with its noun)
    that no sentence of the other parts contains; the words themselves they all know.
    """
    known: list[Pair] = []
    unknown: list[Pair] = []
    seen: set[str] = set()
    for draft in write_drafts(seed):
        pair = draft.pair
        part, size = (unknown, heldout) if draft.is_held_out() else (known, train + valid + test)
        if len(part) < size and pair.source not in seen and pair.target not in seen:
            part.append(pair)
            seen.update((pair.source, pair.target))
        if len(known) == train + valid + test and len(unknown) == heldout:
            break
    # The tests come first: a larger training part then leaves them as they were.
    return Splits(
        tuple(known[valid + test :]), tuple(known[:valid]), tuple(known[valid : valid + test]), tuple(unknown)
    )
