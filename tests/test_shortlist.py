"""Shortlists: what is in one, and a file that nobody has to trust."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from regard.data.store import Store, StoreWriter
from regard.errors import FileFormatError, UserError
from regard.shortlist import FORMAT, Shortlist
from regard.text.vocabulary import Vocabulary
from regard.tokens import END

DIGITS, LETTERS = "0123456789", "abcdefghij"


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return Vocabulary.train([" ".join(DIGITS), " ".join(LETTERS)] * 3, 320)


@pytest.fixture(scope="module")
def store(vocabulary: Vocabulary, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Digits, and the letters that stand for them in the opposite order."""
    folder = tmp_path_factory.mktemp("shortlist") / "store"
    chance = np.random.default_rng(1)
    lines = [chance.integers(0, 10, chance.integers(1, 6)).tolist() for _ in range(200)]
    sources = vocabulary.encode_batch([" ".join(DIGITS[one] for one in line) for line in lines])
    targets = vocabulary.encode_batch([" ".join(LETTERS[one] for one in reversed(line)) for line in lines])
    with StoreWriter(folder, vocabulary.fingerprint, len(vocabulary)) as writer:
        writer.begin_corpus("only")
        writer.add(sources, targets, range(1, 201))
    return Store.open(folder)


@pytest.fixture(scope="module")
def shortlist(store: Store, vocabulary: Vocabulary) -> Shortlist:
    return Shortlist.build(store, vocabulary, per_word=1, frequent=0)


def ids(vocabulary: Vocabulary, text: str) -> set[int]:
    return set(vocabulary.encode(text))


# ---- what is in it ---------------------------------------------------------------------------------------------------


def test_a_sentence_may_become_its_words_translations_itself_and_bytes(
    shortlist: Shortlist, vocabulary: Vocabulary
) -> None:
    always = {END, *vocabulary.byte_ids}
    for number in range(10):
        found = set(shortlist.rows(vocabulary.encode(DIGITS[number])).tolist())
        expected = ids(vocabulary, DIGITS[number]) | ids(vocabulary, LETTERS[number])
        assert expected <= found
        assert len(found - always - expected) <= 1  # what the end token stands for


@given(numbers=st.lists(st.integers(END, 319), max_size=8))
def test_rows_are_sorted_and_distinct_and_no_token_is_listed_that_is_not_text(
    shortlist: Shortlist, vocabulary: Vocabulary, numbers: list[int]
) -> None:
    tokens = [min(number, len(vocabulary) - 1) for number in numbers]
    found = shortlist.rows(tokens)
    assert (np.diff(found) > 0).all()
    assert found[0] == END
    assert found[-1] < len(vocabulary)
    assert {*tokens, END, *vocabulary.byte_ids} <= set(found.tolist())


def test_frequent_tokens_are_in_every_list(store: Store, vocabulary: Vocabulary) -> None:
    every = Shortlist.build(store, vocabulary, per_word=1, frequent=1000)
    assert ids(vocabulary, " ".join(LETTERS)) <= set(every.rows([END]).tolist())


def test_a_batch_has_the_rows_of_all_and_says_whose_they_are(shortlist: Shortlist, vocabulary: Vocabulary) -> None:
    sentences = vocabulary.encode_batch(["1 2", "3", "4 5 6 7"])
    batch = shortlist.batch(sentences)
    assert batch.rows[: END + 1].tolist() == list(range(END + 1))
    assert (np.diff(batch.rows) > 0).all()
    for tokens, may in zip(sentences, batch.allowed, strict=True):
        assert batch.rows[may].tolist() == shortlist.rows(tokens).tolist()
    assert batch.allowed[:, END + 1 :].any(axis=0).all()


def test_mistakes_are_told(store: Store, vocabulary: Vocabulary) -> None:
    other = Vocabulary.train(["x y z"] * 3, 300)
    with pytest.raises(UserError, match="another vocabulary"):
        Shortlist.build(store, other)
    for wrong in ({"per_word": 0}, {"per_word": 1001}, {"frequent": -1}):
        with pytest.raises(UserError, match="must be"):
            Shortlist.build(store, vocabulary, **wrong)


# ---- its file --------------------------------------------------------------------------------------------------------


def test_what_is_saved_comes_back(shortlist: Shortlist, vocabulary: Vocabulary, tmp_path: Path) -> None:
    shortlist.save(tmp_path / "file")
    again = Shortlist.load(tmp_path / "file", vocabulary)
    for sentence in vocabulary.encode_batch(["1 2", "3", "x"]):
        assert again.rows(sentence).tolist() == shortlist.rows(sentence).tolist()
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_another_vocabularys_shortlist_is_refused(shortlist: Shortlist, tmp_path: Path) -> None:
    shortlist.save(tmp_path / "file")
    with pytest.raises(FileFormatError, match="another vocabulary"):
        Shortlist.load(tmp_path / "file", Vocabulary.train(["x y z"] * 3, 300))


def changed(name: str, place: int, value: int) -> Any:
    def change(tensors: dict[str, NDArray[Any]]) -> None:
        tensors[name][place] = value

    return change


DAMAGES = {
    "an id beyond the vocabulary": changed("targets", 2, 5000),
    "an id below it": changed("targets", 2, -5),
    "a token that is not text": changed("always", 0, 1),
    "tokens out of order": changed("always", 3, 4),
    "a list that ends before it begins": changed("starts", 5, 10_000),
    "a list of negative length": changed("starts", 5, -7),
    "a first list that begins later": changed("starts", 0, 1),
    "lists that end too early": changed("starts", -1, 3),
    "a part missing": lambda tensors: tensors.pop("always"),
    "a part too many": lambda tensors: tensors.update(more=np.zeros(1, np.int32)),
    "another type": lambda tensors: tensors.update(targets=tensors["targets"].astype(np.float32)),
    "another shape": lambda tensors: tensors.update(always=tensors["always"][None]),
    "nothing in it": lambda tensors: tensors.update(always=tensors["always"][:0]),
    "too few lists": lambda tensors: tensors.update(starts=tensors["starts"][1:]),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_file_is_refused(shortlist: Shortlist, vocabulary: Vocabulary, tmp_path: Path, damage: Any) -> None:
    path = tmp_path / "file"
    shortlist.save(path)
    tensors = load_file(path)
    damage(tensors)
    save_file(tensors, path, {"format": FORMAT, "vocabulary": vocabulary.fingerprint})
    with pytest.raises(FileFormatError, match="damaged"):
        Shortlist.load(path, vocabulary)


@pytest.mark.parametrize("contents", [b"", b"x", b"\xff" * 100, (2).to_bytes(8, "little") + b"[]", bytes(8)])
def test_what_is_no_such_file_is_refused(vocabulary: Vocabulary, tmp_path: Path, contents: bytes) -> None:
    (tmp_path / "file").write_bytes(contents)
    with pytest.raises(FileFormatError, match="not a readable safetensors file"):
        Shortlist.load(tmp_path / "file", vocabulary)


def test_another_format_is_refused(shortlist: Shortlist, vocabulary: Vocabulary, tmp_path: Path) -> None:
    path = tmp_path / "file"
    shortlist.save(path)
    save_file(load_file(path), path, {"format": "2", "vocabulary": vocabulary.fingerprint})
    with pytest.raises(FileFormatError, match="format '2'"):
        Shortlist.load(path, vocabulary)


def test_a_file_larger_than_any_shortlist_is_refused_before_it_is_read(vocabulary: Vocabulary, tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        file.truncate(1 << 34)
    with pytest.raises(FileFormatError, match="larger than"):
        Shortlist.load(tmp_path / "file", vocabulary)
