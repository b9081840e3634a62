"""`regard demo`: the whole way on the embedded corpus, here with a model that learns little in little time."""

from pathlib import Path

import pytest

from regard.text.grammar import Splits, make_splits

from .running import ALONE, Regard

NAMES = ("train", "valid", "test", "heldout")


@pytest.fixture(scope="module")
def splits() -> Splits:
    return make_splits()


@pytest.fixture
def small_splits(splits: Splits, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the corpus, but a hundredth of it."""
    small = Splits(**{name: getattr(splits, name)[: 200 if name == "train" else 5] for name in NAMES})
    monkeypatch.setattr("regard.text.grammar.make_splits", lambda **_: small)


def test_the_corpus_alone_is_eight_files_of_equal_line_counts(
    regard: Regard, tmp_path: Path, splits: Splits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.text.grammar.make_splits", lambda **_: splits)
    ended = regard("demo", "--write-corpus", tmp_path / "corpus")
    assert ended.code == 0
    found = {path.name: path.read_text().count("\n") for path in (tmp_path / "corpus").iterdir()}
    assert found.keys() == {f"{name}.{ending}" for name in NAMES for ending in ("en", "de")}
    assert all(found[f"{name}.en"] == found[f"{name}.de"] > 0 for name in NAMES)
    assert found["train.en"] >= 20_000


def test_it_trains_measures_draws_and_says_what_next(
    regard: Regard, tmp_path: Path, small_splits: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sizes = ("d_model=16", "d_ff=16", "heads=2", "encoder_layers=1", "decoder_layers=1")
    rest = ("training.steps=4", "training.checkpoint_steps=2", "search.extra_length=0", "search.beam=1")
    overrides = [part for one in (*(f"model.{size}" for size in sizes), *rest) for part in ("--set", one)]
    ended = regard("demo", *ALONE, *overrides)
    assert ended.code == 0
    run = tmp_path / "demo-run"
    assert (run / "model" / "weights.safetensors").exists()
    assert (run / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert (run / "attention" / "alignment.png").exists()
    assert "set\tBLEU\tchrF2\texact\twhat it is" in ended.lines
    assert [line.split("\t")[0] for line in ended.lines if line.count("\t") == 4] == ["set", "test", "heldout"]
    for verb in ("translate", "inspect", "evaluate", "train"):
        assert f"regard {verb} " in ended.out
    # The same command again finds the work done, and the corpus as it was.
    before = (run / "model" / "weights.safetensors").read_bytes()
    assert regard("demo", *ALONE, *overrides).code == 0
    assert (run / "model" / "weights.safetensors").read_bytes() == before


def test_mistakes_are_told(regard: Regard, tmp_path: Path, small_splits: None) -> None:
    (tmp_path / "file").write_text("")
    for arguments, told in (
        (["--write-corpus", tmp_path / "file"], str(tmp_path / "file")),
        (["--out", tmp_path / "file"], str(tmp_path / "file")),
        (["--out", tmp_path / "run", "--set", "training.step=3"], "Did you mean 'steps'?"),
    ):
        ended = regard("demo", *arguments)
        assert ended.code == 2
        assert told in ended.err
