import hashlib
import io
import subprocess
import sys
from pathlib import Path

import pytest
import sentencepiece
from hypothesis import example, given
from hypothesis import strategies as st

from regard.errors import FileFormatError, UserError
from regard.text.vocabulary import Vocabulary
from regard.tokens import END, PAD, START, UNKNOWN

SENTENCES = [
    f"The {adjective} {noun} sees {number} houses, isn't it? — Das {noun} sieht {number} Häuser."
    for adjective in ("old", "small", "green", "quick")
    for noun in ("dog", "cat", "child", "Haus")
    for number in range(20)
]
VOCABULARY = Vocabulary.train(SENTENCES, size=400)

awkward_parts = ["▁", " ", "\0", "\t", "\n", "The ", "<0x0A>", "</s>", "😀", "\ud800"]
any_text = st.text() | st.lists(st.sampled_from(awkward_parts)).map("".join)


def without_surrogates(text: str) -> str:
    return "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in text)


# ---- there and back --------------------------------------------------------------------------------------------------


@given(any_text)
@example("")
@example(" ")
@example("  two  spaces  each  ")
@example("\ttab\nnewline\r\n\x0b\x0c\x1c\x85\u2028")
@example("a▁b ▁ ▁▁ \0▁\0")
@example("<s> </s> <unk> <pad> <0x0A> <0x41>")
@example("😀👨‍👩‍👧 日本語 ابجد \u2585 \u2047 \ufeff \uffff \U0010ffff")
@example("half \ud83d a pair")
def test_any_text_survives_encoding_and_decoding(text: str) -> None:
    ids = VOCABULARY.encode(text)
    assert VOCABULARY.decode(ids) == without_surrogates(text)
    assert ids[-1] == END
    assert all(END < token < len(VOCABULARY) for token in ids[:-1])


@given(st.lists(any_text, max_size=5))
def test_a_batch_gives_what_each_text_gives_alone(texts: list[str]) -> None:
    assert VOCABULARY.encode_batch(texts) == [VOCABULARY.encode(text) for text in texts]


def test_special_ids_are_ignored_by_decoding() -> None:
    ids = VOCABULARY.encode("The old dog")
    assert VOCABULARY.decode([PAD, START, ids[0], UNKNOWN, *ids[1:], END, PAD]) == "The old dog"
    assert VOCABULARY.decode([]) == ""


def test_bytes_that_are_no_character_are_decoded_to_the_replacement_character() -> None:
    first, second, *_ = VOCABULARY.encode("日")[1:]
    assert "\ufffd" in VOCABULARY.decode([first, second])


def test_a_normalization_changes_the_text_as_it_says() -> None:
    folded = Vocabulary.train(SENTENCES, size=400, normalization="nmt_nfkc_cf")
    assert folded.decode(folded.encode("The ﬁne\u00a0Dog ▁")) == "the fine dog ▁"


def test_a_very_long_text_is_encoded_whole() -> None:
    text = "The old dog sees 12 houses" * 4000
    assert VOCABULARY.decode(VOCABULARY.encode(text)) == text


# ---- pieces and words ------------------------------------------------------------------------------------------------


def test_pieces_are_readable() -> None:
    assert VOCABULARY.pieces([*VOCABULARY.encode("The\n"), START]) == ["▁The", "<0x0A>", "</s>", "<s>"]


@given(any_text)
@example("a \u00a0b  c\td ")
@example("日本 語")
def test_word_numbers_count_the_words_between_white_space(text: str) -> None:
    ids = VOCABULARY.encode(text)
    numbers = VOCABULARY.word_numbers(ids)
    words = VOCABULARY.decode(ids).split()
    assert len(numbers) == len(ids)
    assert numbers[-1] is None
    known = [number for number in numbers if number is not None]
    assert known == sorted(known)
    assert set(known) <= set(range(len(words)))
    if not set(text) & set("\u00a0\u3000"):  # a space that is not ASCII may be inside a subword
        assert set(known) == set(range(len(words)))


def test_subwords_of_a_word_share_its_number() -> None:
    ids = VOCABULARY.encode("The 日x  dog ")
    assert VOCABULARY.pieces(ids)[:5] == ["▁The", "▁", "<0xE6>", "<0x97>", "<0xA5>"]
    assert VOCABULARY.word_numbers(ids)[:5] == [0, 1, 1, 1, 1]
    assert list(dict.fromkeys(VOCABULARY.word_numbers(ids))) == [0, 1, 2, None]


# ---- training --------------------------------------------------------------------------------------------------------


def test_training_is_deterministic_and_silent(capfd: pytest.CaptureFixture[str]) -> None:
    again = Vocabulary.train(iter(SENTENCES), size=400)
    assert again.fingerprint == VOCABULARY.fingerprint
    assert capfd.readouterr() == ("", "")


def test_fewer_subwords_than_asked_for_are_fine() -> None:
    assert 260 < len(Vocabulary.train(["only a few words"], size=37_000)) < 400


def test_special_tokens_and_bytes_come_first() -> None:
    assert VOCABULARY.pieces(range(5)) == ["<pad>", "<unk>", "<s>", "</s>", "<0x00>"]


def test_too_small_a_size_says_how_large_it_must_be() -> None:
    with pytest.raises(UserError, match=r"data\.vocabulary_size = 270 is too small: .* alone are \d{3};"):
        Vocabulary.train(SENTENCES, size=270)


@pytest.mark.parametrize("sentences", [[], [""], ["", ""]])
def test_no_text_is_an_error(sentences: list[str]) -> None:
    with pytest.raises(UserError, match="no text"):
        Vocabulary.train(sentences, size=400)


def test_no_training_text_makes_sentencepiece_fall_over() -> None:
    awkward = ["x" * 200_000, "▅ block", "tab\tbed", "nul\0", "half \ud800", "▁ rare", "two\nlines", "<s> </s> <0x0A>"]
    vocabulary = Vocabulary.train(awkward, size=400, character_coverage=1.0)
    learned = set("".join(vocabulary.pieces(range(260, len(vocabulary)))))
    assert set("blocktabedrare") <= learned  # the sentences with awkward characters were not skipped
    for text in map(without_surrogates, awkward):
        assert vocabulary.decode(vocabulary.encode(text)) == text


# ---- files -----------------------------------------------------------------------------------------------------------


def test_a_saved_vocabulary_is_loaded_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "vocabulary.spm"
    VOCABULARY.save(path)
    loaded = Vocabulary.load(path)
    assert loaded.fingerprint == VOCABULARY.fingerprint == hashlib.sha256(path.read_bytes()).hexdigest()
    assert loaded.encode("The cat") == VOCABULARY.encode("The cat")
    assert len(loaded) == len(VOCABULARY)


@pytest.mark.parametrize("content", [b"", b"some text", bytes(range(256)) * 9])
def test_a_file_that_is_no_vocabulary_is_refused(
    tmp_path: Path, content: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "vocabulary.spm"
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=r"vocabulary\.spm: not a SentencePiece model"):
        Vocabulary.load(path)
    assert capfd.readouterr().err == ""


def test_a_cut_vocabulary_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "vocabulary.spm"
    VOCABULARY.save(path)
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(FileFormatError):
        Vocabulary.load(path)


def test_a_missing_vocabulary_says_so(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="No such file"):
        Vocabulary.load(tmp_path / "missing.spm")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({}, "--pad_id=-1 --unk_id=0 --bos_id=1 --eos_id=2; train it with --pad_id=0 --unk_id=1 --bos_id=2 --eos_id=3"),
        ({"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3}, "--byte_fallback=true"),
    ],
)
def test_a_foreign_model_that_does_not_fit_says_how_to_train_one(options: dict[str, int], problem: str) -> None:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES), model_writer=model, vocab_size=80, minloglevel=2, **options
    )
    with pytest.raises(FileFormatError, match=problem):
        Vocabulary(model.getvalue(), "foreign.model")


def test_importing_it_warns_of_nothing() -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", "import regard.text.vocabulary"], check=True)
