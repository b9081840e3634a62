"""A SentencePiece model's file, looked at before SentencePiece loads it: a stranger's may be made to fill the memory.

The file is a Protocol Buffers message. Of its fields only three matter here: the subwords, of which there must not be
too many or too long ones, and the two normalizations, whose tables must not turn a character into a megabyte.
"""

from collections.abc import Iterator

LARGEST_FILE = 1 << 25  # a million subwords take some 20 MB
_LONGEST = 1000  # of a subword, and of what a normalization puts in the place of a character, in bytes
_MOST_PIECES = 1 << 20

_PIECES, _NORMALIZATIONS, _TABLE = 1, (3, 5), 2  # numbers of fields: of the model, and of a normalization
_TRAINER, _METHOD, _BYTE_PAIRS = 2, 3, b"\2"  # of the model and of what it was trained with; a value of that
_NUMBER, _EIGHT_BYTES, _TEXT, _FOUR_BYTES = 0, 1, 2, 5  # how a field is written


def find_problem(model: bytes) -> str | None:
    """Say why a model should not be loaded; None if nothing speaks against it."""
    pieces = 0
    try:
        for number, value in _fields(model):
            pieces += number == _PIECES
            if pieces > _MOST_PIECES:
                return f"more than {_MOST_PIECES:,} subwords"
            if number == _PIECES and len(value) > _LONGEST:
                return f"a subword of more than {_LONGEST:,} bytes"
            if number in _NORMALIZATIONS and any(_is_too_long(table) for table in _tables(value)):
                return f"its normalization makes more than {_LONGEST:,} bytes of a character"
    except (ValueError, IndexError):
        return "not a SentencePiece model, or a damaged one"
    return None


def is_byte_pair_encoding(model: bytes) -> bool:
    """Say whether a model that can be loaded merges pairs, and does not choose subwords by their probability."""
    trainers = (value for number, value in _fields(model) if number == _TRAINER)
    return any(value == _BYTE_PAIRS for trainer in trainers for number, value in _fields(trainer) if number == _METHOD)


def _tables(normalization: bytes) -> Iterator[bytes]:
    return (value for number, value in _fields(normalization) if number == _TABLE)


def _is_too_long(table: bytes) -> bool:
    """Look at a table of characters: the length of an index, the index, then replacements that end with NUL."""
    replacements = table[4 + int.from_bytes(table[:4], "little") :]
    return max(map(len, replacements.split(b"\0"))) > _LONGEST


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield each field of a message with its number: texts, and numbers as they are written; others are empty.

    Raises `ValueError` or `IndexError` where the message is cut off or is none.
    """
    place = 0
    while place < len(message):
        tag, place = _read_number(message, place)
        number, kind = tag >> 3, tag & 7
        size = 0
        if kind == _NUMBER:
            size = _read_number(message, place)[1] - place
        elif kind == _TEXT:
            size, place = _read_number(message, place)
        elif kind in (_FOUR_BYTES, _EIGHT_BYTES):
            place += 4 if kind == _FOUR_BYTES else 8
        else:
            raise ValueError
        if place + size > len(message) or number >= 1 << 29:
            raise ValueError
        yield number, message[place : place + size]
        place += size


def _read_number(message: bytes, place: int) -> tuple[int, int]:
    """Return a number, seven bits a byte, and the place after it."""
    if (byte := message[place]) < 0x80:  # as most are: this is called twice for each subword
        return byte, place + 1
    value = 0
    for shift in range(0, 70, 7):
        byte = message[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
    raise ValueError
