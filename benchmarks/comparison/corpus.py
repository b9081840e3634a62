"""The data set: pairs of mixed lengths to train on and sentences to translate, the same for every toolkit.

A token is a character of its own, so that every toolkit's text processing gives the same ids and nothing is left to
its tokenizer: toolkits that split at white space get spaces between the characters.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from comparison.shapes import Shape

FIRST = 260  # ids below are regard's four special tokens and the 256 bytes
END = 3
LONGEST = 100
SPREAD = 0.5  # of the logarithm of a length: most sentences between half and twice the median
_BLOCKS = ((0x3400, 0x4DC0), (0x4E00, 0xA000), (0xAC00, 0xD7A4))  # of characters without combining marks or spaces

Pair = tuple[list[int], list[int]]


def characters(vocabulary: int) -> list[str]:
    """Return the character of each id from `FIRST` on."""
    letters = [chr(code) for first, end in _BLOCKS for code in range(first, end)]
    if vocabulary - FIRST > len(letters):
        raise ValueError(f"a vocabulary of {vocabulary:,} is too large: there are {len(letters):,} characters")
    return letters[: vocabulary - FIRST]


def make_pairs(shape: Shape, seed: int = 1) -> list[Pair]:
    """Draw pairs of token ids, each with its end token; the target's mean length is the shape's."""
    random = np.random.default_rng(seed)
    targets = draw_lengths(random, shape.pairs, shape.mean_length)
    ratios = random.lognormal(0, 0.2, shape.pairs)
    sources = np.clip(np.rint(targets * ratios), 2, LONGEST).astype(int)
    sides = [_draw_sentences(random, lengths.tolist(), shape.vocabulary) for lengths in (sources, targets)]
    return list(zip(*sides, strict=True))


def draw_lengths(random: np.random.Generator, count: int, mean: float) -> NDArray[np.int64]:
    """Draw lengths with the given mean, log-normal as those of real sentences are."""
    drawn = random.lognormal(0, SPREAD, count)
    lengths = np.clip(np.rint(drawn * mean / drawn.mean()), 2, LONGEST).astype(np.int64)
    # Rounding and clipping move the mean a little; single tokens here and there bring it back.
    missing = round(mean * count) - int(lengths.sum())
    movable = np.flatnonzero((lengths > 2) & (lengths < LONGEST))
    lengths[random.choice(movable, abs(missing), replace=False)] += np.sign(missing)
    return lengths


def make_sentences(shape: Shape, share: int = 1, seed: int = 2) -> list[list[list[int]]]:
    """Draw the sentences to translate, in groups of equal length; with `share` 4, a quarter of each group."""
    random = np.random.default_rng(seed)
    count = max(1, shape.sentences_a_length // share)
    return [_draw_sentences(random, [length] * count, shape.vocabulary) for length in shape.translated_lengths]


def _draw_sentences(random: np.random.Generator, lengths: Sequence[int], vocabulary: int) -> list[list[int]]:
    """Draw ids by Zipf's law, as words of a text come, and put the end token last."""
    weights = 1 / np.arange(10, vocabulary - FIRST + 10)
    ids = random.choice(vocabulary - FIRST, sum(lengths) - len(lengths), p=weights / weights.sum()) + FIRST
    ends = np.cumsum([length - 1 for length in lengths])[:-1]
    return [[*part.tolist(), END] for part in np.split(ids, ends)]


def text(ids: Sequence[int], letters: Sequence[str], between: str = "") -> str:
    """Write ids as text, without the end token."""
    return between.join(letters[token - FIRST] for token in ids if token >= FIRST)


def batches(pairs: Sequence[Pair], budget: int, seed: int) -> Iterator[list[Pair]]:
    """Cut pairs of like lengths into batches whose padded size is at most `budget` on both sides; in random order.

    For toolkits that bring a model but no batches of their own. It is how regard cuts a step, but for its two halves.
    """
    longer = [max(len(source), len(target)) for source, target in pairs]
    order = sorted(range(len(pairs)), key=lambda index: longer[index])
    cut: list[list[Pair]] = [[]]
    for index in order:
        if cut[-1] and (len(cut[-1]) + 1) * longer[index] > budget:
            cut.append([])
        cut[-1].append(pairs[index])
    for number in np.random.default_rng(seed).permutation(len(cut)):
        yield cut[number]


def padded(rows: Sequence[Sequence[int]], padding: int = 0) -> NDArray[np.int64]:
    """Return rows as one array, filled up on the right."""
    longest = max(map(len, rows))
    return np.array([[*row, *[padding] * (longest - len(row))] for row in rows], dtype=np.int64)
