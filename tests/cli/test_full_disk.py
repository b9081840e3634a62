"""What `regard translate` writes when the disk is full: whole lines, counted, and a clear end."""

import re
from pathlib import Path

import pytest
from disks import PAGE, mounted

from .running import Regard


def test_a_translation_that_does_not_fit_ends_after_a_whole_line(
    regard: Regard, odd_model: Path, tmp_path: Path
) -> None:
    source = tmp_path / "text"
    source.write_text("".join(f"a{number} b c d e f\n" for number in range(400)))
    whole = regard("translate", odd_model, source, "--threads", "1", "--beam", "1").out
    assert len(whole.encode()) > 3 * PAGE
    with mounted(tmp_path / "disk", 64 * PAGE) as disk:
        disk.fill(leave=2 * PAGE)
        out = disk.path / "out"
        ended = regard("translate", odd_model, source, "-o", out, "--threads", "1", "--beam", "1")
        assert ended.code == 1
        told = re.search(
            r"^regard: (\S+): can't be written: No space left on device \(0 bytes free on this disk\); what is there "
            r"are the first (\d+) lines$",
            ended.err,
            re.MULTILINE,
        )
        assert told, ended.err
        assert told[1] == str(out)
        assert out.read_text() == "".join(whole.splitlines(keepends=True)[: int(told[2])])
        assert int(told[2]) > 50


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_an_output_that_takes_nothing_is_named(regard: Regard, odd_model: Path) -> None:
    ended = regard("translate", odd_model, "-o", "/dev/full", "--threads", "1", stdin="a b\n")
    assert ended.code == 1
    assert "regard: /dev/full: can't be written: No space left on device" in ended.err
