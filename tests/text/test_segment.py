import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from regard.text.segment import Segment, join, split_sentences, split_to_fit

parts = [
    "Mr. ",
    "Go. ",
    "word ",
    "and, ",
    " ",
    "\n",
    "\u3000",
    "日本。",
    "！",
    "3. ",
    "x" * 30,
    "?) ",
    "…",
    "A",
    "\t",
    ". ",
]
long_text = st.text() | st.lists(st.sampled_from(parts), max_size=60).map("".join)


def whole(segments: list[Segment]) -> str:
    return "".join(segment.text + segment.space for segment in segments)


def texts(text: str) -> list[str]:
    return [segment.text for segment in split_sentences(text)]


# ---- sentences -------------------------------------------------------------------------------------------------------


@given(long_text)
def test_sentences_and_their_spaces_are_the_text(text: str) -> None:
    segments = split_sentences(text)
    assert whole(segments) == text
    assert all(segment.space.isspace() or not segment.space for segment in segments)
    assert all(segment.text == segment.text.strip() for segment in segments)
    assert all(segment.text for segment in segments[1:])


@pytest.mark.parametrize(
    "sentences",
    [
        ["He came.", "She left!", "Why?", "Nobody knows…", "3 days passed."],
        ['"Really?" she asked.', "(He nodded.)", "«Oui.»", "“Yes.”", "[No.]"],
        ["Er fragte: „Wann?“", "Niemand wusste es.", "Übermorgen vielleicht."],
        ["It ended in 1990.", "Then it began again."],
        ["No.", "See no. 5 first.", "Fine."],
        ["Он ушёл.", "Она осталась."],
        ["क्या हुआ?", "वह गया।", "ठीक है।"],
    ],
)
def test_sentences_end_at_marks_before_something_that_is_not_a_small_letter(sentences: list[str]) -> None:
    assert texts(" ".join(sentences)) == sentences


@pytest.mark.parametrize(
    "sentence",
    [
        "Mr. Smith and Dr. J. R. Brown met Prof. Weiß.",
        "Das ist z. B. am 3. Mai oder d. h. im Frühling so.",
        "The U.S. Army, e.g. at Fort St. John, paid 3.5 Mio. Euro.",
        "He said. . . nothing.",
        "Is it 5 p.m. or later?",
        "what? she asked",
        "www.example.com is a site.",
    ],
)
def test_abbreviations_initials_and_numbers_end_no_sentence(sentence: str) -> None:
    assert texts(sentence) == [sentence]


def test_full_width_marks_need_no_space() -> None:
    assert split_sentences("今日は。「元気？」はい！ そう。") == [
        Segment("今日は。", ""),
        Segment("「元気？」", ""),
        Segment("はい！", " "),
        Segment("そう。", ""),
    ]


def test_a_line_break_ends_a_sentence() -> None:
    assert split_sentences("A title\n\n  Some text\r\nMore\n") == [
        Segment("A title", "\n\n  "),
        Segment("Some text", "\r\n"),
        Segment("More", "\n"),
    ]


def test_white_space_around_a_text_is_kept() -> None:
    assert split_sentences("  Go. ") == [Segment("", "  "), Segment("Go.", " ")]
    assert split_sentences(" \n ") == [Segment("", " \n ")]
    assert split_sentences("") == []


# ---- pieces ----------------------------------------------------------------------------------------------------------


@given(long_text, st.integers(1, 40))
@example("word " * 50, 7)
@example("x" + " " * 300 + "y", 9)
def test_pieces_fit_and_are_the_text(text: str, limit: int) -> None:
    pieces = split_to_fit(text, len, limit)
    assert whole(pieces) == text
    assert all(len(piece.text) <= limit for piece in pieces)
    assert all(piece.space.isspace() or not piece.space for piece in pieces)
    assert all(piece.text == piece.text.strip() for piece in pieces)


def test_what_fits_stays_whole() -> None:
    assert split_to_fit("One. Two. Three.", len, 20) == [Segment("One. Two. Three.", "")]
    assert split_to_fit("One. Two.\nThree.", len, 20) == [Segment("One. Two.", "\n"), Segment("Three.", "")]


def test_what_does_not_fit_becomes_its_sentences() -> None:
    pieces = split_to_fit("One day. Two days.  Three days.", len, 20)
    assert pieces == [Segment("One day.", " "), Segment("Two days.", "  "), Segment("Three days.", "")]


def test_a_long_sentence_is_cut_after_a_comma_near_its_middle() -> None:
    pieces = split_to_fit("when the rain had stopped, we all went out again", len, 30)
    assert [piece.text for piece in pieces] == ["when the rain had stopped,", "we all went out again"]


def test_without_a_comma_it_is_cut_at_a_space() -> None:
    pieces = split_to_fit("when the rain had stopped we all went out again", len, 30)
    assert len(pieces) == 2
    assert all(piece.text in "when the rain had stopped we all went out again" for piece in pieces)
    assert pieces[0].space == " "


def test_without_a_space_it_is_cut_between_characters() -> None:
    assert [len(piece.text) for piece in split_to_fit("x" * 100, len, 30)] == [25, 25, 25, 25]


def test_a_character_that_does_not_fit_is_left_whole() -> None:
    assert split_to_fit("ab c", lambda text: 5, 1) == [Segment("a", ""), Segment("b", " "), Segment("c", "")]


@pytest.mark.parametrize("text", ["word, " * 40_000, "x" * 200_000, " )" * 100_000, "Go on. " * 30_000, "。" * 200_000])
def test_a_very_long_line_is_measured_a_few_times_only(text: str) -> None:
    measured = 0

    def measure(part: str) -> int:
        nonlocal measured
        measured += len(part)
        return len(part) // 3 + 1

    pieces = split_to_fit(text, measure, 50)
    assert whole(pieces) == text
    assert measured < 6 * len(text)


# ---- back ------------------------------------------------------------------------------------------------------------


def test_translations_come_with_the_white_space_that_was_between() -> None:
    segments = split_sentences(" One. Two.\n\nThree. ")
    assert join(segments, ["", "Eins.", "Zwei.", "Drei."]) == " Eins. Zwei.\n\nDrei. "


def test_a_space_is_added_where_a_full_width_mark_was() -> None:
    assert join(split_sentences("今日は。元気？"), ["Hello.", "How are you?"]) == "Hello. How are you?"
    assert join(split_sentences("今日は。元気？"), ["你好。", "你好吗？"]) == "你好。你好吗？"


@given(long_text)
def test_joining_the_segments_themselves_gives_the_text_back(text: str) -> None:
    segments = split_sentences(text)
    assert join(segments, [segment.text for segment in segments]) == text
