"""What a translator is asked and what it answers."""

import pytest

from regard.errors import UserError
from regard.search.hypothesis import length_penalty
from regard.text.segment import Segment
from regard.translation import Candidate, SearchOptions, Translation, assemble

OPTIONS = SearchOptions(beam=4, length_penalty=0.6, extra_length=50)


def candidate(text: str, *scores: float, alignment: tuple[tuple[int, int], ...] = ()) -> Candidate:
    return Candidate(text, sum(scores), tuple(text.split()), scores, alignment)


# ---- options ---------------------------------------------------------------------------------------------------------


def test_changes_leave_the_rest_as_it_was() -> None:
    changed = OPTIONS.change({"beam": 2, "seed": 5})
    assert (changed.beam, changed.seed, changed.length_penalty) == (2, 5, 0.6)
    assert OPTIONS.beam == 4


def test_more_translations_than_the_beam_widen_it_unless_it_was_given() -> None:
    assert OPTIONS.change({"n_best": 7}).beam == 7
    with pytest.raises(UserError, match="n_best = 7 needs a beam of at least that; it is 3"):
        OPTIONS.change({"n_best": 7, "beam": 3})
    assert OPTIONS.change({"n_best": 7, "beam": 3, "sampling": True}).hypotheses == 7


def test_an_unknown_option_is_answered_with_the_closest() -> None:
    with pytest.raises(UserError, match=r"no search option 'beem'\. Did you mean 'beam'"):
        OPTIONS.change({"beem": 2})  # type: ignore[typeddict-unknown-key]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, 0) for name in ("beam", "n_best", "batch_tokens", "top_k", "temperature")),
        *(("temperature", value) for value in (-1.0, float("nan"), float("inf"))),
        *(("length_penalty", value) for value in (-0.1, float("nan"), float("inf"))),
        ("extra_length", -1),
    ],
)
def test_values_that_make_no_sense_are_refused_by_name(name: str, value: float) -> None:
    with pytest.raises(UserError, match=f"^{name} = "):
        OPTIONS.change({name: value})  # type: ignore[misc]


# ---- putting together ------------------------------------------------------------------------------------------------


def test_a_blank_text_is_translated_to_an_empty_one() -> None:
    found = assemble("  ", [], [], OPTIONS)
    assert (found.source, found.text, found.score, found.tokens, found.error) == ("  ", "", 0.0, (), None)


def test_one_piece_is_given_as_it_was_found() -> None:
    best, second = candidate("x y", -1.0, -2.0), candidate("z", -5.0)
    found = assemble("a b", [Segment("a b", "")], [[best, second]], OPTIONS)
    assert found.candidates == (best, second)
    assert (found.text, str(found), found.score) == ("x y", "x y", -3.0)
    assert (found.tokens, found.token_scores) == (("x", "y"), (-1.0, -2.0))


def test_pieces_are_joined_with_the_space_that_was_between_them() -> None:
    pieces = [Segment("a b.", "  "), Segment("c.", "\n"), Segment("d", "")]
    results = [
        [candidate("x y.", -1.0, alignment=((0, 1), (1, 0)))],
        [candidate("z.", -2.0, alignment=((0, 0),))],
        [candidate("w", -3.0, alignment=((0, 0),))],
    ]
    found = assemble("a b.  c.\nd", pieces, results, OPTIONS)
    assert found.text == "x y.  z.\nw"
    assert found.token_scores == (-1.0, -2.0, -3.0)
    assert found.score == pytest.approx(-6.0 / length_penalty(3, 0.6))
    assert found.alignment == ((0, 1), (1, 0), (2, 2), (3, 3))
    assert found.candidates[0].log_probability == -6.0


def test_words_cut_in_two_count_once() -> None:
    pieces = [Segment("aaaa", ""), Segment("aa b", "")]
    results = [[candidate("xxxx", -1.0, alignment=((0, 0),))], [candidate("xx y", -1.0, alignment=((0, 0), (1, 1)))]]
    found = assemble("aaaaaa b", pieces, results, OPTIONS)
    assert found.text == "xxxxxx y"
    assert found.alignment == ((0, 0), (0, 0), (1, 1))


def test_the_second_best_of_the_whole_is_made_of_the_second_best_of_each() -> None:
    pieces = [Segment("a", " "), Segment("b", "")]
    results = [[candidate("x", -1.0), candidate("X", -2.0)], [candidate("y", -1.0)]]
    assert [one.text for one in assemble("a b", pieces, results, OPTIONS).candidates] == ["x y", "X y"]


def test_a_piece_that_failed_fails_the_whole() -> None:
    pieces = [Segment("a", " "), Segment("b", "")]
    found = assemble("a b", pieces, [[candidate("x", -1.0)], "RuntimeError: no luck"], OPTIONS)
    assert (found.text, found.score, found.error) == ("", float("-inf"), "RuntimeError: no luck")


def test_what_an_empty_candidate_has_is_a_number() -> None:
    assert Translation("", (Candidate("", 0.0),)).candidates[0].log_probability == 0.0
    assert isinstance(Candidate("", 0.0).log_probability, float)
