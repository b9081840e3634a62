"""`regard shortlist`, and the verbs that use what it makes."""

import shutil
from pathlib import Path

import pytest

import regard as package
from regard.errors import FileFormatError, UserError

from .running import Regard

LINES = "1 2 3\n\n4\n5 6 x 7 8\n9 0\n"


@pytest.fixture
def own(run: Path, tmp_path: Path) -> Path:
    """The trained run, to write into."""
    return Path(shutil.copytree(run, tmp_path / "run"))


@pytest.fixture
def listed(regard: Regard, own: Path) -> Path:
    ended = regard("shortlist", own, "--per-word", "3", "--frequent", "2")
    assert ended.code == 0, ended.err
    assert "subwords for a sentence" in ended.out
    return own


def test_translations_are_hardly_others_and_lines_stay_in_place(regard: Regard, listed: Path) -> None:
    plain, short = (regard("translate", listed, *extra, stdin=LINES) for extra in ((), ("--shortlist",)))
    assert short.code == 0
    assert len(short.lines) == 5
    assert (short.lines[0], short.lines[1]) == (plain.lines[0], "")
    assert regard("translate", listed, "--shortlist", "--window", "1", stdin=LINES).out == short.out


def test_only_listed_subwords_come_out(regard: Regard, listed: Path) -> None:
    translator = package.load(listed, shortlist=True)
    assert translator.shortlist is not None
    for line, found in zip(LINES.splitlines(), translator.translate(LINES.splitlines(), n_best=4), strict=True):
        may = set(translator.shortlist.rows(translator.vocabulary.encode(line)).tolist())
        pieces = set(translator.vocabulary.pieces(sorted(may)))
        assert all(set(one.tokens) <= pieces for one in found.candidates)
        if line:
            assert translator.translate(line).text == found.text


def test_evaluate_uses_it(regard: Regard, listed: Path, corpus: Path) -> None:
    files = (corpus / "test.dig", corpus / "test.let")
    ended = regard("evaluate", listed, *files, "--shortlist", "--bootstrap", "0")
    assert ended.code == 0, ended.err
    assert "BLEU" in ended.out
    wrong = regard("evaluate", "--hypothesis", files[0], "--reference", files[1], "--shortlist")
    assert wrong.code == 2
    assert "--shortlist" in wrong.err


def test_several_processes_use_it(regard: Regard, listed: Path) -> None:
    alone = regard("translate", listed, "--shortlist", stdin=LINES)
    shared = regard("translate", listed, "--shortlist", "--processes", "2", "--window", "2", stdin=LINES)
    assert shared.out == alone.out


def test_a_model_without_one_says_how_to_make_it(regard: Regard, own: Path, corpus: Path) -> None:
    for command in (("translate", own), ("evaluate", own, corpus / "test.dig", corpus / "test.let")):
        ended = regard(*command, "--shortlist", stdin="1\n")
        assert (ended.code, ended.out) == (2, "")
        assert f"regard shortlist {own}" in ended.err
    with pytest.raises(FileFormatError, match="no shortlist"):
        package.load(own, shortlist=True)


def test_a_model_elsewhere_learns_from_the_run_that_is_named(regard: Regard, own: Path, tmp_path: Path) -> None:
    moved = Path(shutil.copytree(own / "model", tmp_path / "elsewhere" / "model"))
    ended = regard("shortlist", moved)
    assert ended.code == 2
    assert "--data" in ended.err
    assert regard("shortlist", moved, "--data", tmp_path).code == 2
    assert regard("shortlist", moved, "--data", own).code == 0
    assert regard("translate", moved, "--shortlist", stdin="1\n").code == 0


def test_a_checkpoint_has_that_of_its_run(regard: Regard, own: Path) -> None:
    checkpoint = sorted((own / "checkpoints").iterdir())[-1]
    assert regard("shortlist", checkpoint).code == 0
    assert regard("translate", checkpoint, "--shortlist", stdin="1\n").code == 0


def test_a_rounded_model_keeps_it(regard: Regard, listed: Path, tmp_path: Path) -> None:
    assert regard("quantize", listed, "--out", tmp_path / "int8").code == 0
    assert regard("translate", tmp_path / "int8", "--shortlist", "--precision", "float32", stdin="1 2\n").code == 0


def test_sampling_with_one_is_refused(regard: Regard, listed: Path) -> None:
    ended = regard("translate", listed, "--shortlist", "--sample", stdin="1\n")
    assert ended.code == 2
    assert "whole vocabulary" in ended.err
    with pytest.raises(UserError, match="whole vocabulary"):
        package.load(listed, shortlist=True).translate("1", sampling=True)


def test_a_damaged_one_and_a_link_out_of_the_folder_are_refused(regard: Regard, listed: Path, tmp_path: Path) -> None:
    path = listed / "model" / "shortlist.safetensors"
    shutil.move(path, tmp_path / "outside")
    path.symlink_to(tmp_path / "outside")
    ended = regard("translate", listed, "--shortlist", stdin="1\n")
    assert ended.code == 2
    assert "leads out of" in ended.err
    path.unlink()
    path.write_bytes((tmp_path / "outside").read_bytes()[:-40])
    ended = regard("translate", listed, "--shortlist", stdin="1\n")
    assert ended.code == 2
    assert str(path) in ended.err


def test_sizes_that_make_no_sense_are_told(regard: Regard, own: Path) -> None:
    for wrong in (("--per-word", "0"), ("--per-word", "1001"), ("--frequent", "-1")):
        assert regard("shortlist", own, *wrong).code == 2
    assert regard("shortlist", own, "--frequent", "9" * 30).code == 0
