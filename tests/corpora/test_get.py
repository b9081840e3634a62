"""Getting a corpus: from a server, from a folder, again, and when something is wrong."""

import fcntl
import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from origin import Origin
from test_unpack import make_tar

from regard.corpora.describe import Corpus, Download, Piece, Text
from regard.corpora.get import Got, get, summary
from regard.errors import CorpusError, FetchError, UserError
from regard.progress import QuietDisplay

TRAIN = {"en": b"one\ntwo\n", "de": b"eins\nzwei\n"}
TEST = {language: f'<doc>\n<seg id="1">{word}</seg>\n</doc>'.encode() for language, word in (("en", "a"), ("de", "b"))}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with the files as they are at their origin."""
    folder = tmp_path / "files"
    folder.mkdir()
    make_tar(
        folder / "train.tgz",
        {f"training/a.{language}": TRAIN[language] for language in TRAIN} | {"training/a.fr": b"un\n"},
    )
    for language, content in TEST.items():
        (folder / f"test.{language}.sgm").write_bytes(content)
        (folder / f"more.{language}").write_bytes(b"more\n")
    return folder


@pytest.fixture
def corpus(files: Path, origin: Origin) -> Corpus:
    """A corpus of a server that has those files; the training archive's checksum is known."""
    for path in files.iterdir():
        origin.files[f"/{path.name}"], origin.tags[f"/{path.name}"] = path.read_bytes(), '"1"'

    def download(name: str, **known: str) -> Download:
        return Download(name, f"{origin.address}/{name}", **known)  # type: ignore[arg-type]

    checksum = f"sha256:{hashlib.sha256((files / 'train.tgz').read_bytes()).hexdigest()}"
    names = [f"{part}.{language}{end}" for part, end in (("test", ".sgm"), ("more", "")) for language in TEST]
    texts = []
    for language in TEST:
        texts.append(Text(f"train.{language}", (Piece("train.tgz", f"training/a.{language}"),)))
        texts.append(Text(f"test.{language}", (Piece(f"test.{language}.sgm", form="segments"),)))
        texts.append(Text(f"more.{language}", (Piece(f"more.{language}"),), extra=True))
    return Corpus(
        name="toy",
        about="",
        languages=("en", "de"),
        pairs="2",
        origin="here",
        licence="none",
        downloads=(download("train.tgz", checksum=checksum), *map(download, names)),
        texts=tuple(texts),
    )


def fetch_all(corpus: Corpus, tmp_path: Path) -> Got:
    return get(corpus, tmp_path / "toy", QuietDisplay(), pauses=(0.0,))


def take_all(corpus: Corpus, tmp_path: Path, source: Path) -> Got:
    return get(corpus, tmp_path / "toy", QuietDisplay(), source=source)


def check_texts(folder: Path) -> None:
    for language in TEST:
        assert (folder / f"train.{language}").read_bytes() == TRAIN[language]
    assert (folder / "test.en").read_text() == "a\n"
    assert (folder / "test.de").read_text() == "b\n"


# ---- getting ---------------------------------------------------------------------------------------------------------


def test_a_corpus_is_fetched_unpacked_and_written(corpus: Corpus, tmp_path: Path, origin: Origin) -> None:
    got = fetch_all(corpus, tmp_path)
    check_texts(got.folder)
    assert set(got.written) == {text.name for text in corpus.texts}
    here = {path.name for path in got.folder.iterdir() if not path.name.startswith(".")}
    assert here == {*got.texts, "downloads", "origin.json"}
    assert sorted(path for path, _ in origin.asked) == sorted(f"/{one.file}" for one in corpus.downloads)


def test_what_is_there_and_whole_is_not_made_again(corpus: Corpus, tmp_path: Path, origin: Origin) -> None:
    first = fetch_all(corpus, tmp_path)
    before = {path: path.stat().st_mtime_ns for path in first.folder.glob("*.*")}
    origin.asked.clear()
    again = fetch_all(corpus, tmp_path)
    assert (again.written, again.texts) == ((), first.texts)
    assert before == {path: path.stat().st_mtime_ns for path in first.folder.glob("*.*")}
    assert origin.asked == []


@pytest.mark.parametrize("harm", ["changed", "gone"])
def test_a_text_that_was_harmed_is_written_again_from_what_was_fetched(
    corpus: Corpus, tmp_path: Path, origin: Origin, harm: str
) -> None:
    folder = fetch_all(corpus, tmp_path).folder
    if harm == "changed":
        (folder / "train.de").write_text("edited\n")
    else:
        (folder / "train.de").unlink()
    origin.asked.clear()
    assert fetch_all(corpus, tmp_path).written == ("train.de",)
    check_texts(folder)
    assert origin.asked == []


def test_downloads_may_be_removed_and_come_again_only_if_needed(corpus: Corpus, tmp_path: Path, origin: Origin) -> None:
    folder = fetch_all(corpus, tmp_path).folder
    for path in (folder / "downloads").iterdir():
        path.unlink()
    origin.asked.clear()
    assert fetch_all(corpus, tmp_path).written == ()
    (folder / "test.en").unlink()
    assert fetch_all(corpus, tmp_path).written == ("test.en",)
    assert [path for path, _ in origin.asked] == ["/test.en.sgm"]


def test_a_break_in_the_middle_of_a_corpus_is_gone_on_from(corpus: Corpus, tmp_path: Path, origin: Origin) -> None:
    origin.break_after = [20, 0]
    with pytest.raises(FetchError, match="the same command goes on"):
        fetch_all(corpus, tmp_path)
    assert not (tmp_path / "toy" / "train.en").exists()
    check_texts(fetch_all(corpus, tmp_path).folder)
    assert ("/train.tgz", "bytes=20-") in origin.asked


# ---- from a folder ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("below", ["", "toy"])
def test_a_folder_that_has_the_files_is_enough(
    corpus: Corpus, tmp_path: Path, files: Path, origin: Origin, below: str
) -> None:
    source = tmp_path / "given"
    source.mkdir()
    files.rename(source / below)
    got = take_all(corpus, tmp_path, source)
    check_texts(got.folder)
    assert origin.asked == []
    assert not (got.folder / "downloads").exists()


def test_an_archive_that_is_unpacked_already_serves_as_well(corpus: Corpus, tmp_path: Path, files: Path) -> None:
    (files / "train.tgz").unlink()
    (files / "training").mkdir()
    for language, content in TRAIN.items():
        (files / "training" / f"a.{language}").write_bytes(content)
    check_texts(take_all(corpus, tmp_path, files).folder)


def test_a_file_under_another_name_is_found(corpus: Corpus, tmp_path: Path, files: Path) -> None:
    (files / "test.en.sgm").rename(files / "newstest.sgm")
    downloads = [replace(one, also=("newstest.sgm",)) if "test.en" in one.file else one for one in corpus.downloads]
    check_texts(take_all(replace(corpus, downloads=tuple(downloads)), tmp_path, files).folder)


def test_what_the_folder_lacks_is_said_and_left_out_if_it_is_extra(corpus: Corpus, tmp_path: Path, files: Path) -> None:
    said = []

    class Listening(QuietDisplay):
        def say(self, text, facts=None):  # type: ignore[no-untyped-def]
            said.append(text)

    (files / "more.de").unlink()
    got = get(corpus, tmp_path / "toy", Listening(), source=files)
    assert "more.de" not in got.texts
    assert said == [f"not in {files}, and left out: more.de"]
    (files / "train.tgz").unlink()
    with pytest.raises(CorpusError, match=r"does not hold train\.tgz, also not below toy/"):
        get(corpus, tmp_path / "other", QuietDisplay(), source=files)


def test_a_folder_that_is_not_there_is_named(corpus: Corpus, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nowhere: no such folder"):
        take_all(corpus, tmp_path, tmp_path / "nowhere")


# ---- checksums -------------------------------------------------------------------------------------------------------


def test_a_download_with_a_wrong_checksum_is_refused_and_removed(
    corpus: Corpus, tmp_path: Path, origin: Origin, files: Path
) -> None:
    right = origin.files["/train.tgz"]
    origin.files["/train.tgz"] = make_tar(tmp_path / "evil.tgz", {"training/a.en": b"evil\n"}).read_bytes()
    with pytest.raises(
        FetchError, match=r"train\.tgz: not the file that it should be, so it is removed: its SHA256 is"
    ):
        fetch_all(corpus, tmp_path)
    assert not (tmp_path / "toy" / "train.en").exists()
    assert not list((tmp_path / "toy" / "downloads").glob("train*"))
    origin.files["/train.tgz"] = right
    check_texts(fetch_all(corpus, tmp_path).folder)


def test_a_file_of_the_users_with_a_wrong_checksum_is_refused_and_kept(
    corpus: Corpus, tmp_path: Path, files: Path
) -> None:
    make_tar(files / "train.tgz", {"training/a.en": b"evil\n"})
    with pytest.raises(CorpusError, match="not the file that it should be"):
        take_all(corpus, tmp_path, files)
    assert (files / "train.tgz").exists()


def test_md5_is_checked_where_that_is_what_is_published(corpus: Corpus, tmp_path: Path, files: Path) -> None:
    def with_md5(digest: str) -> Corpus:
        return replace(
            corpus, downloads=(replace(corpus.downloads[0], checksum=f"md5:{digest}"), *corpus.downloads[1:])
        )

    with pytest.raises(CorpusError, match="its MD5 is"):
        take_all(with_md5("0" * 32), tmp_path, files)
    check_texts(take_all(with_md5(hashlib.md5((files / "train.tgz").read_bytes()).hexdigest()), tmp_path, files).folder)


def test_a_checksum_that_nobody_publishes_is_recorded_first_and_checked_ever_after(
    corpus: Corpus, tmp_path: Path, origin: Origin
) -> None:
    folder = fetch_all(corpus, tmp_path).folder
    record = json.loads((folder / "origin.json").read_text())
    assert record["downloads"]["test.en.sgm"] == {
        "address": f"{origin.address}/test.en.sgm",
        "size": len(TEST["en"]),
        "sha256": hashlib.sha256(TEST["en"]).hexdigest(),
    }
    assert record["texts"]["train.en"]["lines"] == 2
    (folder / "downloads" / "test.en.sgm").unlink()
    (folder / "test.en").unlink()
    origin.files["/test.en.sgm"] = TEST["de"]
    with pytest.raises(FetchError, match="the first time; if the new one is right, delete"):
        fetch_all(corpus, tmp_path)


def test_sides_with_different_numbers_of_lines_are_refused(corpus: Corpus, tmp_path: Path, origin: Origin) -> None:
    origin.files["/more.de"] += b"and more\n"
    with pytest.raises(CorpusError, match=r"has 2 lines, but more\.en has 1; the origin is damaged"):
        fetch_all(corpus, tmp_path)


# ---- the world around ------------------------------------------------------------------------------------------------


def test_two_processes_do_not_get_a_corpus_at_the_same_time(corpus: Corpus, tmp_path: Path) -> None:
    (tmp_path / "toy").mkdir()
    with (tmp_path / "toy" / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(UserError, match="another process is getting a corpus here"):
            fetch_all(corpus, tmp_path)


def test_a_folder_that_cannot_be_made_is_named(corpus: Corpus, tmp_path: Path) -> None:
    (tmp_path / "toy").write_text("a file")
    with pytest.raises(UserError, match="toy: can't be made or written to"):
        fetch_all(corpus, tmp_path)


def test_names_are_written_briefly() -> None:
    assert summary(["train.en", "train.de", "test.lc.tok.en"]) == "train.{en,de}, test.lc.tok.en"
