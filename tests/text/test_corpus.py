import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import CorpusError
from regard.settings import Corpus
from regard.text import corpus
from regard.text.corpus import Pair, guess_languages, read_lines, read_pair_chunks, read_pairs


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def lines_of(path: Path, content: bytes) -> list[str]:
    return list(read_lines(write(path, content)))


# ---- lines -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"\n\n", ["", ""]),
        (b"one", ["one"]),
        (b"one\n", ["one"]),
        (b"one\n\ntwo", ["one", "", "two"]),
        (b"one\r\ntwo\r\n", ["one", "two"]),
        (b"one\r\r\ntwo\r", ["one\r", "two\r"]),
        (b"a\rb\x0bc\x0cd\xe2\x80\xa8e\xc2\x85f\n", ["a\rb\x0bc\x0cd\u2028e\x85f"]),
        (b"\xef\xbb\xbfone\n\xef\xbb\xbftwo", ["one", "\ufefftwo"]),
        (b"\xef\xbb\xbf", []),
    ],
)
def test_lines_end_at_newlines_only(tmp_path: Path, content: bytes, lines: list[str]) -> None:
    assert lines_of(tmp_path / "text", content) == lines


@given(st.lists(st.text(st.characters(exclude_characters="\n\0", exclude_categories=["Cs"]))), st.integers(1, 9))
def test_lines_come_back_whatever_the_size_of_a_block(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], size: int
) -> None:
    path = tmp_path_factory.mktemp("blocks") / "text"
    path.write_bytes("".join(line + "\r\n" for line in lines).encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus, "_BLOCK_BYTES", size + 2)  # a byte-order mark is three bytes long
        expected = [line.removeprefix("\ufeff") if number == 0 else line for number, line in enumerate(lines)]
        assert list(read_lines(path)) == expected


def test_gzip_is_known_by_its_content(tmp_path: Path) -> None:
    packed = gzip.compress(b"one\ntwo\n", mtime=0)
    assert lines_of(tmp_path / "text.gz", packed) == ["one", "two"]
    assert lines_of(tmp_path / "text.txt", packed) == ["one", "two"]
    assert lines_of(tmp_path / "twice", packed + packed) == ["one", "two"] * 2


def test_broken_utf8_is_named_by_its_line(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"text, line 3: not UTF-8 \(byte 0xff\)"):
        lines_of(tmp_path / "text", b"one\ntwo\nthr\xffee\nfour\n")


def test_a_nul_is_named_by_its_line(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="text, line 2: contains a NUL"):
        lines_of(tmp_path / "text", b"one\ntw\0o\n")


def test_a_problem_past_the_first_block_is_named_by_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "_BLOCK_BYTES", 8)
    with pytest.raises(CorpusError, match="line 101"):
        lines_of(tmp_path / "text", b"line\n" * 100 + b"\xff\n")


def test_a_line_without_end_is_refused_before_it_fills_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus, "MAX_LINE_BYTES", 100)
    monkeypatch.setattr(corpus, "_BLOCK_BYTES", 8)
    with pytest.raises(CorpusError, match="line 2: longer than 100 bytes"):
        lines_of(tmp_path / "text", b"short\n" + b"x" * 200)


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="No such file"):
        list(read_lines(tmp_path / "missing"))
    with pytest.raises(CorpusError, match="Is a directory"):
        list(read_lines(tmp_path))


@pytest.mark.parametrize(
    "content", [gzip.compress(b"one\n" * 999, mtime=0)[:-9], b"plain text", b"\x1f\x8b\x08 damaged"]
)
def test_a_damaged_gzip_file_is_an_error(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(CorpusError, match="damaged or incomplete gzip"):
        lines_of(tmp_path / "text.gz", content)


# ---- pairs -----------------------------------------------------------------------------------------------------------


def pairs_of(folder: Path, source: bytes, target: bytes) -> list[Pair]:
    files = {"source": write(folder / "a.en", source), "target": write(folder / "a.de", target)}
    return list(read_pairs(Corpus(**files)))


def test_two_files_are_read_in_step(tmp_path: Path) -> None:
    assert pairs_of(tmp_path, b"one\n\nthree", b"eins\nzwei\ndrei\n") == [
        Pair("one", "eins", 1),
        Pair("", "zwei", 2),
        Pair("three", "drei", 3),
    ]


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (b"1\n2\n3\n", b"1\n", r"a\.de: ends after 1 line, but .*a\.en has 3"),
        (b"1\n2\n", b"1\n2\n3\n4", r"a\.en: ends after 2 lines, but .*a\.de has 4"),
        (b"", b"\n", r"a\.en: ends after 0 lines, but .*a\.de has 1"),
    ],
)
def test_unequal_line_counts_name_both_files_and_counts(
    tmp_path: Path, source: bytes, target: bytes, message: str
) -> None:
    with pytest.raises(CorpusError, match=message):
        pairs_of(tmp_path, source, target)


def test_a_table_gives_its_first_two_columns(tmp_path: Path) -> None:
    path = write(tmp_path / "pairs.tsv", b"one\teins\nGo.\tGeh.\tCC-BY 2.0\tmore\n\t\n")
    assert list(read_pairs(Corpus(pairs=path))) == [Pair("one", "eins", 1), Pair("Go.", "Geh.", 2), Pair("", "", 3)]


def test_a_table_line_without_a_tab_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "pairs.tsv", b"one\teins\ntwo zwei\n")
    with pytest.raises(CorpusError, match=r"pairs\.tsv, line 2: no tab"):
        list(read_pairs(Corpus(pairs=path)))


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 100])
def test_chunks_hold_all_pairs_and_the_number_of_their_first_line(tmp_path: Path, size: int) -> None:
    expected = [Pair(str(number), f"t{number}", number) for number in range(1, 5)]
    source = write(tmp_path / "a.en", b"".join(f"{pair.source}\n".encode() for pair in expected))
    target = write(tmp_path / "a.de", b"".join(f"{pair.target}\n".encode() for pair in expected))
    table = write(tmp_path / "a.tsv", b"".join(f"{pair.source}\t{pair.target}\n".encode() for pair in expected))
    for form in (Corpus(source=source, target=target), Corpus(pairs=table)):
        chunks = list(read_pair_chunks(form, size))
        assert all(len(chunk.sources) == len(chunk.targets) <= size for chunk in chunks)
        found = [pair for chunk in chunks for pair in zip(chunk.sources, chunk.targets, strict=True)]
        assert found == [(pair.source, pair.target) for pair in expected]
        assert [chunk.first_line for chunk in chunks] == list(range(1, 5, size))


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_what_is_missing_is_found_at_any_place_of_a_chunk(tmp_path: Path, size: int) -> None:
    short, long = write(tmp_path / "a.en", b"1\n2\n"), write(tmp_path / "a.de", b"1\n2\n3\n4\n5\n")
    with pytest.raises(CorpusError, match=r"a\.en: ends after 2 lines, but .*a\.de has 5"):
        list(read_pair_chunks(Corpus(source=short, target=long), size))
    with pytest.raises(CorpusError, match=r"a\.en: ends after 2 lines, but .*a\.de has 5"):
        list(read_pair_chunks(Corpus(source=long, target=short), size))
    table = write(tmp_path / "a.tsv", b"1\t1\n2\t2\n3 3\n")
    with pytest.raises(CorpusError, match=r"a\.tsv, line 3: no tab"):
        list(read_pair_chunks(Corpus(pairs=table), size))


# ---- languages -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "target", "languages"),
    [
        ("a.en", "a.de", ("en", "de")),
        ("data/train.en.gz", "other/train.de.gz", ("en", "de")),
        ("train.lc.tok.en.gz", "train.lc.tok.de.gz", ("en", "de")),
        ("x.en.txt", "x.de.txt", ("en", "de")),
        ("en.txt", "de.txt", ("en", "de")),
        ("a.pt-BR", "a.zh_Hans", ("pt-BR", "zh_Hans")),
        ("a.en", "b.de", None),
        ("a.en", "a.en", None),
        ("a.en", "a.de.gz", None),
        ("a.src", "a.tgt", None),
        ("source.txt", "target.txt", None),
        ("a.1", "a.2", None),
    ],
)
def test_languages_are_read_off_the_part_that_differs(
    source: str, target: str, languages: tuple[str, str] | None
) -> None:
    assert guess_languages(Path(source), Path(target)) == languages
