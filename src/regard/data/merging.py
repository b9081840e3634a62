"""Byte-pair merging of many words at once, as SentencePiece does it, and with merges dropped at random.

Shapes: N words, L letters of the longest.

A word begins as its letters. Of all neighbours that together are a subword, those with the highest score are merged,
the leftmost of equals, until none are left. BPE-dropout (Provilkov and others 2020) leaves out each such pair with a
probability p, drawn anew before every merge; a word is finished when none is left that may be merged.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.int32]

_NEVER = 2**31 - 1  # the rank of neighbours that are no subword together
_LEVELS = 1 << 16  # values of sixteen random bits


class Merges:
    """Which subwords are made of which two, and in which order."""

    def __init__(self, subwords: Mapping[int, tuple[str, float]], size: int) -> None:
        """Take subwords with their scores by id, without those that are no text; ids are below `size`."""
        self.nothing = size  # stands where a word has no letter
        by_text = {text: token for token, (text, _) in subwords.items()}
        ranked = sorted(subwords, key=lambda token: (-subwords[token][1], token))
        self._made = np.array(ranked or [0], np.int32)  # by rank
        pairs = {
            (by_text[text[:cut]], by_text[text[cut:]]): rank
            for rank, text in enumerate(subwords[token][0] for token in ranked)
            for cut in range(1, len(text))
            if text[:cut] in by_text and text[cut:] in by_text
        }
        left, right = np.array(list(pairs) or [(size, size)], np.int32).T
        keys = self._key(left, right)
        order = np.argsort(keys)
        self._keys, self._ranks = keys[order], np.array(list(pairs.values()) or [_NEVER], np.int32)[order]
        self._letters = {
            token: tuple(by_text[letter] for letter in text)
            for token, (text, _) in subwords.items()
            if all(letter in by_text for letter in text)
        }

    def spell(self, tokens: Iterable[int]) -> list[int]:
        """Return the letters of subwords; one that has none, such as a byte, is a letter itself."""
        return [letter for token in tokens for letter in self._letters.get(token, (token,))]

    def fill(self, words: Sequence[Sequence[int]]) -> Words:
        """Return words as an array (N, L), filled up with `nothing`."""
        lengths = np.fromiter(map(len, words), np.int64, len(words))
        filled = np.full((len(words), max(2, int(lengths.max(initial=0)))), self.nothing, np.int32)
        filled[np.arange(filled.shape[1]) < lengths[:, None]] = [token for word in words for token in word]
        return filled

    def merge(self, letters: Words, dropout: float = 0.0, random: np.random.SFC64 | None = None) -> Words:
        """Return the subwords that letters (N, L) become, filled up as they are."""
        merged = letters.copy()
        here, now = np.arange(len(letters)), letters.copy()  # what is still at work
        ranks = self._rank(now[:, :-1], now[:, 1:])  # (N, L - 1)
        columns = np.arange(ranks.shape[1])
        while here.size:
            offered = ranks
            if random is not None:
                offered = np.where(_draw(random, ranks.shape, dropout), _NEVER, ranks)
            best = offered.argmin(axis=1)
            rank = offered[np.arange(len(here)), best]
            more = rank != _NEVER
            merged[here[~more]] = now[~more]
            here, now, ranks, best, rank = here[more], now[more], ranks[more], best[more], rank[more]
            rows, behind = np.arange(len(here)), columns > best[:, None]
            now[:, :-1] = np.where(behind, now[:, 1:], now[:, :-1])
            now[:, -1] = self.nothing
            now[rows, best] = self._made[rank]
            ranks[:, :-1] = np.where(behind[:, :-1], ranks[:, 1:], ranks[:, :-1])
            ranks[:, -1] = _NEVER
            ranks[rows, best] = self._rank(now[rows, best], now[rows, best + 1])
            before = np.maximum(best - 1, 0)  # of a merge at the very beginning, its own again
            ranks[rows, before] = self._rank(now[rows, before], now[rows, before + 1])
        return merged

    def _rank(self, left: Words, right: Words) -> Words:
        """Return the rank of what neighbours make together, `_NEVER` if that is no subword."""
        keys = self._key(left, right)
        places = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return np.where(self._keys[places] == keys, self._ranks[places], _NEVER)

    def _key(self, left: Words, right: Words) -> NDArray[np.int64]:
        return left.astype(np.int64) * (self.nothing + 1) + right


def _draw(random: np.random.SFC64, shape: tuple[int, ...], probability: float) -> NDArray[np.bool_]:
    """Return True with this probability, to 1/65,536, for each element."""
    count = int(np.prod(shape))
    bits: NDArray[np.uint16] = random.random_raw(-(-count // 4)).view(np.uint16)[:count]
    return bits.reshape(shape) < round(probability * _LEVELS)
