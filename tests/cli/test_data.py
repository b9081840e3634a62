"""`regard data`: corpora by name."""

import shlex
from pathlib import Path

import pytest

from regard.corpora.catalogue import CORPORA

from .running import Regard

SHARED = Path(__file__).parents[3] / "shared" / "data"


@pytest.mark.parametrize("arguments", [("data",), ("data", "list")])
def test_corpora_are_listed_with_their_terms(regard: Regard, arguments: tuple[str, ...]) -> None:
    rows = [line.split("\t") for line in regard(*arguments).lines]
    assert rows[0] == ["corpus", "languages", "pairs", "to fetch", "licence", "what it is"]
    assert [row[0] for row in rows[1:]] == list(CORPORA)
    assert all(all(row) for row in rows)


def test_a_corpus_is_shown_with_every_address_and_checksum(regard: Regard) -> None:
    text = regard("data", "show", "wmt14-en-de").out
    for download in CORPORA["wmt14-en-de"].downloads:
        assert download.address in text
        assert (download.checksum or "recorded at the first fetch") in text


def test_an_unknown_corpus_is_named(regard: Regard) -> None:
    for verb in ("show", "get"):
        ended = regard("data", verb, "wmt14")
        assert ended.code == 2
        assert "no corpus 'wmt14'" in ended.err


def test_a_folder_without_the_files_is_told(regard: Regard, tmp_path: Path) -> None:
    ended = regard("data", "get", "iwslt14", "--from", tmp_path, "--out", tmp_path / "out")
    assert ended.code == 2
    assert f"{tmp_path}: does not hold de-en.tgz" in ended.err


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"{SHARED} is not there")
def test_getting_ends_with_the_next_command_and_that_command_prepares(
    regard: Regard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = regard("data", "get", "multi30k", "--from", SHARED)
    assert ended.code == 0
    said = ended.err.splitlines()
    assert "wrote 12 texts; in data/multi30k: train.{en,de}" in said[-2]
    command = shlex.split(said[-1].removeprefix("train on it:  "))
    assert command[:2] == ["regard", "train"]
    files = [Path(word) for word in command if word.startswith("data/")]
    assert [path.is_file() for path in files] == [True] * 4
    again = regard("data", "get", "multi30k", "--from", SHARED)
    assert "everything is here and whole" in again.err


def test_beside_its_recipe_the_next_command_is_the_recipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from regard.cli.data import next_command

    corpus = CORPORA["tatoeba"]
    assert corpus.recipe
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recipes").mkdir()
    (tmp_path / corpus.recipe).write_text("")
    assert next_command(corpus, Path("data")) == "regard train recipes/tatoeba-en-de.toml --out runs/tatoeba"
    assert next_command(corpus, Path("elsewhere")).startswith("regard train --train elsewhere/tatoeba/train.en ")
