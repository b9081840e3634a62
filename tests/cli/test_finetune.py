"""`regard finetune`: from a model's weights to other text, resumed like any training, and what it refuses."""

import json
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file

from .conftest import LETTERS, write_corpus
from .running import ALONE, REGARD, Ended, Regard

FEW = ("--set", "training.steps=20", "--set", "training.learning_rate=0.005")


@pytest.fixture(scope="module")
def shifted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another corpus in the same languages: every digit is spelled by the letter after its own."""
    folder = tmp_path_factory.mktemp("shifted")
    for seed, (name, pairs) in enumerate({"train": 80, "valid": 15}.items(), start=10):
        write_corpus(folder, name, pairs, seed)
        path = folder / f"{name}.let"
        path.write_text(path.read_text().translate(str.maketrans(LETTERS, LETTERS[1:] + LETTERS[0])))
    return folder


@pytest.fixture
def finetune(regard: Regard, run: Path, shifted: Path, tmp_path: Path) -> Any:
    """A function that fine-tunes the model of `run` to the shifted corpus."""

    def go(*more: object, model: Path = run, out: str = "tuned", train: bool = True) -> Ended:
        files = (
            ("--train", shifted / "train.dig", shifted / "train.let"),
            ("--valid", shifted / "valid.dig", shifted / "valid.let"),
        )
        corpora = [part for option in files for part in option] if train else []
        return regard("finetune", model, "--out", tmp_path / out, *corpora, *ALONE, *more)

    return go


def validation_losses(out: Path) -> list[float]:
    lines = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    return [facts["loss"] for facts in lines if facts["event"] == "validation"]


# ---- what it does ----------------------------------------------------------------------------------------------------


def test_a_model_learns_another_corpus_and_says_where_it_came_from(
    finetune: Any, regard: Regard, run: Path, shifted: Path, tmp_path: Path
) -> None:
    before = (run / "model" / "weights.safetensors").read_bytes()
    ended = finetune(*FEW, "--set", "training.checkpoint_steps=1")
    assert ended.code == 0, ended.err
    losses = validation_losses(tmp_path / "tuned")
    assert losses[-1] < losses[0] - 0.5
    facts = json.loads((tmp_path / "tuned" / "model" / "model.json").read_text())
    assert facts["origin"]["model"] == str(run / "model")
    card = (tmp_path / "tuned" / "model" / "README.md").read_text()
    assert f"Fine-tuned from `{run / 'model'}`, whose weights have the SHA-256 `{facts['origin']['weights']}`." in card
    assert (run / "model" / "weights.safetensors").read_bytes() == before
    assert len(regard("translate", tmp_path / "tuned", shifted / "valid.dig").lines) == 15


def test_it_begins_from_the_models_weights(finetune: Any, run: Path, tmp_path: Path) -> None:
    """At a rate that changes next to nothing, the weights stay what they were."""
    assert finetune("--set", "training.steps=1", "--set", "training.learning_rate=1e-12").code == 0
    weights = [load_file(folder / "model" / "weights.safetensors") for folder in (run, tmp_path / "tuned")]
    assert max(float((weights[0][name] - weights[1][name]).abs().max()) for name in weights[0]) < 1e-8


def test_what_is_not_said_is_the_models_or_suits_few_data(finetune: Any, run: Path, tmp_path: Path) -> None:
    ended = finetune("--set", "training.steps=8", "--set", "model.dropout=0.25")
    assert f"fine-tuning {run / 'model'} (SHA-256 of its weights " in ended.err
    base, tuned = (tomllib.loads((folder / "settings.toml").read_text()) for folder in (run, tmp_path / "tuned"))
    assert tuned["model"] == {**base["model"], "dropout": 0.25}
    assert tuned["data"]["vocabulary"] == str(run / "model" / "vocabulary.spm")
    assert (tuned["data"]["source_language"], tuned["data"]["target_language"]) == ("dig", "let")
    assert tuned["search"] == base["search"]
    assert (tuned["training"]["warmup"], tuned["training"]["checkpoint_steps"]) == (2, 1)
    # 0.3 of where the model's own schedule ended, which is 0.01 · √(20 / 120)
    assert tuned["training"]["learning_rate"] == pytest.approx(0.3 * 0.01 * (20 / 120) ** 0.5, rel=0.01)


def test_the_number_of_steps_follows_from_the_text(finetune: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("regard.training.finetune._FEWEST_STEPS", 1)
    assert finetune("--set", "training.batch_tokens=400").code == 0
    tuned = tomllib.loads((tmp_path / "tuned" / "settings.toml").read_text())
    report = json.loads((tmp_path / "tuned" / "data" / "report.json").read_text())["train"]
    tokens = max(report["source_tokens"], report["target_tokens"])
    assert abs(tuned["training"]["steps"] - 5 * tokens / 400) <= 1


def test_a_recipe_does_as_well(finetune: Any, run: Path, shifted: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        f'[model]\nd_model = 32\ndropout = 0.1\n[training]\nsteps = 3\n[[data.train]]\nsource = "{shifted}/train.dig"\n'
        f'target = "{shifted}/train.let"\n'
    )
    ended = finetune(recipe, train=False)
    assert ended.code == 0, ended.err
    assert "no validation text (--valid)" in ended.err
    tuned = tomllib.loads((tmp_path / "tuned" / "settings.toml").read_text())
    assert (tuned["training"]["steps"], tuned["model"]["dropout"], tuned["model"]["heads"]) == (3, 0.1, 2)


def test_it_works_from_python_from_a_checkpoint_and_on_what_was_fine_tuned(
    run: Path, shifted: Path, tmp_path: Path
) -> None:
    import regard
    from regard.progress import QuietDisplay
    from regard.settings import resolve

    files = {"source": shifted / "train.dig", "target": shifted / "train.let"}
    settings = resolve({"data": {"train": [files]}, "training": {"steps": 2}})
    model = next((run / "checkpoints").glob("step-*"))
    for name in ("once", "twice"):
        model = regard.finetune(
            model, settings, tmp_path / name, display=QuietDisplay(), device="cpu", processes=1, threads=1
        )
    facts = json.loads((model / "model.json").read_text())
    assert facts["origin"]["model"] == str(tmp_path / "once" / "model")
    assert regard.load(model, threads=1).translate("1 2").text is not None


# ---- going on --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["checkpoints/step-00000002", "log.jsonl", "data/inputs.json"])
def test_killed_and_started_again_it_ends_with_the_same_weights(
    moment: str, finetune: Any, run: Path, shifted: Path, tmp_path: Path
) -> None:
    assert finetune(*FEW, out="whole").code == 0
    out = tmp_path / "killed"
    files = ["--train", *(shifted / f"train.{end}" for end in ("dig", "let"))]
    files += ["--valid", *(shifted / f"valid.{end}" for end in ("dig", "let"))]
    command = [REGARD, "finetune", run, "--out", out, *files, *ALONE, *FEW, "--progress", "quiet"]
    killed = subprocess.Popen([sys.executable, *map(str, command)])
    while not (out / moment).exists():
        assert killed.poll() is None
        time.sleep(0.002)
    killed.kill()
    assert killed.wait() == -signal.SIGKILL
    again = finetune(*FEW, out="killed")
    assert again.code == 0, again.err
    one, other = (tmp_path / name / "model" / "weights.safetensors" for name in ("whole", "killed"))
    assert one.read_bytes() == other.read_bytes()


def test_going_on_from_another_model_is_refused_with_the_difference(finetune: Any, run: Path, tmp_path: Path) -> None:
    assert finetune("--set", "training.steps=1").code == 0
    shutil.copytree(run / "model", tmp_path / "moved")  # the same model elsewhere: only its vocabulary's path differs
    ended = finetune("--set", "training.steps=1", model=tmp_path / "moved")
    assert (ended.code, "model that it began from" in ended.err) == (2, False)
    other = tmp_path / "moved" / "weights.safetensors"
    save_file({name: 2 * weight for name, weight in load_file(other).items()}, other)
    ended = finetune("--set", "training.steps=1", model=tmp_path / "moved")
    assert ended.code == 2
    assert f"model that it began from: was {run / 'model'} (SHA-256 of its weights " in ended.err
    assert f"now {other.parent} (" in ended.err


def test_a_fine_tuning_is_not_continued_as_a_training_from_nothing(
    finetune: Any, regard: Regard, tmp_path: Path
) -> None:
    assert finetune("--set", "training.steps=1").code == 0
    ended = regard("train", tmp_path / "tuned" / "settings.toml", "--out", tmp_path / "tuned", *ALONE)
    assert ended.code == 2
    assert "now none (a model trained from nothing)" in ended.err


# ---- what it refuses -------------------------------------------------------------------------------------------------


def test_settings_that_contradict_the_model_are_listed(finetune: Any, odd_model: Path, tmp_path: Path) -> None:
    ended = finetune(
        *("--set", "model.d_model=64", "--set", "model.norm=pre", "--set", "data.vocabulary_size=500"),
        *("--set", f"data.vocabulary={odd_model / 'vocabulary.spm'}", "--from", "fr"),
    )
    assert ended.code == 2
    for line in (
        "  model.d_model: the model has 32, the settings say 64",
        '  model.norm: the model has "post", the settings say "pre"',
        "  data.vocabulary_size: the model has 10000, the settings say 500",
        '  data.source_language: the model has "dig", the settings say "fr"',
    ):
        assert line in ended.err.splitlines()
    assert f"data.vocabulary: {odd_model / 'vocabulary.spm'} (" in ended.err
    assert "is not the model's" in ended.err
    assert not (tmp_path / "tuned").exists()


def test_the_models_own_settings_contradict_nothing(finetune: Any, run: Path) -> None:
    own = ("--set", "model.d_model=32", "--set", f"data.vocabulary={run / 'vocabulary.spm'}", "--from", "dig")
    assert finetune("--set", "training.steps=1", *own).code == 0


def test_weights_of_other_sizes_are_refused(finetune: Any, run: Path, tmp_path: Path) -> None:
    shutil.copytree(run / "model", tmp_path / "wrong")
    settings = tmp_path / "wrong" / "settings.toml"
    settings.write_text(settings.read_text().replace("d_ff = 64", "d_ff = 48"))
    ended = finetune(model=tmp_path / "wrong")
    assert ended.code == 2
    assert "the weights do not fit the settings" in ended.err


def test_another_vocabulary_beside_the_weights_is_refused(
    finetune: Any, run: Path, odd_model: Path, tmp_path: Path
) -> None:
    shutil.copytree(run / "model", tmp_path / "wrong")
    shutil.copy(odd_model / "vocabulary.spm", tmp_path / "wrong" / "vocabulary.spm")
    ended = finetune(model=tmp_path / "wrong")
    assert ended.code == 2
    assert "not the vocabulary that this model was trained with" in ended.err


def test_files_the_wrong_way_round_are_noticed(regard: Regard, run: Path, shifted: Path, tmp_path: Path) -> None:
    files = (shifted / "train.let", shifted / "train.dig")
    ended = regard("finetune", run, "--train", *files, "--out", tmp_path / "tuned", *ALONE)
    assert ended.code == 2
    assert "the model translates dig to let, and these files look like the other way round; exchange them" in ended.err


def test_mistakes_are_told(finetune: Any, run: Path, tmp_path: Path) -> None:
    for options, told in (
        ({"train": False}, "data.train: no training corpus"),
        ({"model": tmp_path / "missing"}, "missing: no such folder"),
        ({"model": tmp_path}, "no model here"),
        ({"model": run / "settings.toml"}, "not a folder; give a model's or a run's"),
    ):
        ended = finetune(**options)
        assert ended.code == 2
        assert told in ended.err
    ended = finetune("--set", "training.stepps=3")
    assert (ended.code, "Did you mean 'steps'?" in ended.err) == (2, True)
