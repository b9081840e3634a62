"""Text can't become markup, whatever it is."""

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.report.differences import mark_differences
from regard.report.markup import Markup, element, join


class Reader(HTMLParser):
    """Collects elements and text as a browser would read them."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, list[tuple[str, str | None]]]] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):  # type: ignore[no-untyped-def]
        self.elements.append((tag, attrs))

    def handle_data(self, data):  # type: ignore[no-untyped-def]
        self.text += data


@pytest.mark.parametrize(
    "text", ["<script>x</script>", "</p><img src=x onerror=y>", "&lt;b&gt;", "\"'><b>", "<!--", "]]>", "&#60;"]
)
def test_hostile_text_stays_text(text: str) -> None:
    read = Reader(element("p", text, title=text))
    assert read.elements == [("p", [("title", text)])]
    assert read.text == text


@given(st.text(), st.text())
def test_any_text_stays_text_in_elements_and_differences(ours: str, theirs: str) -> None:
    left, right = mark_differences(ours, theirs)
    read = Reader(element("p", left, right, ours))
    assert {name for name, _ in read.elements} <= {"p", "mark"}


def test_controls_and_what_turns_letters_around_are_replaced() -> None:
    assert element("p", "a\x00b\x1bc\u202ed\ud800e\te\nf") == "<p>a\ufffdb\ufffdc\ufffdd\ufffde\te\nf</p>"
    assert "\x00" not in element("p", title="\x00")


def test_elements_nest_and_none_is_left_out() -> None:
    inner = element("b", "1 < 2")
    assert element("p", inner, None, " & ", class_="x", width=None) == '<p class="x"><b>1 &lt; 2</b> &amp; </p>'
    assert join("a", Markup("<br>")) == "a<br>"


# ---- differences -----------------------------------------------------------------------------------------------------


def test_words_that_differ_are_marked_on_their_side() -> None:
    ours, theirs = mark_differences("der alte  Mann liest", "der Mann liest heute")
    assert ours == 'der <mark class="ours">alte</mark> Mann liest'
    assert theirs == 'der Mann liest <mark class="theirs">heute</mark>'


def test_equal_texts_have_no_marks_and_empty_ones_are_all_marked() -> None:
    assert mark_differences("a b", "a  b") == ("a b", "a b")
    assert mark_differences("", "a b") == ("", '<mark class="theirs">a b</mark>')


def test_very_long_texts_are_shown_unmarked() -> None:
    ours, theirs = mark_differences("a " * 500, "b")
    assert "<mark" not in ours + theirs
