"""Rubbish in, through the real command and real pipes: N lines in, N lines out, bounded memory; mistakes are told."""

import gzip
import os
import subprocess
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path
from threading import Thread
from typing import IO

import pytest

from .running import REGARD, Regard, apart

STORED = Path(__file__).parent.parent / "stored" / "model-format-1"
QUIET = ("--progress", "quiet", "--device", "cpu", "--threads", "1", "--beam", "1")
MEGABYTE = 1 << 20


def feed(stream: IO[bytes], blocks: Iterable[bytes]) -> None:
    with stream:
        stream.writelines(blocks)


def translated(model: Path, blocks: Iterable[bytes]) -> tuple[list[bytes], int]:
    """Translate a stream through pipes; return the lines that come out and the largest memory in bytes."""
    process = subprocess.Popen(
        [REGARD, "translate", str(model), *QUIET],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    feeder = Thread(target=feed, args=(process.stdin, blocks))
    feeder.start()
    out = process.stdout.read()
    feeder.join()
    process.stdout.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    assert not out or out.endswith(b"\n")
    return out.split(b"\n")[:-1], usage.ru_maxrss * 1024


@pytest.fixture(scope="module")
def usual_memory() -> int:
    """What translating one sentence takes."""
    return translated(STORED, [b"a b c\n"])[1]


# ---- text ------------------------------------------------------------------------------------------------------------


def every_character() -> Iterator[str]:
    """Yield a character of every category but the surrogates', from several places, and some that are special."""
    seen: dict[str, int] = {}
    for code in range(sys.maxunicode + 1):
        category = unicodedata.category(chr(code))
        if category != "Cs" and seen.setdefault(category, 0) < 3:
            seen[category] += 1
            yield chr(code)
    assert len(seen) == 29
    yield from "\u2028\u2029\u0085\ufeff\u202e\u200f\u2066\ufffe\uffff\U0010ffff▁"


def test_text_of_every_category_keeps_its_lines() -> None:
    lines = [f"a {character}" for character in every_character() if character != "\n"]
    lines += [
        "".join(map(chr, range(0x80, 0x100))),
        "שלום \u202eעולם",
        "👩‍👩‍👧‍👦 🏳️‍🌈",
        "e" + "\u0301" * 500,
        "\0",
        "\x1b[31m",
    ]
    found, _ = translated(STORED, [f"{line}\n".encode() for line in lines])
    assert len(found) == len(lines)


def test_a_line_of_a_million_characters_is_one_line_and_bounded(usual_memory: int) -> None:
    long = b"a b c. " * 50_000 + b"x" * 350_000 + b" y" * 150_000
    assert len(long) == 1_000_000
    found, memory = translated(STORED, [b"a\n", long + b"\n", b"a\n"])
    assert len(found) == 3
    assert found[0] == found[2]
    assert memory < usual_memory + 500 * MEGABYTE


def test_a_hundred_thousand_empty_lines_are_as_many_and_bounded(usual_memory: int) -> None:
    found, memory = translated(STORED, [b"\n" * 1000] * 100)
    assert found == [b""] * 100_000
    assert memory < usual_memory + 50 * MEGABYTE


def test_a_gzip_bomb_on_a_pipe_is_refused_in_bounded_memory(tmp_path: Path, usual_memory: int) -> None:
    bomb = tmp_path / "bomb.gz"
    with gzip.open(bomb, "wb", compresslevel=1) as file:
        for _ in range(64):
            file.write(bytes(4 * MEGABYTE))  # one line of 256 MB
    assert bomb.stat().st_size < 3 * MEGABYTE
    process = subprocess.Popen([REGARD, "translate", str(STORED), str(bomb), *QUIET], stderr=subprocess.PIPE)
    assert process.stderr is not None
    told = process.stderr.read().decode()
    process.stderr.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 2
    assert told == f"regard: {bomb}, line 1: longer than 16,777,216 bytes; is this a text file?\n"
    assert usage.ru_maxrss * 1024 < usual_memory + 100 * MEGABYTE


# ---- names and arguments ---------------------------------------------------------------------------------------------


def test_a_sentence_that_is_not_utf8_is_looked_into(tmp_path: Path) -> None:
    ended = apart("inspect", str(STORED), b"a \xff b", "--out", str(tmp_path / "out"), "--format", "svg")
    assert ended.code == 0, ended.err
    assert ended.out.startswith("a \ufffd b\n") or ended.out.startswith("a ? b\n")


def test_files_whose_names_are_not_utf8_are_read_and_written(tmp_path: Path) -> None:
    given, out = (os.fsencode(tmp_path) + name for name in (b"/caf\xe9", b"/out\xff"))
    Path(os.fsdecode(given)).write_text("a b\n\n")
    assert apart("translate", str(STORED), given, "-o", out, *QUIET).code == 0
    assert len(Path(os.fsdecode(out)).read_text().splitlines()) == 2


def told(regard: Regard, *arguments: object, stdin: bytes = b"") -> str:
    """Run a command that is the user's mistake, and return what it says; the runner makes sure of no traceback."""
    ended = regard(*arguments, stdin=stdin)
    assert ended.code == 2, ended.err
    return ended.err


def test_a_run_whose_files_can_not_be_named_is_refused_before_any_work(regard: Regard, tmp_path: Path) -> None:
    odd, fine = tmp_path / "caf\udce9", tmp_path / "fine"
    for path in (odd, fine):
        path.write_text("a\n")
    assert "rename the file" in told(regard, "train", "--train", odd, fine, "--out", tmp_path / "run")
    assert "its name is not UTF-8" in told(regard, "train", "--train", fine, fine, "--out", tmp_path / "run\udcff")


@pytest.mark.parametrize("option", ["--extra-length", "--threads"])
def test_a_number_beyond_all_reason_is_refused(regard: Regard, option: str) -> None:
    assert "must be at most" in told(regard, "translate", STORED, option, "9" * 30, stdin=b"a\n")


def test_a_device_and_a_pipe_are_no_recipe(regard: Regard, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in ("/dev/zero", tmp_path / "pipe"):
        assert "is not a file, but a pipe or a device" in told(regard, "train", path, "--out", tmp_path / "run")


def test_an_endless_device_is_no_text(regard: Regard) -> None:
    assert "is this a text file?" in told(regard, "translate", STORED, "/dev/zero")
