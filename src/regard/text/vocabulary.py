"""The vocabulary: one set of subwords for both languages (§5.1), by SentencePiece's byte-pair encoding.

Text that has no subword goes by its bytes, so every text can be encoded, and with the normalization "identity" every
text comes back exactly as it was. Two things stand outside of SentencePiece for that:

- SentencePiece writes a space as "▁" and would give a "▁" of the text back as a space. Here a "▁" of the text goes by
  its three bytes, which SentencePiece decodes to "▁".
- A lone surrogate is no character and has no bytes; it is encoded as U+FFFD.
"""

import hashlib
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, Self

import sentencepiece

from regard.errors import FileFormatError, UserError
from regard.files import read_bytes, write_file
from regard.text.sentencepiece_file import LARGEST_FILE, find_problem, is_byte_pair_encoding
from regard.tokens import END, PAD, START, UNKNOWN

_SPECIALS = {"pad": PAD, "unk": UNKNOWN, "bos": START, "eos": END}  # by SentencePiece's names
_SPACE = "▁"
_SURROGATES = re.compile("[\ud800-\udfff]")
_BYTE_NAMES = tuple(f"<0x{byte:02X}>" for byte in range(256))

# SentencePiece skips training sentences with U+2585 in them and ends the process at a word of 2^16 characters.
_NOT_LEARNED = str.maketrans({_SPACE: " ", "\u2585": " ", "\t": " ", "\0": " "})
_LEARNED_AT_ONCE = 10_000

# The number of threads is written into the model, so it must not differ from one machine to the next.
_TRAINING_THREADS = 4


class Vocabulary:
    """Subwords with their ids: text to ids, which end with `END`, and back."""

    def __init__(self, model: bytes, origin: Path | str = "vocabulary") -> None:
        self._model = model
        self._processor = _load_processor(model, origin)
        self.byte_ids: list[int] = self._processor.piece_to_id(list(_BYTE_NAMES))
        self._space_ids = [self.byte_ids[byte] for byte in _SPACE.encode()]
        # Under a normalization that removes NUL, a "▁" can't be told apart by one, and becomes a space.
        self._keeps_nul = self._processor.encode("\0")[-1:] == [self.byte_ids[0]]
        self.fingerprint = hashlib.sha256(model).hexdigest()

    # ---- making --------------------------------------------------------------------------------------------------

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a SentencePiece model; raises `FileFormatError` if it is none, or none that regard can use."""
        return cls(read_bytes(path, LARGEST_FILE), path)

    @classmethod
    def train(
        cls, sentences: Iterable[str], size: int, character_coverage: float = 0.9999, normalization: str = "identity"
    ) -> Self:
        """Learn at most `size` subwords from sentences; the same sentences give the same vocabulary.

        Raises `UserError` if there is no text, or if `size` does not even hold its characters.
        """
        model = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=_learnable(sentences),
                model_writer=model,
                model_type="bpe",
                vocab_size=size,
                hard_vocab_limit=False,
                character_coverage=character_coverage,
                byte_fallback=True,
                normalization_rule_name=normalization,
                remove_extra_whitespaces=False,
                add_dummy_prefix=True,
                max_sentence_length=1 << 30,
                num_threads=_TRAINING_THREADS,
                minloglevel=2,
                pad_id=PAD,
                unk_id=UNKNOWN,
                bos_id=START,
                eos_id=END,
            )
        except RuntimeError as error:
            raise UserError(_explain_training(str(error), size)) from None
        return cls(model.getvalue())

    def save(self, path: Path) -> None:
        """Write the SentencePiece model, whole or not at all."""
        write_file(path, self._model)

    def __len__(self) -> int:
        return len(self._processor)

    # ---- text to ids -----------------------------------------------------------------------------------------------

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text's subwords, then `END`."""
        text = _SURROGATES.sub("\ufffd", text)
        return self._unescape(self._processor.encode(self._escape(text), add_eos=True), text)

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text, each with `END` at its end; other threads of Python can run meanwhile."""
        marked = [number for number, text in enumerate(texts) if _SPACE in text]  # few, if any: the rest goes as it is
        escaped = list(texts)
        for number in marked:
            escaped[number] = self._escape(texts[number])
        try:
            encoded: list[list[int]] = self._processor.encode(escaped, add_eos=True, num_threads=1)
        except (RuntimeError, TypeError, UnicodeEncodeError):  # a lone surrogate, in the words of several versions
            return [self.encode(text) for text in texts]
        for number in marked:
            encoded[number] = self._unescape(encoded[number], texts[number])
        return encoded

    def _escape(self, text: str) -> str:
        return text.replace(_SPACE, "\0") if self._keeps_nul and _SPACE in text else text

    def _unescape(self, ids: list[int], text: str) -> list[int]:
        """Put the bytes of "▁" where `_escape` put a NUL for one, and leave the text's own NULs."""
        if not self._keeps_nul or _SPACE not in text:
            return ids
        nul = self.byte_ids[0]
        marks = iter([mark for mark in text if mark in (_SPACE, "\0")])
        parts = (self._space_ids if token == nul and next(marks, "") == _SPACE else [token] for token in ids)
        return [token for part in parts for token in part]

    # ---- ids to text -----------------------------------------------------------------------------------------------

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids; special ones are ignored, and bytes that are no UTF-8 become U+FFFD."""
        text: str = self._processor.decode([int(token) for token in ids if token > END])
        return text

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """Return each id's subword as people read it: "▁" is a space, "<0x0A>" a byte, "</s>" the end."""
        pieces: list[str] = self._processor.id_to_piece([int(token) for token in ids])
        return pieces

    def word_numbers(self, ids: Iterable[int]) -> list[int | None]:
        """Return for each id to which of the words of `decode(ids).split()` it belongs, counted from 0.

        White space belongs to the word that follows it, and a subword to the word of its first character. Special ids,
        and white space that no word follows, belong to none.
        """
        chunks = [self._bytes_of(int(token)) for token in ids]
        owners: list[int] = []  # of each byte
        words, inside = 0, False
        for character in b"".join(chunks).decode("utf-8", "surrogateescape"):
            visible = not character.isspace()
            words += visible and not inside
            inside = visible
            owners += [words - visible] * len(character.encode("utf-8", "surrogateescape"))
        starts = accumulate(map(len, chunks), initial=0)
        firsts = [owners[start] if chunk else words for start, chunk in zip(starts, chunks, strict=False)]
        return [owner if owner < words else None for owner in firsts]

    @property
    def is_byte_pair_encoding(self) -> bool:
        """Say whether subwords are merged, as in the paper; a model from elsewhere may choose them another way."""
        return is_byte_pair_encoding(self._model)

    def scored_subwords(self) -> dict[int, tuple[str, float]]:
        """Return each subword of text with its score, by id; neither special ids nor those of bytes."""
        processor = self._processor
        others = (processor.is_control, processor.is_unknown, processor.is_unused, processor.is_byte)
        ids = [token for token in range(len(self)) if not any(is_other(token) for is_other in others)]
        return dict(zip(ids, zip(processor.id_to_piece(ids), processor.get_score(ids), strict=True), strict=True))

    def begins_word(self) -> list[bool]:
        """Say of each id whether its subword begins with a space, and so a word."""
        pieces: list[str] = self._processor.id_to_piece(list(range(len(self))))
        return [piece.startswith(_SPACE) for piece in pieces]

    def _bytes_of(self, token: int) -> bytes:
        if token <= END:
            return b""
        piece: str = self._processor.id_to_piece(token)
        if self._processor.is_byte(token):
            return bytes([int(piece[1:-1], 16)])
        return piece.replace(_SPACE, " ").encode()


def _load_processor(model: bytes, origin: Path | str) -> Any:
    problem = find_problem(model)
    if problem:
        raise FileFormatError(origin, problem)
    processor = sentencepiece.SentencePieceProcessor()
    try:
        # An empty model loads without complaint, and complains on standard error at its first use.
        if not model or not processor.load_from_serialized_proto(model):
            raise RuntimeError
    except (RuntimeError, UnicodeDecodeError):  # the second: of a message that names a subword
        raise FileFormatError(origin, "not a SentencePiece model, or a damaged one") from None
    found = {name: getattr(processor, f"{name}_id")() for name in _SPECIALS}
    if found != _SPECIALS:
        raise FileFormatError(
            origin, f"its special tokens are {_options(found)}; train it with {_options(_SPECIALS)} for use with regard"
        )
    if not all(processor.is_byte(token) for token in processor.piece_to_id(list(_BYTE_NAMES))):
        raise FileFormatError(origin, "has no subwords for bytes; train it with --byte_fallback=true")
    try:
        processor.id_to_piece(list(range(len(processor))))
    except UnicodeDecodeError:
        raise FileFormatError(origin, "damaged: a subword is no UTF-8 text") from None
    return processor


def _options(ids: Mapping[str, int]) -> str:
    return " ".join(f"--{name}_id={number}" for name, number in ids.items())


def _learnable(sentences: Iterable[str]) -> Iterator[str]:
    """Give SentencePiece's trainer what it can learn from: what it would skip or fall over is left to the bytes."""
    for sentence in sentences:
        text = _SURROGATES.sub(" ", sentence.translate(_NOT_LEARNED))
        for start in range(0, len(text), _LEARNED_AT_ONCE):
            yield text[start : start + _LEARNED_AT_ONCE]


def _explain_training(problem: str, size: int) -> str:
    if "sentences_.empty()" in problem:
        return "no text to learn a vocabulary from"
    if needed := re.search(r"required_chars\. \d+ vs (\d+)", problem):
        return (
            f"data.vocabulary_size = {size:,} is too small: the text's characters, the 256 bytes and the special "
            f"tokens alone are {int(needed[1]):,}; raise it, or lower data.character_coverage"
        )
    return f"the vocabulary could not be trained: {problem}"
