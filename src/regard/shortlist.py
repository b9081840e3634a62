"""A shortlist: the target tokens that a source sentence may be translated with, instead of the whole vocabulary.

A sentence's list is made of

- the end token, the 256 bytes and the most frequent target tokens, which are in every list;
- for each of its tokens, those that this one tends to become in the training data (data/lexicon.py);
- its own tokens, as names are copied.

The file beside a model's weights is read without trust: names, types, sizes and numbers are checked.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from regard.data.lexicon import frequent_targets, learn_lexicon
from regard.data.store import Store
from regard.errors import FileFormatError, UserError
from regard.files import read_bytes, write_file
from regard.text.vocabulary import Vocabulary
from regard.tokens import END

FORMAT = "1"
PER_WORD, FREQUENT = 50, 200
MOST_PER_WORD = 1000

_ID = np.dtype(np.int32)
_HEADER = 1 << 16  # bytes: more than the header of such a file has


class BatchRows(NamedTuple):
    """The tokens that a batch of sentences may be translated with.

    `rows` (R,) are ids, sorted, the first of them those up to the end token: so these have their own numbers among the
    rows. `allowed` (B, R) says which of them each sentence may use.
    """

    rows: NDArray[np.int64]
    allowed: NDArray[np.bool_]


@dataclass(frozen=True)
class Shortlist:
    """Target tokens by source token; ids are those of one vocabulary, which `vocabulary` is the fingerprint of."""

    vocabulary: str
    always: NDArray[np.int32]  # in every list: sorted, with the end token
    starts: NDArray[np.int32]  # (V + 1,): where in `targets` a source token's begin, and where the last one's end
    targets: NDArray[np.int32]

    def rows(self, tokens: Sequence[int]) -> NDArray[np.int64]:
        """Return the ids that the translation of a source sentence may have, sorted and distinct, END among them."""
        own = np.unique(np.asarray(tokens, np.int64))
        lists = [self.targets[self.starts[token] : self.starts[token + 1]] for token in own.tolist()]
        return np.unique(np.concatenate([own[own >= END], self.always, *lists]))

    def batch(self, sentences: Sequence[Sequence[int]]) -> BatchRows:
        """Return the rows of some sentences that are translated together, and which of them each may use."""
        lists = [self.rows(tokens) for tokens in sentences]
        rows = np.unique(np.concatenate([np.arange(END + 1), *lists]))
        allowed = np.zeros((len(lists), len(rows)), bool)
        for may, own in zip(allowed, lists, strict=True):
            may[np.searchsorted(rows, own)] = True
        return BatchRows(rows, allowed)

    # ---- making ----------------------------------------------------------------------------------------------------

    @classmethod
    def build(cls, store: Store, vocabulary: Vocabulary, per_word: int = PER_WORD, frequent: int = FREQUENT) -> Self:
        """Learn a shortlist from training data; raises `UserError` if the data has another vocabulary."""
        if store.vocabulary != vocabulary.fingerprint:
            raise UserError(f"{store.folder}: was made with another vocabulary than the model's")
        if not 1 <= per_word <= MOST_PER_WORD:
            raise UserError(f"per_word = {per_word}: must be from 1 to {MOST_PER_WORD:,}")
        if frequent < 0:
            raise UserError(f"frequent = {frequent}: must be at least 0")
        size = len(vocabulary)
        common = frequent_targets(store, size, frequent)
        always = np.unique(np.concatenate([[END], vocabulary.byte_ids, common[common > END]]))
        found = learn_lexicon(store, size, without=always).likeliest(per_word)
        starts = np.searchsorted(found.source, np.arange(size + 1))
        return cls(vocabulary.fingerprint, always.astype(_ID), starts.astype(_ID), found.target.astype(_ID))

    # ---- the file --------------------------------------------------------------------------------------------------

    def save(self, path: Path) -> None:
        """Write a safetensors file, whole or not at all; raises `DiskError` or `UserError` if it can't be written."""
        tensors = {"always": self.always, "starts": self.starts, "targets": self.targets}
        write_file(path, save(tensors, {"format": FORMAT, "vocabulary": self.vocabulary}))

    @classmethod
    def load(cls, path: Path, vocabulary: Vocabulary) -> Self:
        """Read a shortlist; raises `FileFormatError` if it is none, is damaged, or belongs to another vocabulary."""
        size = len(vocabulary)
        contents = read_bytes(path, _HEADER + _ID.itemsize * (2 * size + 1 + size * MOST_PER_WORD))
        facts = _read_facts(path, contents)
        if facts.get("format") != FORMAT:
            raise FileFormatError(path, f"shortlist of format {facts.get('format')!r}; this regard reads {FORMAT}")
        if facts.get("vocabulary") != vocabulary.fingerprint:
            raise FileFormatError(path, "belongs to another vocabulary; make it anew with 'regard shortlist'")
        try:
            tensors = load(contents)
        except (SafetensorError, ValueError, KeyError, TypeError) as error:
            raise FileFormatError(path, f"not a readable safetensors file: {error}") from None
        problem = _find_problem(tensors, size)
        if problem:
            raise FileFormatError(path, f"damaged: {problem}")
        return cls(vocabulary.fingerprint, **tensors)


def _read_facts(path: Path, contents: bytes) -> dict[str, Any]:
    """Return what the header of a safetensors file says about the file as a whole."""
    length = int.from_bytes(contents[:8], "little")
    try:
        if length > _HEADER:
            raise ValueError(f"its header says that it has {length:,} bytes")
        header = json.loads(contents[8 : 8 + length])
        facts = header.get("__metadata__", {})
        facts.get("format")
    except (ValueError, AttributeError, RecursionError) as error:
        raise FileFormatError(path, f"not a readable safetensors file: {error}") from None
    return facts  # type: ignore[no-any-return]


def _find_problem(tensors: dict[str, NDArray[Any]], size: int) -> str | None:
    """Say what is wrong with the numbers of a shortlist for a vocabulary of that size."""
    if tensors.keys() != {"always", "starts", "targets"}:
        return "its parts are not those of a shortlist"
    if any(part.dtype != _ID or part.ndim != 1 for part in tensors.values()):
        return "its numbers are not of the type that they should be"
    always, starts, targets = tensors["always"], tensors["starts"], tensors["targets"]
    if len(starts) != size + 1 or starts[0] != 0 or starts[-1] != len(targets) or np.any(np.diff(starts) < 0):
        return "a list ends before it begins"
    if len(always) == 0 or always[0] != END or np.any(np.diff(always) <= 0):
        return "the tokens of every list are not sorted, or lack the end token"
    if any(len(part) and not (part.min() >= END and part.max() < size) for part in (always, targets)):
        return "it has ids that the vocabulary does not have"
    return None
