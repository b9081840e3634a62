"""Sentences of files in each of the three forms."""

import gzip
from pathlib import Path

import pytest

from regard.corpora.describe import Piece, Text, all_but_every, every, share_of_sources
from regard.corpora.sentences import read_sentences, write_text
from regard.errors import CorpusError
from regard.progress import QuietDisplay


def read(path: Path, form: str, content: bytes) -> list[str]:
    path.write_bytes(content)
    return [sentence.decode() for sentence in read_sentences(path, form)]  # type: ignore[arg-type]


def test_a_line_ends_at_a_line_feed_and_nowhere_else(tmp_path: Path) -> None:
    content = "\ufeffone\r\n\n three\u2028still\x0bstill \x85\nlast".encode()
    assert read(tmp_path / "a", "lines", content) == ["one", "", " three\u2028still\x0bstill \x85", "last"]
    assert read(tmp_path / "a", "lines", gzip.compress(content))[0] == "one"
    assert read(tmp_path / "a", "lines", b"") == []


def test_talks_are_all_lines_but_those_of_tags(tmp_path: Path) -> None:
    content = (
        b"<url>http://x</url>\n<keywords>talks, art</keywords>\n<speaker>A B</speaker>\n<talkid>1</talkid>\n"
        b"<title>A B: A talk</title>\n<description>About <things>.</description>\nThank you. \n\n2 < 3 is true.\n"
        b"<reviewer></reviewer>\n"
    )
    assert read(tmp_path / "a", "talks", content) == [
        "A B: A talk",
        "About <things>.",
        "Thank you.",
        "",
        "2 < 3 is true.",
    ]


def test_segments_are_what_stands_in_seg_elements(tmp_path: Path) -> None:
    content = """<srcset setid="newstest"><doc><p>
<seg id="1">Two   words &amp; more</seg>
<seg id="2"> Broken
over lines </seg><hl><SEG id="3">&quot;Öl&quot;</SEG></hl> <seg id="4"></seg>
</p></doc></srcset>""".encode()
    assert read(tmp_path / "a", "segments", content) == ["Two words & more", "Broken over lines", '"Öl"', ""]


def test_a_line_without_end_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="longer than 16,777,216 bytes"):
        read(tmp_path / "a", "lines", b"x" * ((1 << 24) + 1))


def make(tmp_path: Path, text: Text, content: str | bytes) -> str:
    path = tmp_path / "source"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    found = write_text(text, dict.fromkeys(text.pieces, path), tmp_path, QuietDisplay())
    written = (tmp_path / text.name).read_text()
    assert found["lines"] == written.count("\n")
    return written


PIECE = Piece("source")


def test_every_so_many_th_line_is_held_out_and_the_rest_kept(tmp_path: Path) -> None:
    lines = "".join(f"{number}\n" for number in range(1, 8))
    assert make(tmp_path, Text("valid.en", (PIECE,), keep=every(3)), lines) == "3\n6\n"
    assert make(tmp_path, Text("train.en", (PIECE,), keep=all_but_every(3)), lines) == "1\n2\n4\n5\n7\n"


def test_pieces_are_joined_and_each_line_ends(tmp_path: Path) -> None:
    assert make(tmp_path, Text("a.en", (PIECE, PIECE)), "one\ntwo") == "one\ntwo\none\ntwo\n"


def test_shares_of_sources_keep_all_translations_of_a_sentence_together(tmp_path: Path) -> None:
    table = "".join(f"sentence {number % 500}\tSatz {number}\tby somebody\n" for number in range(1500))
    parts = {}
    for name, (first, end) in {"valid": (0, 100), "test": (100, 200), "train": (200, 1000)}.items():
        keep = share_of_sources(first, end)
        parts[name] = [make(tmp_path, Text(f"{name}.x", (PIECE,), keep, column), table) for column in (0, 1)]
    sources = {name: set(both[0].splitlines()) for name, both in parts.items()}
    assert sum(map(len, sources.values())) == len(set.union(*sources.values())) == 500
    assert sum(both[1].count("\n") for both in parts.values()) == 1500
    assert all(30 < len(sources[name]) < 75 for name in ("valid", "test"))
    assert all("somebody" not in text for both in parts.values() for text in both)


def test_a_line_with_too_few_columns_is_named(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="line 2: has 1 columns, expected at least 2"):
        make(tmp_path, Text("a.de", (PIECE,), column=1), "a\tb\nc\n")
    with pytest.raises(CorpusError, match=r"line 1: not UTF-8 \(byte 0xff\)"):
        make(tmp_path, Text("a.de", (PIECE,), column=1), b"a\xff\tb\n")


@pytest.mark.parametrize(
    ("known", "told"), [({"lines": 3}, "with lines 2, and"), ({"sha256": "0" * 64}, "with sha256")]
)
def test_a_text_that_is_not_the_catalogues_is_refused_and_not_written(
    tmp_path: Path, known: dict[str, object], told: str
) -> None:
    with pytest.raises(CorpusError, match=told):
        make(tmp_path, Text("a.en", (PIECE,), **known), "one\ntwo\n")  # type: ignore[arg-type]
    assert [path.name for path in tmp_path.iterdir()] == ["source"]
