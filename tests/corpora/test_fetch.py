"""Fetching, from a real server that breaks off, changes and misbehaves."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from origin import Origin, serve

from regard.corpora.fetch import check_address, fetch
from regard.errors import FetchError, UserError
from regard.progress import QuietDisplay

BODY = bytes(range(256)) * 4000  # about a megabyte
AT_ONCE = (0.0, 0.0)


def get(origin: Origin, path: Path, name: str = "/file", size: int | None = None) -> bytes:
    fetch(origin.address + name, path, QuietDisplay(), size=size, pauses=AT_ONCE)
    return path.read_bytes()


@pytest.fixture
def tagged(origin: Origin) -> Origin:
    """The server with a file that has an ETag."""
    origin.files["/file"], origin.tags["/file"] = BODY, '"one"'
    return origin


# ---- the whole file --------------------------------------------------------------------------------------------------


def test_a_file_arrives_whole_and_nothing_else_is_left(tagged: Origin, tmp_path: Path) -> None:
    assert get(tagged, tmp_path / "file", size=len(BODY)) == BODY
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert tagged.asked == [("/file", None)]


def test_a_server_that_tells_no_length_is_read_to_its_end(tagged: Origin, tmp_path: Path) -> None:
    tagged.lengths = False
    assert get(tagged, tmp_path / "file") == BODY


def test_the_bar_counts_bytes_and_knows_the_total(tagged: Origin, tmp_path: Path) -> None:
    seen = []

    class Watching(QuietDisplay):
        def refresh(self, job):  # type: ignore[no-untyped-def]
            seen.append((job.done, job.total, job.unit))

    fetch(f"{tagged.address}/file", tmp_path / "file", Watching(), pauses=AT_ONCE)
    assert seen[-1] == (len(BODY), len(BODY), "bytes")
    assert [done for done, *_ in seen] == sorted(done for done, *_ in seen)


# ---- breaks ----------------------------------------------------------------------------------------------------------


def test_a_break_is_gone_on_from_where_it_was(tagged: Origin, tmp_path: Path) -> None:
    tagged.break_after = [300_000, 200_000, 0, 7]
    assert get(tagged, tmp_path / "file") == BODY
    ranges = [None, "bytes=300000-", "bytes=500000-", "bytes=500000-", "bytes=500007-"]
    assert [asked for _, asked in tagged.asked] == ranges


def test_it_gives_up_after_some_attempts_and_the_next_call_goes_on(tagged: Origin, tmp_path: Path) -> None:
    tagged.break_after = [1000, 0, 0]
    with pytest.raises(FetchError, match="1,000 bytes are kept, and the same command goes on"):
        get(tagged, tmp_path / "file")
    assert not (tmp_path / "file").exists()
    assert get(tagged, tmp_path / "file") == BODY
    assert tagged.asked[-1] == ("/file", "bytes=1000-")


def test_a_server_without_ranges_sends_it_again_from_the_start(tagged: Origin, tmp_path: Path) -> None:
    tagged.ranges = False
    tagged.break_after = [300_000]
    assert get(tagged, tmp_path / "file") == BODY


def test_a_file_that_changes_during_a_break_comes_whole_and_new(tagged: Origin, tmp_path: Path) -> None:
    tagged.break_after = [300_000, 0, 0]
    with pytest.raises(FetchError):
        get(tagged, tmp_path / "file")
    new = b"another file " * 50_000
    tagged.files["/file"], tagged.tags["/file"] = new, '"two"'
    assert get(tagged, tmp_path / "file") == new


@pytest.mark.parametrize("tag", ["", 'W/"weak"'])
def test_without_a_strong_mark_of_the_version_nothing_is_pieced_together(
    origin: Origin, tmp_path: Path, tag: str
) -> None:
    origin.files["/file"], origin.tags["/file"] = BODY, tag
    origin.break_after = [300_000, 0, 0]
    with pytest.raises(FetchError):
        get(origin, tmp_path / "file")
    origin.asked.clear()
    assert get(origin, tmp_path / "file") == BODY
    assert origin.asked == [("/file", None)]


def test_what_was_left_of_another_address_is_not_gone_on_with(tagged: Origin, tmp_path: Path) -> None:
    tagged.break_after = [300_000, 0, 0]
    with pytest.raises(FetchError):
        get(tagged, tmp_path / "file")
    tagged.files["/other"], tagged.tags["/other"] = b"other", '"one"'
    assert get(tagged, tmp_path / "file", "/other") == b"other"


def test_a_process_killed_when_all_had_arrived_needs_nothing_more(tagged: Origin, tmp_path: Path) -> None:
    tagged.break_after = [300_000, 0, 0]
    with pytest.raises(FetchError):
        get(tagged, tmp_path / "file")
    (tmp_path / ".file.part").write_bytes(BODY)
    assert get(tagged, tmp_path / "file") == BODY  # the server answers 416


def test_what_is_longer_than_the_file_is_thrown_away(tagged: Origin, tmp_path: Path) -> None:
    tagged.break_after = [300_000, 0, 0]
    with pytest.raises(FetchError):
        get(tagged, tmp_path / "file")
    (tmp_path / ".file.part").write_bytes(BODY + b"more")
    assert get(tagged, tmp_path / "file") == BODY


@pytest.mark.parametrize("about", [b"", b"\xff", b"[]", b"{}", b'{"address": 1}'])
def test_a_damaged_note_about_the_part_means_starting_anew(tagged: Origin, tmp_path: Path, about: bytes) -> None:
    (tmp_path / ".file.part").write_bytes(b"rubbish")
    (tmp_path / ".file.part.json").write_bytes(about)
    assert get(tagged, tmp_path / "file") == BODY


def test_a_killed_process_is_gone_on_from(tagged: Origin, tmp_path: Path) -> None:
    tagged.break_after = [300_000]
    code = (
        "import sys; from pathlib import Path; from regard.corpora.fetch import fetch\n"
        "from regard.progress import QuietDisplay\n"
        f"fetch({tagged.address + '/file'!r}, Path({str(tmp_path / 'file')!r}), QuietDisplay(), pauses=(60.0, 60.0))"
    )
    process = subprocess.Popen([sys.executable, "-c", code])
    part = tmp_path / ".file.part"
    while not (part.exists() and part.stat().st_size == 300_000):
        assert process.poll() is None
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert get(tagged, tmp_path / "file") == BODY
    assert tagged.asked == [("/file", None), ("/file", "bytes=300000-")]


# ---- refusals --------------------------------------------------------------------------------------------------------


def test_a_file_that_is_not_there_is_told_at_once(origin: Origin, tmp_path: Path) -> None:
    with pytest.raises(FetchError, match=r"404 Not Found.*--from"):
        get(origin, tmp_path / "file")
    assert len(origin.asked) == 1


def test_a_server_that_is_busy_is_asked_again(tagged: Origin, tmp_path: Path) -> None:
    tagged.statuses = [503]
    assert get(tagged, tmp_path / "file") == BODY
    tagged.statuses = [503] * 9
    with pytest.raises(FetchError, match="503 Service Unavailable"):
        get(tagged, tmp_path / "again")


def test_nobody_there_is_told(tmp_path: Path) -> None:
    with serve() as gone:
        pass
    with pytest.raises(FetchError, match=r"no connection \(Connection refused\)"):
        get(gone, tmp_path / "file")


def test_a_size_that_the_catalogue_does_not_know_is_refused(tagged: Origin, tmp_path: Path) -> None:
    with pytest.raises(FetchError, match=r"has 1,024,000 bytes, and the catalogue knows 5"):
        get(tagged, tmp_path / "file", size=5)


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ({"Content-Range": "bytes 0-9/10"}, "was asked for the bytes from"),
        ({"Content-Encoding": "br"}, "encoded as br"),
    ],
)
def test_an_answer_to_another_question_is_refused(
    tagged: Origin, tmp_path: Path, headers: dict[str, str], told: str
) -> None:
    tagged.break_after = [1000, 0, 0]
    with pytest.raises(FetchError):
        get(tagged, tmp_path / "file")
    tagged.extra_headers = headers
    with pytest.raises(FetchError, match=told):
        get(tagged, tmp_path / "file")
    tagged.extra_headers = {}
    assert get(tagged, tmp_path / "file") == BODY


def test_a_disk_without_room_is_said_before_anything_is_fetched(
    tagged: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=5))
    with pytest.raises(UserError, match="1,024,000 bytes are to be fetched and 5 are free"):
        get(tagged, tmp_path / "file")


# ---- HTTPS -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    [
        "http://example.org/a",
        "ftp://localhost/a",
        "file:///etc/passwd",
        "http://127.0.0.1.example.org/a",
        "http://localhost.example.org/",
        "http:///a",
        "nothing",
    ],
)
def test_what_is_neither_https_nor_here_is_refused(address: str) -> None:
    with pytest.raises(FetchError, match="not HTTPS"):
        check_address(address)


def test_a_redirection_is_followed_with_its_range(tagged: Origin, tmp_path: Path) -> None:
    tagged.redirects["/moved"] = "/file"
    tagged.break_after = [1000]
    assert get(tagged, tmp_path / "file", "/moved") == BODY
    assert tagged.asked[-1] == ("/file", "bytes=1000-")


@pytest.mark.parametrize("to", ["http://example.org/file", "ftp://example.org/file", "file:///etc/passwd"])
def test_a_redirection_to_what_is_not_safe_is_refused(origin: Origin, tmp_path: Path, to: str) -> None:
    origin.redirects["/file"] = to
    with pytest.raises(FetchError, match=r"not HTTPS|not allowed"):
        get(origin, tmp_path / "file")
    assert not (tmp_path / "file").exists()


def test_redirections_in_a_circle_end(origin: Origin, tmp_path: Path) -> None:
    origin.redirects["/file"] = "/file"
    with pytest.raises(FetchError, match="302"):
        get(origin, tmp_path / "file")


def test_https_is_fetched_if_its_certificate_is_trusted(
    certificate: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve(certificate) as origin:
        origin.files["/file"] = BODY
        with pytest.raises(FetchError, match="certificate is not trusted"):
            get(origin, tmp_path / "file")
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
        assert get(origin, tmp_path / "file") == BODY


def test_https_never_leads_on_to_http(
    certificate: tuple[Path, Path], origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    origin.files["/file"] = BODY
    with serve(certificate) as secure:
        secure.redirects["/file"] = f"{origin.address}/file"
        with pytest.raises(FetchError, match=r"leads on to http://127\.0\.0\.1:.*, which is not HTTPS; refused"):
            get(secure, tmp_path / "file")
    assert origin.asked == []
