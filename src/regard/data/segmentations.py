"""Segmentations: how the words of a token store are cut into subwords in training, another way in each epoch.

BPE-dropout (Provilkov and others 2020) cuts a word anew each time it is seen. Here a number of segmentations of each
distinct word is drawn once, when the data is prepared; an epoch takes one of them for each place where the word stands,
by a hash of (seed, epoch, place). Drawing anew would give rare words of many subwords a little more variety, at a
hundred times the cost. A folder beside the store holds

    segmentations.json   version, counts, the store's fingerprint and the contents' own
    words.bin            each sequence's words, by number; the last is 0, the end token (uint32)
    offsets.bin          where each sequence begins in words.bin, and where the last one ends (uint64)
    subwords.bin         each word's usual segmentation, then those that were drawn, as the store's type of ids
    starts.bin           where each of these begins in subwords.bin, and where the last one ends (uint64)
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.data.merging import Merges, Words
from regard.data.permutation import hash_numbers
from regard.data.store import HashedFile, Rows, Store, are_offsets, blocks, map_file, read_description, runs
from regard.data.words import WordFinder
from regard.errors import FileFormatError
from regard.files import checksum, explain_disk_errors, new_folder, read_json, read_record, write_json
from regard.progress import Job
from regard.seeds import mix
from regard.text.vocabulary import Vocabulary

VERSION = 1
DRAWN = 32
"""Segmentations of a word that are drawn, beside the usual one; those that are likely come up several times."""

_DESCRIPTION = "segmentations.json"
_FILES = ("words.bin", "offsets.bin", "subwords.bin", "starts.bin")
_OFFSET, _WORD = np.dtype("<u8"), np.dtype("<u4")
_SEED = 0x5EED  # of the draws: data is made of text and settings alone, and the training's seed chooses among them
_WORDS = 4096  # that are cut together
_LETTERS = 1 << 21  # of all draws of words that are merged together
_ROWS = 1 << 13  # whose lengths are counted together


@dataclass(frozen=True)
class _Description:
    """What segmentations.json says."""

    version: int
    store: str
    fingerprint: str
    words: int
    places: int
    subwords: int
    max_length: int
    longest: int  # sequence that can come up
    growth: float  # of the number of tokens, on average


# ---- reading ---------------------------------------------------------------------------------------------------------


class VariedStore(Store):
    """A store whose sentences are cut another way in each epoch.

    A row is a pair in an epoch: row = epoch · pairs + pair, so that whoever has rows of an epoch reads its sentences
    without knowing. Sentences that would become longer than `data.max_length` are cut as usual.
    """

    def __init__(self, folder: Path, segmentations: Path, seed: int) -> None:
        super().__init__(folder, read_description(folder))
        natural = self.fingerprint
        self._place = segmentations
        self._about = about = _read_description(segmentations / _DESCRIPTION)
        self._seed = seed
        self._words = map_file(segmentations / "words.bin", _WORD, about.places)
        self._word_offsets = map_file(segmentations / "offsets.bin", _OFFSET, 2 * len(self) + 1)
        self._subwords = map_file(segmentations / "subwords.bin", self.tokens.dtype, about.subwords)
        self._starts = map_file(segmentations / "starts.bin", _OFFSET, about.words * (DRAWN + 1) + 1)
        if about.store != natural:
            raise FileFormatError(segmentations, f"not made of {folder}; {self.advice}")
        self.fingerprint = hashlib.sha256(f"{natural} {about.fingerprint}".encode()).hexdigest()

    @property
    def longest(self) -> int:
        """The most tokens that a sentence may have in some epoch, the end token counted."""
        return self._about.longest

    def in_epoch(self, rows: Rows, epoch: int) -> Rows:
        """Return the rows of pairs in an epoch."""
        return rows + epoch * len(self)

    def lengths(self, rows: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the source and the target lengths of rows, end tokens counted."""
        parts = [rows[start : start + _ROWS] for start in range(0, len(rows), _ROWS)] or [rows]
        sides = [[self._choose(2 * part + side)[1] for part in parts] for side in range(2)]
        return np.concatenate(sides[0]), np.concatenate(sides[1])

    def read(self, sequences: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the ids of sequences, one after the other, and the lengths; 2 · row is a source, the next a target."""
        chosen, lengths = self._choose(sequences)
        starts = self._starts[chosen].astype(np.int64)
        ids = self._subwords[runs(starts, self._starts[chosen + 1].astype(np.int64) - starts)]
        return ids.astype(np.int64), lengths

    def locate(self, row: int) -> tuple[str, int]:
        """Return the corpus that a pair is from and its line there."""
        return super().locate(row % len(self))

    def check(self) -> None:
        """Read every byte; raises `FileFormatError` if the contents are not those that were written."""
        super().check()
        if _fingerprint([checksum(self._place / name) for name in _FILES]) != self._about.fingerprint:
            raise self._damaged_there("its contents are not those that were prepared")

    def check_numbers(self, vocabulary_size: int) -> None:
        """Read everything once; raises `FileFormatError` if something points to what is not there."""
        super().check_numbers(vocabulary_size)
        for offsets, length in ((self._word_offsets, len(self._words)), (self._starts, len(self._subwords))):
            if not are_offsets(offsets, length):
                raise self._damaged_there("a sequence ends before it begins, or where there is nothing")
        if any(block.max() >= self._about.words for block in blocks(self._words)):
            raise self._damaged_there("words.bin has words that are not there")
        if any(block.max() >= vocabulary_size for block in blocks(self._subwords)):
            raise self._damaged_there("subwords.bin has ids that the vocabulary does not have")

    def _damaged_there(self, how: str) -> FileFormatError:
        return FileFormatError(self._place, f"damaged: {how}; {self.advice}")

    def _choose(self, sequences: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the segmentation of each word of sequences, as its place in starts.bin, and the sequences' lengths."""
        if not sequences.size:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        epochs, natural = np.divmod(sequences, 2 * len(self))
        starts = self._word_offsets[natural].astype(np.int64)
        counts = self._word_offsets[natural + 1].astype(np.int64) - starts
        places = runs(starts, counts)
        usual = self._words[places].astype(np.int64) * (DRAWN + 1)
        chosen = usual + 1 + _pick(places, np.repeat(_epoch_keys(self._seed, epochs), counts))
        sizes = (self._starts[chosen + 1] - self._starts[chosen]).astype(np.int64)
        lengths = np.add.reduceat(sizes, np.cumsum(counts) - counts)
        too_long = lengths > self._about.max_length
        if too_long.any():
            chosen = np.where(np.repeat(too_long, counts), usual, chosen)
            usual_lengths = (self.offsets[natural + 1] - self.offsets[natural]).astype(np.int64)
            lengths = np.where(too_long, usual_lengths, lengths)
        return chosen, lengths


def _epoch_keys(seed: int, epochs: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return a random number for each epoch."""
    distinct, places = np.unique(epochs, return_inverse=True)
    return np.array([mix(seed, epoch) for epoch in distinct.tolist()], np.uint64)[places]


def _pick(places: NDArray[np.int64], keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return which of the drawn segmentations each place takes, by a hash of the place and a key."""
    hashed = hash_numbers(places.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + keys)
    return ((hashed >> np.uint64(32)) * np.uint64(DRAWN) >> np.uint64(32)).astype(np.int64)


def _read_description(path: Path) -> _Description:
    version = read_json(path).get("version", VERSION)
    if version != VERSION:
        problem = f"segmentations of version {version!r}; this regard reads version {VERSION}"
        raise FileFormatError(path, f"{problem}: prepare the data again")
    return read_record(path, _Description)


# ---- writing ---------------------------------------------------------------------------------------------------------


def write_segmentations(
    folder: Path, store: Store, vocabulary: Vocabulary, dropout: float, max_length: int, job: Job
) -> tuple[int, float]:
    """Draw segmentations of the words of a store; return how many words there are, and by how much sentences grow.

    `dropout` is the probability with which a merge is left out. Raises `DiskError` if the disk is full.
    """
    with ExitStack() as stack:
        stack.enter_context(explain_disk_errors(folder))
        partial = stack.enter_context(new_folder(folder))
        files = [stack.enter_context(closing(HashedFile(partial / name))) for name in _FILES]
        words, offsets, subwords, starts = files
        finder, places = WordFinder(store, vocabulary), 0
        offsets.write(np.zeros(1, _OFFSET))
        for numbers, counts in finder.read():
            words.write(numbers.astype(_WORD))
            offsets.write((places + np.cumsum(counts)).astype(_OFFSET))
            places += len(numbers)
        merges = Merges(vocabulary.scored_subwords(), len(vocabulary))
        lengths: list[NDArray[np.int64]] = []  # of all segmentations, (words, 1 + DRAWN)
        starts.write(np.zeros(1, _OFFSET))
        end = 0
        for tokens, sizes in _cut_words(finder.words(), merges, dropout):
            subwords.write(tokens.astype(store.tokens.dtype))
            starts.write((end + np.cumsum(sizes)).astype(_OFFSET))
            lengths.append(sizes)
            job.advance(len(sizes))
            end += len(tokens)
        for file in files:
            file.close()
        longest, growth = _measure(np.concatenate(lengths), partial, store, max_length)
        about = _Description(
            version=VERSION,
            store=store.fingerprint,
            fingerprint=_fingerprint([file.digest for file in files]),
            words=len(finder),
            places=places,
            subwords=end,
            max_length=max_length,
            longest=longest,
            growth=growth,
        )
        write_json(partial / _DESCRIPTION, asdict(about))
    return len(finder), growth


def _cut_words(
    words: Sequence[Sequence[int]], merges: Merges, dropout: float
) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int64]]]:
    """Yield, for some words after the other, the ids of all their segmentations and the lengths (words, 1 + DRAWN)."""
    for first in range(0, len(words), _WORDS):
        part = words[first : first + _WORDS]
        spelled = [merges.spell(word) for word in part]
        order = sorted(range(len(part)), key=lambda number: len(spelled[number]))  # so that little is filled up
        found: list[NDArray[np.int32]] = [np.empty(0, np.int32)] * len(part)
        sizes = np.empty((len(part), 1 + DRAWN), np.int64)
        while order:
            count = max(1, _LETTERS // (DRAWN * max(2, len(spelled[order[-1]]))))
            order, together = order[:-count], order[-count:]
            random = np.random.SFC64(mix(_SEED, first, len(order)))
            letters = merges.fill([spelled[number] for number in together])
            cut = _cut_alike(letters, [part[number] for number in together], merges, dropout, random)
            real = cut != merges.nothing  # (words, 1 + DRAWN, letters)
            sizes[together] = real.sum(axis=2)
            for number, own, is_real in zip(together, cut, real, strict=True):
                found[number] = own[is_real]
        yield np.concatenate(found), sizes


def _cut_alike(
    letters: Words, words: Sequence[Sequence[int]], merges: Merges, dropout: float, random: np.random.SFC64
) -> Words:
    """Return the usual segmentation of words and those that are drawn, (words, 1 + DRAWN, letters).

    A word whose usual segmentation is not the one that merging gives is not cut any other way: it has subwords that its
    owner has put into the vocabulary by hand.
    """
    usual = np.full_like(letters, merges.nothing)
    given = merges.fill(words)
    usual[:, : given.shape[1]] = given
    drawn = merges.merge(np.repeat(letters, DRAWN, axis=0), dropout, random).reshape(len(words), DRAWN, -1)
    is_merged = (merges.merge(letters) == usual).all(axis=1)
    drawn = np.where(is_merged[:, None, None], drawn, usual[:, None])
    return np.concatenate([usual[:, None], drawn], axis=1)


def _measure(lengths: NDArray[np.int64], folder: Path, store: Store, max_length: int) -> tuple[int, float]:
    """Return the most tokens that a sequence may come to have, and by how much sequences grow on average."""
    sequences = 2 * len(store)
    offsets = map_file(folder / "offsets.bin", _OFFSET, sequences + 1)
    words = map_file(folder / "words.bin", _WORD, int(offsets[-1]))
    most, mean = lengths[:, 1:].max(axis=1), lengths[:, 1:].mean(axis=1)
    longest, tokens = 0, 0.0
    for first in range(0, sequences, _ROWS):
        bounds = offsets[first : first + _ROWS + 1].astype(np.int64)
        found = words[bounds[0] : bounds[-1]]
        longest = max(longest, int(np.add.reduceat(most[found], bounds[:-1] - bounds[0]).max()))
        tokens += float(mean[found].sum())
    return max(store.longest, min(longest, max_length)), tokens / len(store.tokens)


def _fingerprint(digests: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()
