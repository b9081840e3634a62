"""The words of a token store: each distinct one with a number, and every sentence as the numbers of its words."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from regard.data.store import Store
from regard.text.vocabulary import Vocabulary
from regard.tokens import END

_MOST = 1 << 20  # distinct words, for which there is memory; then the subwords of new ones count as words
_LONGEST = 12  # subwords of a word; of longer ones, as where no spaces are written, each subword counts as a word
_SEQUENCES = 1 << 14  # that are looked at together


class WordFinder:
    """Numbers the words of a store as they come; a word is the subwords from one that begins with a space to the next.

    Word 0 is the end token, with which every sentence ends.
    """

    def __init__(self, store: Store, vocabulary: Vocabulary) -> None:
        self._store = store
        self._type = store.tokens.dtype
        self._begins = np.array(vocabulary.begins_word())
        self._begins[END] = True
        self._known = {np.array([END], self._type).tobytes(): 0}

    def __len__(self) -> int:
        return len(self._known)

    def words(self) -> list[list[int]]:
        """Return the subwords of each word that was found, by its number."""
        return [np.frombuffer(key, self._type).tolist() for key in self._known]

    def read(self) -> Iterator[tuple[NDArray[np.uint32], NDArray[np.int64]]]:
        """Yield the words of some of the store's sequences, one after the other, and how many each sequence has."""
        sequences = 2 * len(self._store)
        for first in range(0, sequences, _SEQUENCES):
            bounds = self._store.offsets[first : min(first + _SEQUENCES, sequences) + 1].astype(np.int64)
            tokens = self._store.tokens[bounds[0] : bounds[-1]]
            firsts = bounds[:-1] - bounds[0]
            begins = self._begins[tokens]
            begins[firsts] = True
            starts = np.flatnonzero(begins)
            long = np.diff(starts, append=len(tokens)) > _LONGEST
            begins |= np.repeat(long, np.diff(starts, append=len(tokens)))
            starts = np.flatnonzero(begins)
            numbers, parts = self._number(tokens, starts)
            first_words = np.searchsorted(starts, firsts)
            yield np.array(numbers, np.uint32), np.add.reduceat(np.array(parts, np.int64), first_words)

    def _number(self, tokens: NDArray[np.uint16], starts: NDArray[np.int64]) -> tuple[list[int], list[int]]:
        """Return the numbers of words, and as how many words each of them counts."""
        contents, width, known = tokens.tobytes(), self._type.itemsize, self._known
        places = [*(starts * width).tolist(), len(contents)]
        numbers: list[int] = []
        parts: list[int] = []
        for start, end in pairwise(places):
            key = contents[start:end]
            number = known.get(key)
            if number is None and (len(known) < _MOST or len(key) == width):
                number = known[key] = len(known)
            if number is not None:
                numbers.append(number)
                parts.append(1)
                continue
            letters = [key[at : at + width] for at in range(0, len(key), width)]
            numbers += [known.setdefault(letter, len(known)) for letter in letters]
            parts.append(len(letters))
        return numbers, parts
