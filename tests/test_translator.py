"""The translator: text in, text out, in the caller's order."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import regard
from regard.errors import UserError
from regard.machine import choose_machine
from regard.settings import resolve
from regard.text.vocabulary import Vocabulary
from regard.translation import Candidate, SearchOptions
from regard.translator import Translator, _batches, cut_windows

TEXTS = ["a 1", "", "b 2 c 3 d 4", "  ", "e", "f 5 a 6 b 1 c 2 d 3", "zebra ▁ 中\u2028x", "a 1"]


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return Vocabulary.train([" ".join(row) for row in zip("abcdef", "123456", "ghijkl", strict=True)] * 3, 300)


@pytest.fixture(scope="module")
def translator(tiny_model: Callable[..., Any], vocabulary: Vocabulary) -> Translator:
    """A random model; texts longer than 30 tokens are split."""
    recipe = resolve({"data": {"max_length": 30}, "search": {"extra_length": 4}})
    model = tiny_model(len(vocabulary), seed=3, sharpness=4.0)
    return Translator(model, vocabulary, recipe, choose_machine("cpu"))


class Echo(Translator):
    """A translator whose search gives back what it reads; `refuse` says what it raises for some batches."""

    refuse: Callable[[list[str]], Exception | None] = staticmethod(lambda texts: None)

    def _search(self, units: Sequence[Any], options: SearchOptions) -> list[list[Candidate]]:
        texts = [self.vocabulary.decode(unit.tokens) for unit in units]
        self.searched.append(texts)
        error = self.refuse(texts)
        if error:
            raise error
        return [[Candidate(text, -1.0, (), (-1.0,))] for text in texts]

    searched: list[list[str]]


@pytest.fixture
def echo(translator: Translator) -> Echo:
    machine = choose_machine("cpu")
    echo = Echo(translator.model, translator.vocabulary, translator.settings, machine)
    echo.searched = []
    return echo


def texts_of(found: Sequence[Any]) -> list[str]:
    return [one.text for one in found]


# ---- from Python -----------------------------------------------------------------------------------------------------


def test_a_text_gives_a_translation_and_a_list_gives_a_list(translator: Translator) -> None:
    one = translator.translate("a 1")
    many = translator.translate(["a 1", "b 2"])
    assert one.source == "a 1"
    assert one.score <= 0
    assert len(one.tokens) == len(one.token_scores)
    assert isinstance(many, list)
    assert many[0].text == one.text
    assert translator.translate([]) == []


def test_a_model_is_loaded_from_its_folder(translator: Translator, tmp_path: Path) -> None:
    from regard.model_folder import named_weights, write_model

    model = translator.model
    shape = {"d_model": 16, "d_ff": 32, "heads": 4, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0}
    recipe = resolve({"model": shape, "data": {"max_length": 30}, "search": {"extra_length": 4}})
    for folder, path in ((tmp_path / "one", tmp_path / "one"), (tmp_path / "run" / "model", tmp_path / "run")):
        write_model(folder, named_weights(model), translator.vocabulary, recipe, {}, "")
        loaded = regard.load(str(path), device="cpu")
        assert texts_of(loaded.translate(TEXTS)) == texts_of(translator.translate(TEXTS))


def test_options_that_make_no_sense_are_refused_before_anything_is_read(translator: Translator) -> None:
    with pytest.raises(UserError, match="no search option 'beems'"):
        translator.translate("a", beems=3)  # type: ignore[call-overload]

    def unread() -> Any:
        raise AssertionError("read")
        yield

    with pytest.raises(UserError, match="beam = 0"):
        translator.translate_lines(unread(), beam=0)


# ---- the same whatever surrounds it ----------------------------------------------------------------------------------


def test_blank_texts_never_reach_the_model(echo: Echo) -> None:
    assert texts_of(echo.translate(["", " \t", "\u2028\x85\n", "a"])) == ["", "", "", "a"]
    assert echo.searched == [["a"]]


@pytest.mark.parametrize("changes", [{}, {"beam": 1}, {"n_best": 3}, {"sampling": True, "n_best": 2}])
def test_neither_batches_nor_windows_change_a_translation(translator: Translator, changes: Any) -> None:
    whole = translator.translate(TEXTS, alignments=True, **changes)
    for batch_tokens, window in ((1, 2048), (40, 2048), (4096, 1), (64, 3)):
        found = list(translator.translate_lines(TEXTS, window, batch_tokens=batch_tokens, alignments=True, **changes))
        for one, other in zip(whole, found, strict=True):
            assert texts_of(one.candidates) == texts_of(other.candidates)
            assert one.alignment == other.alignment
            assert one.token_scores == pytest.approx(other.token_scores, abs=1e-4)  # float32 sums in another order


def test_a_sentence_alone_is_translated_as_in_a_batch_of_64(translator: Translator) -> None:
    texts = [" ".join("abcdef"[(number + place) % 6] for place in range(number % 9 + 1)) for number in range(64)]
    together = translator.translate(texts)
    assert texts_of(together) == [translator.translate(text).text for text in texts]


def test_a_beam_of_one_is_greedy(translator: Translator) -> None:
    from regard.search.greedy import greedy_search

    found = translator.translate("b 2 c", beam=1)
    ids = translator.vocabulary.encode("b 2 c")
    (best,) = greedy_search(translator.model, torch.tensor([ids]), torch.tensor([len(ids) + 4]), 0.6)
    assert found.text == translator.vocabulary.decode(best.tokens)
    assert found.score == pytest.approx(best.score, abs=1e-5)


def test_draws_are_repeated_by_a_seed_and_differ_from_line_to_line(translator: Translator) -> None:
    first = texts_of(translator.translate(["a 1"] * 4, sampling=True, seed=1))
    assert texts_of(translator.translate(["a 1"] * 4, sampling=True, seed=1)) == first
    assert texts_of(translator.translate(["a 1"] * 4, sampling=True, seed=2)) != first
    assert len(set(first)) > 1
    greedy = translator.translate("a 1", beam=1).text
    assert translator.translate("a 1", sampling=True, top_k=1).text == greedy


# ---- long texts ------------------------------------------------------------------------------------------------------


@given(
    words=st.lists(st.text(st.sampled_from("abcdef123.!?,中"), min_size=1, max_size=40), min_size=1, max_size=40),
    space=st.sampled_from([" ", "  ", "\t", "\n", " \n "]),
)
@settings(max_examples=40)
def test_a_long_text_is_split_and_put_together_again(
    tiny_model: Callable[..., Any], vocabulary: Vocabulary, words: list[str], space: str
) -> None:
    recipe = resolve({"data": {"max_length": 30}})
    echo = Echo(tiny_model(len(vocabulary)), vocabulary, recipe, choose_machine("cpu"))
    echo.searched = []
    text = space.join(words)
    # Where nothing separates a full-width mark from the next sentence, a space may be added; there is none here.
    assert echo.translate(text).text == text
    pieces = [piece for batch in echo.searched for piece in batch]
    assert all(len(vocabulary.encode(piece)) <= 30 for piece in pieces)
    assert not any("\n" in piece for piece in pieces)


def test_a_text_longer_than_any_the_model_has_seen_is_split_at_sentence_ends(translator: Translator) -> None:
    echo = Echo(translator.model, translator.vocabulary, translator.settings, choose_machine("cpu"), longest=9)
    echo.searched = []
    assert echo.translate("a bb. C dd. E ff.").text == "a bb. C dd. E ff."
    assert sorted(echo.searched[0]) == ["C dd.", "E ff.", "a bb."]


def test_a_sentence_a_little_longer_than_any_the_model_has_seen_stays_whole(translator: Translator) -> None:
    text = "a 1 b 2 c 3"
    tokens = len(translator.vocabulary.encode(text))
    for longest, stays_whole in ((tokens - 1, True), (tokens // 2, False)):
        echo = Echo(translator.model, translator.vocabulary, translator.settings, choose_machine("cpu"), longest)
        echo.searched = []
        assert echo.translate(text).text == text
        assert (echo.searched[0] == [text]) is stays_whole


def test_a_piece_of_white_space_does_not_reach_the_model(echo: Echo) -> None:
    text = f"a 1.{' ' * 5000}b 2"
    assert echo.translate(text).text == text
    assert all(piece.strip() for batch in echo.searched for piece in batch)


def test_lines_of_a_text_are_translated_one_by_one_and_keep_their_breaks(translator: Translator) -> None:
    first, second = translator.translate(["a 1", "b 2"])
    found = translator.translate("a 1\n\nb 2", alignments=True)
    assert found.text == f"{first.text}\n\n{second.text}"
    assert max(source for source, _ in found.alignment) >= 2 or not found.alignment


# ---- what fails ------------------------------------------------------------------------------------------------------


def test_a_batch_that_does_not_fit_is_halved_until_it_does(echo: Echo) -> None:
    echo.refuse = lambda texts: MemoryError("too much") if len(texts) > 2 else None  # type: ignore[method-assign]
    texts = [f"a {number}" for number in range(9)]
    found = echo.translate(texts)
    assert texts_of(found) == texts
    assert [one.error for one in found] == [None] * 9
    assert len(echo.searched[0]) == 9


@pytest.mark.parametrize("error", [RuntimeError("out of memory\nmore"), MemoryError("out of memory")])
def test_a_text_that_fails_by_itself_fails_alone_and_says_why(echo: Echo, error: Exception) -> None:
    echo.refuse = lambda texts: error if "bad" in texts else None  # type: ignore[method-assign]
    found = echo.translate(["a", "bad", "b"])
    assert texts_of(found) == ["a", "", "b"]
    assert [one.error for one in found] == [None, f"{type(error).__name__}: out of memory", None]


def test_a_mistake_of_ours_is_not_hidden(echo: Echo) -> None:
    echo.refuse = lambda texts: TypeError("a bug")  # type: ignore[method-assign]
    with pytest.raises(TypeError, match="a bug"):
        echo.translate("a")


# ---- scores, attention -----------------------------------------------------------------------------------------------


def test_scores_come_in_order_whatever_the_window(translator: Translator) -> None:
    pairs = [("a 1", "g"), ("", ""), ("b 2 c 3", "h i j k l"), (" ", "\t"), ("e", ""), ("", "f")]
    whole = [one.log_probability for one in translator.score(pairs)]
    assert whole[1] == whole[3] == 0.0
    assert all(score < 0 for score in (whole[0], whole[2], whole[4], whole[5]))
    for window in (1, 2, 5):
        found = [one.log_probability for one in translator.score(pairs, window)]
        assert found == pytest.approx(whole, abs=1e-4)


def test_attention_is_that_of_the_translation_or_of_a_given_target(translator: Translator) -> None:
    maps = translator.look("a 1 b")
    best = translator.translate("a 1 b")
    pieces = translator.vocabulary.pieces
    assert maps.source_tokens == tuple(pieces(translator.vocabulary.encode("a 1 b")))
    assert maps.predicted_tokens == tuple(pieces(translator.vocabulary.encode(best.text.strip())))
    assert maps.encoder.shape == (2, 4, len(maps.source_tokens), len(maps.source_tokens))
    given = translator.look("a 1 b", "g h")
    assert given.predicted_tokens[-1] == "</s>"
    assert given.cross.shape[2:] == (len(given.predicted_tokens), len(given.source_tokens))


def test_words_that_belong_together(translator: Translator) -> None:
    pairs = translator.align("a 1 b", "g h")
    assert {source for source, _ in pairs} <= {"a", "1", "b"}
    assert {target for _, target in pairs} <= {"g", "h"}
    assert translator.align("a", "") == []


# ---- windows and batches ---------------------------------------------------------------------------------------------


@given(lengths=st.lists(st.integers(0, 9), max_size=30), most=st.integers(1, 8))
def test_windows_keep_every_text_in_order(lengths: list[int], most: int) -> None:
    texts = ["x" * length for length in lengths]
    windows = list(cut_windows(texts, most))
    assert [text for window in windows for text in window] == texts
    assert all(1 <= len(window) <= most for window in windows)
    assert all(len(window) == most for window in windows[:-1])


def test_a_window_ends_when_it_has_enough_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.translator._WINDOW_CHARACTERS", 4)
    assert list(cut_windows(["aaa", "b", "ccccc", "", "d"], 100)) == [["aaa", "b"], ["ccccc"], ["", "d"]]


@given(lengths=st.lists(st.integers(1, 20), max_size=30), budget=st.integers(0, 60))
def test_batches_hold_every_index_once_within_the_budget(lengths: list[int], budget: int) -> None:
    batches = list(_batches(lengths, budget))
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[index] for index in batch) <= budget
