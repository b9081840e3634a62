"""`regard inspect`: pictures, a table and an alignment for one sentence."""

from pathlib import Path
from typing import Any

import pytest

from regard.translator import Translator, load

from .running import Regard


def test_it_draws_prints_the_alignment_and_describes_every_head(regard: Regard, run: Path, tmp_path: Path) -> None:
    ended = regard("inspect", run, "1 2 3", "--out", tmp_path / "look", "--format", "png")
    assert ended.code == 0
    found = load(run, device="cpu").translate("1 2 3", alignments=True)
    assert ended.lines[:2] == ["1 2 3", found.text]
    pairs = [line.strip() for line in ended.lines if " – " in line and line.startswith("  ")]
    words = found.text.split()
    assert pairs == [f"{['1', '2', '3'][source]} – {words[target]}" for source, target in found.alignment]
    rows = [line.split("\t") for line in ended.lines if line.startswith(("encoder\t", "decoder\t", "cross\t"))]
    assert [row[:3] for row in rows] == [[kind, "1", head] for kind in ("encoder", "decoder", "cross") for head in "12"]
    pictures = list((tmp_path / "look").glob("*"))
    assert ended.lines[-1] == f"{len(pictures)} pictures in {tmp_path / 'look'}"
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pictures)
    assert any("alignment" in path.name for path in pictures)


def test_a_given_target_is_looked_at_and_aligned_instead(regard: Regard, run: Path, tmp_path: Path) -> None:
    ended = regard("inspect", run, "1 2", "--target", "b c", "--out", tmp_path, "--format", "svg")
    assert ended.lines[:2] == ["1 2", "b c"]
    assert any(line in ("  1 – b", "  2 – c") for line in ended.lines)
    assert {path.suffix for path in tmp_path.iterdir()} == {".svg"}


def test_pictures_go_to_a_folder_of_their_own_by_default(
    regard: Regard, odd_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("regard.attention_maps.draw", lambda maps, out, formats: [out / one for one in formats])
    assert regard("inspect", odd_model, "a").lines[-1] == "2 pictures in attention"


def test_mistakes_are_told(regard: Regard, odd_model: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for arguments, told in (
        ([" \t"], "the sentence is empty"),
        (["a", "--format", "gif"], "no picture format 'gif'; known: png, svg, pdf"),
        (["a", "--out", tmp_path / "file"], "is not a folder"),
    ):
        ended = regard("inspect", odd_model, *arguments)
        assert ended.code == 2
        assert told in ended.err


def test_a_sentence_that_cannot_be_translated_is_said(
    regard: Regard, odd_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Translator, units: Any, options: Any) -> Any:
        raise MemoryError("too much")

    monkeypatch.setattr(Translator, "_search", fail)
    ended = regard("inspect", odd_model, "a")
    assert (ended.code, ended.err) == (1, "regard: the sentence could not be translated: MemoryError: too much\n")
