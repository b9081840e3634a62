"""`regard prepare`: what training would see."""

from pathlib import Path

import pytest

from .running import TINY, Regard


@pytest.fixture
def recipe(corpus: Path, tmp_path: Path) -> Path:
    path = tmp_path / "recipe.toml"
    path.write_text(
        f"""
preset = "tiny"
[training]
steps = 2
[[data.train]]
source = "{corpus / "train.dig"}"
target = "{corpus / "train.let"}"
"""
    )
    return path


def test_it_reports_what_is_kept_and_dropped_and_writes_the_store(regard: Regard, recipe: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    ended = regard("prepare", recipe, "--out", out)
    assert ended.code == 0
    assert "of 600 pairs" in ended.err
    assert "empty on one side" in ended.err
    assert (out / "vocabulary.spm").exists()
    assert (out / "data" / "train").is_dir()
    assert f"regard train {recipe} --out {out}" in ended.err


def test_doing_it_twice_is_harmless_and_training_goes_on_from_it(regard: Regard, recipe: Path, tmp_path: Path) -> None:
    out, override = tmp_path / "run", TINY[: TINY.index("--processes")]
    assert regard("prepare", recipe, "--out", out, *override).code == 0
    made = (out / "vocabulary.spm").stat().st_mtime_ns
    again = regard("prepare", recipe, "--out", out, *override)
    assert again.code == 0
    assert f"regard train {recipe} --out {out} --set model.d_model=32" in again.err  # the command that goes on
    assert regard("train", recipe, "--out", out, *TINY).code == 0
    assert (out / "vocabulary.spm").stat().st_mtime_ns == made
    assert (out / "model" / "weights.safetensors").exists()


def test_mistakes_are_told(regard: Regard, recipe: Path, corpus: Path, tmp_path: Path) -> None:
    empty, typo = tmp_path / "empty.toml", tmp_path / "typo.toml"
    empty.write_text("")
    typo.write_text(recipe.read_text().replace("train.let", "train.lett"))
    (tmp_path / "file").write_text("")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("precious")
    for arguments, told in (
        ([empty, "--out", tmp_path / "one"], "data.train: no training corpus"),
        ([tmp_path / "missing.toml", "--out", tmp_path / "two"], "missing.toml: can't be read"),
        ([typo, "--out", tmp_path / "three"], f"{corpus / 'train.lett'}: can't be read: No such file"),
        ([recipe, "--out", tmp_path / "file"], "can't be made"),
        ([recipe, "--out", tmp_path / "full"], "not empty, and not a run's folder"),
        ([recipe, "--out", tmp_path / "four", "--set", "data.max_lenght=3"], "Did you mean 'max_length'?"),
    ):
        ended = regard("prepare", *arguments)
        assert ended.code == 2
        assert told in ended.err
