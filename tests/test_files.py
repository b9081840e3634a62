"""Files and folders that a reader sees old or new, never half written."""

import errno
import json
import os
from pathlib import Path

import pytest

from regard import files
from regard.errors import DiskError, FileFormatError, SettingsError, UserError


def contents(folder):
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_a_folder_appears_when_all_of_it_is_written(tmp_path):
    target = tmp_path / "deep" / "folder"
    with files.new_folder(target) as temporary:
        (temporary / "one").write_text("1")
        assert not target.exists()
    assert contents(target) == {"one": "1"}
    assert [path.name for path in target.parent.iterdir()] == ["folder"]


@pytest.mark.parametrize("can_exchange", [True, False])
def test_a_folder_replaces_the_one_before_it_whole(tmp_path, monkeypatch, can_exchange):
    if not can_exchange:
        monkeypatch.setattr(files, "_exchange", lambda one, other: False)
    target = tmp_path / "folder"
    for text in ("old", "new"):
        with files.new_folder(target) as temporary:
            (temporary / text).write_text(text)
    assert contents(target) == {"new": "new"}
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize("fails_at", ["block", "sync"])
def test_a_failure_leaves_the_old_folder_and_no_traces(tmp_path, monkeypatch, fails_at):
    target = tmp_path / "folder"
    with files.new_folder(target) as temporary:
        (temporary / "one").write_text("old")

    def fail(path):
        raise OSError("the disk is full")

    if fails_at == "sync":
        monkeypatch.setattr(files, "sync", fail)
    with pytest.raises(OSError, match="full"), files.new_folder(target) as temporary:  # noqa: PT012
        (temporary / "one").write_text("new")
        if fails_at == "block":
            raise OSError("the disk is full")
    assert contents(target) == {"one": "old"}
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_kill_between_two_renames_loses_nothing(tmp_path):
    (tmp_path / ".folder.old").mkdir()
    (tmp_path / ".folder.old" / "one").write_text("old")
    with pytest.raises(ZeroDivisionError), files.new_folder(tmp_path / "folder"):
        raise ZeroDivisionError
    assert contents(tmp_path / "folder") == {"one": "old"}


def test_leftovers_of_a_killed_process_are_removed_and_nothing_else(tmp_path):
    for name in (".a.writing", ".b.removing", "c", ".d"):
        (tmp_path / name).mkdir()
    files.remove_leftovers(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".d", "c"]


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "file"
    files.write_file(path, "old")

    def fail(path):
        raise OSError("the disk is full")

    monkeypatch.setattr(files, "sync", fail)
    with pytest.raises(UserError, match=r"file: can't be written: the disk is full"):
        files.write_file(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO])
def test_a_disk_that_takes_no_more_is_nobodys_mistake(tmp_path, number):
    told = files.disk_error(tmp_path / "new" / "file", OSError(number, "whatever"), needed=1_234_567)
    assert isinstance(told, DiskError)
    assert str(told).startswith(f"{tmp_path / 'new' / 'file'}: can't be written: {os.strerror(number)} (needs 1.2 MB")
    assert ("free on this disk" in str(told)) == (number == errno.ENOSPC)


def test_a_missing_right_is_the_users_to_mend_and_safetensors_words_are_understood(tmp_path):
    assert isinstance(files.disk_error(tmp_path, OSError(errno.EACCES, "")), UserError)
    told = files.disk_error(tmp_path, RuntimeError("I/O error: No space left on device (os error 28)"))
    assert isinstance(told, DiskError)
    assert "No space left on device (" in str(told)


def test_what_was_there_before_a_replacement_cut_short_comes_back(tmp_path):
    (tmp_path / ".lost.old").mkdir()
    (tmp_path / ".there.old").mkdir()
    (tmp_path / "there").mkdir()
    files.remove_leftovers(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lost", "there"]


def test_json_comes_back_and_a_checksum_tells_a_changed_byte(tmp_path):
    path = tmp_path / "facts.json"
    files.write_json(path, {"name": "Müller", "count": 3})
    assert files.read_json(path) == {"name": "Müller", "count": 3}
    before = files.checksum(path)
    path.write_bytes(path.read_bytes().replace(b"3", b"4"))
    assert files.checksum(path) != before


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"{", "not valid JSON"),
        (b"[1, 2]", "not a JSON object"),
        (b"\xff", "not UTF-8"),
        (b"[" * 100_000, "not valid JSON"),
        (json.dumps({"x": "y" * 1000}).encode(), "larger than 100 bytes"),
        (None, "can't be read"),
    ],
)
def test_what_is_no_json_object_is_said_with_its_file(tmp_path, content, told):
    path = tmp_path / "facts.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(FileFormatError, match=told) as raised:
        files.read_json(path, largest=100 if "larger" in told else 1 << 20)
    assert str(path) in str(raised.value)


def make_pipe(path):
    os.mkfifo(path)


@pytest.mark.parametrize("read", [files.read_json, files.read_toml, files.read_text, files.checksum])
@pytest.mark.parametrize(
    ("make", "told"),
    [
        (make_pipe, "is not a file, but a pipe or a device"),
        (lambda path: path.symlink_to("/dev/zero"), "is not a file, but a pipe or a device"),
        (Path.mkdir, "is a folder"),
        (lambda path: path.symlink_to(path), "symbolic links"),
    ],
    ids=["pipe", "device", "folder", "loop"],
)
def test_what_is_no_file_is_neither_waited_for_nor_read_for_ever(tmp_path, read, make, told):
    make(tmp_path / "thing")
    with pytest.raises((FileFormatError, OSError), match=told):
        read(tmp_path / "thing")


def test_a_file_that_is_larger_than_it_may_be_is_not_read_to_its_end(tmp_path):
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 40)  # takes no room on the disk
    for read in (files.read_json, files.read_toml):
        with pytest.raises(FileFormatError, match="larger than"):
            read(tmp_path / "huge")


@pytest.mark.parametrize(
    "text",
    [
        "a" + ".a" * 500_000 + " = 1",
        "[" + "a." * 500_000 + "a]",
        "x = {" + "a." * 500_000 + "a = 1}",
        "x = " + "9" * 5000,
    ],
    ids=["key", "table", "inline", "number"],
)
def test_toml_that_would_take_hours_is_refused_at_once(tmp_path, text):
    (tmp_path / "file").write_text(text)
    with pytest.raises(SettingsError, match="not valid TOML"):
        files.read_toml(tmp_path / "file")


def test_a_comment_may_have_any_number_of_dots(tmp_path):
    (tmp_path / "file").write_text(f"x = 1\n  # {'.' * 200}\ny = 2\n")
    assert files.read_toml(tmp_path / "file") == {"x": 1, "y": 2}
