"""Segments: long text to sentences and back, with the white space between them returned as it was.

The rules know no language. A sentence ends at a mark of the end, possibly with quotes or brackets after it, then white
space, then something that is not a small letter. A full stop after an abbreviation, an initial or a short number ("3.
Mai") ends nothing: a sentence too few is translated better than half a sentence. Every line break ends a sentence, as a
model that is trained on lines could not give it back.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple


class Segment(NamedTuple):
    """A piece of text, and the white space between it and the next one."""

    text: str
    space: str


_ENDS = ".!?…؟۔।॥։።"
_CLOSERS = "\"'”“’‘»›«‹)]}*_"
_OPENERS = "\"'“„‘‚«‹»›([{¿¡—–-*_•"

# Full-width marks end a sentence by themselves, white space or not.
_BREAK = re.compile(r"[。！？｡][。！？｡”’」』）】》]*\s*|\s+")
_CLAUSE = re.compile(r"[,;:،؛—–)]\s+|[、，；：]\s*")
_SPACE = re.compile(r"\s+")

_ABBREVIATION = re.compile(
    "mr|mrs|ms|messrs|dr|prof|st|sr|jr|rev|hon|gen|col|capt|lt|sgt|sen|rep|gov|pres|mt|vs|cf|approx|inc|ltd|corp|co|bros|"
    "dept|jan|feb|apr|jun|jul|aug|sept?|oct|nov|dec|mme|mlle|sra?|dña|sig|hr|fr|frl|dipl|ing|bzw|ca|evtl|ggf|inkl|exkl|"
    "zzgl|sog|vgl|geb|gest|str|mio|mrd|tel",
    re.IGNORECASE,
)
_BEFORE_A_NUMBER = re.compile("no|nos|nr|nrn|fig|vol|pp|abs|art|bd|kap|sec|ch|eq|tab|núm", re.IGNORECASE)


# ---- sentences -------------------------------------------------------------------------------------------------------


def split_sentences(text: str) -> list[Segment]:
    """Cut a text into sentences; their texts and spaces, joined, are the text again.

    White space before the first sentence is the space of an empty segment.
    """
    return _cut(text, _sentence_breaks(text))


def _sentence_breaks(text: str) -> Iterator[tuple[int, int]]:
    """Yield where white space (maybe none) between two sentences begins and ends."""
    word = 0  # where the word before the white space begins
    for match in _BREAK.finditer(text):
        start, end = match.span()
        if not match[0][0].isspace():
            yield start + len(match[0].rstrip()), end
        elif (
            start == 0 or end == len(text) or "\n" in match[0] or _ends_sentence(text[word:start], text[end : end + 10])
        ):
            yield start, end
        word = end


def _ends_sentence(word: str, following: str) -> bool:
    """Say whether a sentence ends after a word, given the beginning of what follows."""
    word = word.rstrip(_CLOSERS)
    if not word or word[-1] not in _ENDS:
        return False
    opening = following.lstrip(_OPENERS)
    if opening[:1].islower() or opening[:1] in tuple(_ENDS):
        return False
    stem = word[:-1].lstrip(_OPENERS)
    if word[-1] != "." or stem[-1:] in _ENDS:
        return True
    return not (
        (stem.isdigit() and len(stem) <= 2)
        or (stem.isalpha() and len(stem) == 1)
        or "." in stem.rstrip(".")
        or _ABBREVIATION.fullmatch(stem)
        or (_BEFORE_A_NUMBER.fullmatch(stem) and opening[:1].isdigit())
    )


def _cut(text: str, breaks: Iterator[tuple[int, int]]) -> list[Segment]:
    segments = []
    start = 0
    for end, following in breaks:
        segments.append(Segment(text[start:end], text[end:following]))
        start = following
    if start < len(text):
        segments.append(Segment(text[start:], ""))
    return segments


# ---- pieces of a given size ------------------------------------------------------------------------------------------


def split_to_fit(
    text: str, measure: Callable[[str], int], limit: int, sentence_limit: int | None = None
) -> list[Segment]:
    """Cut a text into pieces that measure at most `limit`, and no more than that needs.

    A line that fits stays whole; else its sentences are the pieces, and may measure up to `sentence_limit` if that is
    given, for half a sentence is translated worse than a long one. A sentence that does not fit is cut into parts of
    like size, if possible after a comma or the like, else at white space, and as a last resort between characters. A
    single character is never cut, whatever it measures.
    """
    most = limit if sentence_limit is None else max(limit, sentence_limit)
    return [piece for line in _cut(text, _line_breaks(text)) for piece in _fit_line(line, measure, limit, most)]


def _line_breaks(text: str) -> Iterator[tuple[int, int]]:
    """Yield where white space with a line break in it begins and ends, and white space around the text."""
    for match in _SPACE.finditer(text):
        if match.start() == 0 or match.end() == len(text) or "\n" in match[0]:
            yield match.span()


def _fit_line(line: Segment, measure: Callable[[str], int], limit: int, sentence_limit: int) -> Iterator[Segment]:
    if measure(line.text) <= limit:
        yield line
        return
    for sentence in _with_space(split_sentences(line.text), line.space):
        yield from _fit(sentence, measure, sentence_limit)


def _fit(piece: Segment, measure: Callable[[str], int], limit: int) -> Iterator[Segment]:
    text = piece.text.strip()
    if len(text) < len(piece.text):  # a long run of white space was cut
        before, _, after = piece.text.partition(text) if text else (piece.text, "", "")
        yield from [Segment("", before)] if before else []
        piece = Segment(text, after + piece.space)
    size = measure(text)
    if size <= limit or len(text) < 2:
        yield piece
        return
    # As many parts as the size asks for, and some to spare, so that a text of any length is measured a few times only.
    parts = min(max(2, -(-size * 10 // (max(limit, 1) * 9))), len(text))
    for part in _with_space(_cut(text, _even_breaks(text, parts)), piece.space):
        yield from _fit(part, measure, limit)


def _with_space(segments: list[Segment], space: str) -> list[Segment]:
    """Give the last of the segments the space that followed the whole."""
    return [*segments[:-1], Segment(segments[-1].text, segments[-1].space + space)]


def _even_breaks(text: str, parts: int) -> Iterator[tuple[int, int]]:
    """Yield breaks that cut a text into about so many parts of like size, each at the best place near by."""
    bounds = [len(text) * number // parts for number in range(parts + 1)]
    reach = max(1, len(text) // parts // 2)
    done = 0
    for bound, _ in pairwise(bounds[1:]):
        start, end = _best_break(text, max(done + 1, bound - reach), bound, min(len(text) - 1, bound + reach))
        if start > done:
            yield start, end
            done = end


def _best_break(text: str, low: int, wanted: int, high: int) -> tuple[int, int]:
    """Return the break nearest to `wanted` within [low, high] after a clause, else at white space, else in a word."""
    for pattern in (_CLAUSE, _SPACE):
        spans = [match.span() for match in pattern.finditer(text, low, high)]
        if spans:
            start, end = min(spans, key=lambda span: abs(span[1] - wanted))
            return start + len(text[start:end].rstrip()), end
    return wanted, wanted


# ---- back ------------------------------------------------------------------------------------------------------------


def join(segments: Sequence[Segment], translations: Sequence[str]) -> str:
    """Put the translations of segments together, with the white space that was between the segments.

    Full-width marks have no white space after them; where such a mark becomes one that needs it, a space is added.
    """
    parts: list[str] = []
    for number, (segment, translation) in enumerate(zip(segments, translations, strict=True), start=1):
        needs_space = (
            number < len(segments) and not segment.space and _is_wide(segment.text) and not _is_wide(translation)
        )
        parts += [translation, " " if needs_space and translation else segment.space]
    return "".join(parts)


def _is_wide(text: str) -> bool:
    return unicodedata.east_asian_width(text[-1:] or " ") in "WF"
