"""SentencePiece models made by strangers: refused before they fill the memory."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import FileFormatError
from regard.text.sentencepiece_file import find_problem
from regard.text.vocabulary import Vocabulary

Field = tuple[int, bytes | int]
PIECES, NORMALIZATION, DENORMALIZATION, TABLE = 1, 3, 5, 2


def number(value: int) -> bytes:
    return number_with_more(value) if value > 127 else bytes([value])


def number_with_more(value: int) -> bytes:
    return bytes([value & 127 | 128]) + number(value >> 7)


def message(fields: Iterable[Field]) -> bytes:
    """Write a Protocol Buffers message of texts and whole numbers."""
    parts = []
    for name, value in fields:
        if isinstance(value, int):
            parts.append(number(name << 3) + number(value))
        else:
            parts.append(number(name << 3 | 2) + number(len(value)) + value)
    return b"".join(parts)


def model_of(normalization: str = "identity") -> bytes:
    return Vocabulary.train(["a b c d the cat sat"] * 5, 300, normalization=normalization)._model


def table(*replacements: bytes) -> bytes:
    """Write a table of characters with an index that is empty."""
    return bytes(4) + b"".join(one + b"\0" for one in replacements)


@pytest.mark.parametrize("normalization", ["identity", "nfkc", "nmt_nfkc", "nfkc_cf", "nmt_nfkc_cf"])
def test_what_sentencepiece_writes_is_fine(normalization: str) -> None:
    assert find_problem(model_of(normalization)) is None


@pytest.mark.parametrize("which", [NORMALIZATION, DENORMALIZATION])
def test_a_character_that_becomes_a_megabyte_is_refused(which: int) -> None:
    hostile = message([(which, message([(TABLE, table(b"a", b"b" * 1_000_000))]))])
    with pytest.raises(FileFormatError, match="makes more than 1,000 bytes of a character"):
        Vocabulary(model_of() + hostile)


def test_more_subwords_than_there_can_be_are_refused_before_they_are_loaded() -> None:
    with pytest.raises(FileFormatError, match="more than 1,048,576 subwords"):
        Vocabulary(message([(PIECES, b"")]) * (1 << 21))


def test_a_subword_longer_than_any_word_is_refused() -> None:
    with pytest.raises(FileFormatError, match="a subword of more than 1,000 bytes"):
        Vocabulary(model_of() + message([(PIECES, message([(1, b"x" * 1_000_000)]))]))


@pytest.mark.parametrize("name", [b"\xff\xfe", b"a\xff"], ids=repr)
def test_a_subword_that_is_no_text_is_refused(name: bytes) -> None:
    with pytest.raises(FileFormatError, match="damaged"):
        Vocabulary(model_of() + message([(PIECES, message([(1, name)]))]))


@pytest.mark.parametrize("name", [b"\xff\xfe", b"a"], ids=repr)
def test_a_subword_that_comes_twice_is_refused(name: bytes) -> None:
    twice = message([(PIECES, message([(1, name)]))] * 2)
    with pytest.raises(FileFormatError, match="not a SentencePiece model, or a damaged one"):
        Vocabulary(model_of() + twice)


@given(st.binary(max_size=200))
def test_bytes_that_are_no_message_raise_nothing(data: bytes) -> None:
    find_problem(data)


@given(
    st.lists(st.tuples(st.integers(1, 1 << 28), st.binary(max_size=300) | st.integers(0, (1 << 64) - 1)), max_size=5)
)
def test_any_message_is_walked_to_its_end_and_one_cut_off_is_not(fields: list[Field]) -> None:
    others = [field for field in fields if field[0] not in (NORMALIZATION, DENORMALIZATION)]
    data = message(others)
    assert find_problem(data) is None
    if others:
        starts = {len(message(others[:count])) for count in range(len(others))}
        cuts = set(range(len(data))) - starts
        assert all(find_problem(data[:cut]) for cut in cuts)
