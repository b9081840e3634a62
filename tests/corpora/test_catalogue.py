"""The catalogue: whole in itself, and true to the files that are here."""

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from regard.corpora.catalogue import CORPORA, find_corpus
from regard.corpora.describe import Corpus
from regard.corpora.get import get
from regard.errors import UserError
from regard.progress import QuietDisplay
from regard.settings import read_recipe

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared" / "data"
RECIPES = sorted(path for path in (ROOT / "recipes").glob("*.toml") if path.name != "own-text.toml")

each_corpus = pytest.mark.parametrize("corpus", CORPORA.values(), ids=CORPORA.keys())
with_data = pytest.mark.skipif(not SHARED.is_dir(), reason=f"{SHARED} is not there")


def test_the_promised_corpora_are_there() -> None:
    assert set(CORPORA) == {"multi30k", "tatoeba", "iwslt14", "wmt14-en-de", "wmt14-en-fr"}


@each_corpus
def test_everything_is_fetched_over_https_and_checksums_are_whole(corpus: Corpus) -> None:
    assert len(corpus.by_file) == len(corpus.downloads)
    for download in corpus.downloads:
        parts = urlsplit(download.address)
        assert parts.scheme == "https"
        assert parts.hostname
        if download.checksum:
            assert re.fullmatch(r"sha256:[0-9a-f]{64}|md5:[0-9a-f]{32}", download.checksum)


@each_corpus
def test_every_text_is_made_of_downloads_and_each_download_is_used(corpus: Corpus) -> None:
    assert len({text.name for text in corpus.texts}) == len(corpus.texts)
    used = {piece.download for text in corpus.texts for piece in text.pieces}
    assert used == set(corpus.by_file)
    assert all(text.language in corpus.languages for text in corpus.texts)


@each_corpus
def test_every_corpus_has_training_validation_and_test_text_in_each_of_its_first_two_languages(corpus: Corpus) -> None:
    names = {text.name for text in corpus.texts if not text.extra}
    for language in corpus.languages[:2]:
        assert {f"train.{language}", f"valid.{language}"} <= names
        assert any(re.match(rf"test\w*\.{language}", name) for name in names)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.name)
def test_a_recipe_reads_what_getting_its_corpus_writes(recipe: Path) -> None:
    """From the project's folder, `regard data get NAME` writes to data/NAME."""
    data = read_recipe(recipe).data
    for corpus in (*data.train, *data.valid):
        for path in corpus.files:
            name, text = path.resolve().relative_to(ROOT / "data").parts
            assert text in {text.name for text in CORPORA[name].texts}
    assert data.valid


@each_corpus
def test_the_recipe_that_is_named_exists(corpus: Corpus) -> None:
    assert corpus.recipe is None or (ROOT / corpus.recipe).is_file()


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(UserError, match=r"no corpus 'multi3k'\. Did you mean 'multi30k'\?"):
        find_corpus("multi3k")


@with_data
def test_multi30k_is_the_text_that_the_catalogue_knows(tmp_path: Path) -> None:
    got = get(CORPORA["multi30k"], tmp_path / "multi30k", QuietDisplay(), source=SHARED)
    assert len(got.texts) == 12
    assert (got.folder / "train.lc.tok.de").read_text().startswith("zwei junge weiße männer sind im freien")
    assert (got.folder / "valid.en").read_text().count("\n") == 1014


@with_data
def test_tatoeba_is_split_by_english_sentence(tmp_path: Path) -> None:
    folder = get(CORPORA["tatoeba"], tmp_path / "tatoeba", QuietDisplay(), source=SHARED).folder
    parts = {part: (folder / f"{part}.en").read_text().splitlines() for part in ("train", "valid", "test")}
    assert sum(map(len, parts.values())) == 169_813
    assert all(2000 < len(parts[name]) < 3000 for name in ("valid", "test"))
    assert not set(parts["train"]) & {*parts["valid"], *parts["test"]}
    assert not set(parts["valid"]) & set(parts["test"])
