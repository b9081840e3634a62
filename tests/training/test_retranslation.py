"""Retranslation: which text is added, that no line of it is lost, and what it is refused for."""

import shutil

import pytest
from digits import recipe
from typer.testing import CliRunner

from regard.cli.main import app
from regard.data.prepare import open_prepared
from regard.errors import UserError
from regard.model_folder import read_settings
from regard.progress import QuietDisplay
from regard.settings import Settings
from regard.training.loop import train
from regard.training.retranslation import FOLDER, retranslate
from regard.training.run import Run
from regard.translator import join, load

STEPS = 100  # from then on, the helpers say something


def read(path):
    return path.read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="module")
def retranslated(corpus, tmp_path_factory):
    out = tmp_path_factory.mktemp("retranslated")
    data = {"retranslation_steps": STEPS, "retranslation_models": 2, "retranslation_beam": 2}
    train(recipe(corpus, data=data), out, display=QuietDisplay(), processes=1, threads=1)
    return out


def test_each_text_has_one_side_as_it_was_and_a_line_for_each_line(retranslated, corpus):
    texts = retranslated / FOLDER / "texts"
    for way, kept, file in (("forward", "source", "train.src"), ("backward", "target", "train.tgt")):
        assert read(texts / f"{way}-0.{kept}") == read(corpus / file)
        other = "target" if kept == "source" else "source"
        assert len(read(texts / f"{way}-0.{other}")) == len(read(corpus / file))


def test_models_that_translate_forward_do_it_together(retranslated, corpus):
    models = [load(retranslated / FOLDER / name, threads=1) for name in ("forward", "forward-2")]
    lines = read(corpus / "train.src")[:50]
    told = [[one.text for one in who.translate_lines(lines)] for who in (join(models), *models)]
    assert read(retranslated / FOLDER / "texts" / "forward-0.target")[:50] == told[0]
    assert told[0] not in told[1:]


def test_training_sees_all_three_texts(retranslated, corpus):
    counts = [one.count for one in open_prepared(retranslated).training_store(1).corpora]
    assert len(counts) == 3
    assert counts[0] == len(read(corpus / "train.src"))
    assert all(0 < count <= counts[0] for count in counts[1:])


def test_the_helpers_differ_from_the_run_in_direction_steps_seed_and_beam_alone(retranslated):
    own = read_settings(retranslated / "settings.toml")
    forward, second, backward = (
        read_settings(retranslated / FOLDER / name / "settings.toml") for name in ("forward", "forward-2", "backward")
    )
    assert own.data.retranslation_steps == STEPS
    alone = {"retranslation_steps": 0, "retranslation_models": 1, "retranslation_beam": None}
    assert forward.data == own.data.model_copy(update=alone)
    vocabulary = retranslated / FOLDER / "forward" / "vocabulary.spm"
    assert second.data == forward.data.model_copy(update={"vocabulary": vocabulary})
    assert (retranslated / FOLDER / "forward-2" / "vocabulary.spm").read_bytes() == vocabulary.read_bytes()
    assert backward.data.train[0].source == own.data.train[0].target
    assert backward.data.valid[0].target == own.data.valid[0].source
    assert (backward.data.source_language, backward.data.target_language) == (
        own.data.target_language,
        own.data.source_language,
    )
    assert len({one.training.seed for one in (own, forward, second, backward)}) == 4
    for one in (forward, second, backward):
        assert one.model == own.model
        assert one.search == own.search.model_copy(update={"beam": 2})
        assert one.training.model_copy(update={"seed": 0}) == own.training.model_copy(
            update={"seed": 0, "steps": STEPS, "warmup": 10}
        )


def test_the_card_and_the_report_say_what_else_was_trained_on(retranslated):
    told = "the same text with its targets, and with its sources, as models of 100 steps each translated them"
    for page in (retranslated / "model" / "README.md", retranslated / "report.html"):
        assert told in page.read_text(encoding="utf-8")


def test_a_finished_run_is_not_made_again(retranslated):
    texts = retranslated / FOLDER / "texts" / "forward-0.target"
    before = texts.stat().st_mtime_ns
    train(read_settings(retranslated / "settings.toml"), retranslated, display=QuietDisplay(), processes=1, threads=1)
    assert texts.stat().st_mtime_ns == before


def test_pairs_in_one_file_are_turned_with_their_empty_lines(corpus, tmp_path, retranslated):
    lines = [f"{source}\t{target}" for source, target in zip(read(corpus / "train.src"), "abc", strict=False)]
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("\n".join([lines[0], "\t", *lines[1:]]) + "\n", encoding="utf-8")
    data = {"train": [{"pairs": str(pairs)}], "valid": [], "retranslation_steps": STEPS}
    asked = []

    def train_helper(settings: Settings, folder):
        asked.append(settings)
        return retranslated / "model"

    changed = retranslate(recipe(corpus, data=data), Run(tmp_path / "run"), train_helper, QuietDisplay(), threads=1)
    turned = asked[1].data.train[0]
    assert read(turned.source) == ["a", "", "b", "c"]
    assert read(turned.target) == [line.partition("\t")[0] for line in read(pairs)]
    assert len(changed.data.train) == 3
    assert [len(read(file)) for one in changed.data.train[1:] for file in (one.source, one.target)] == [4] * 4
    assert read(changed.data.train[1].target)[1] == ""


def test_text_that_changed_before_the_data_was_ready_is_found(retranslated, corpus, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(retranslated, folder)
    shutil.rmtree(folder / "checkpoints")
    shutil.rmtree(folder / "model")
    (folder / "data" / "inputs.json").unlink()  # as if it had been killed right before
    other = tmp_path / "other.src"
    other.write_text((corpus / "train.src").read_text(encoding="utf-8").replace("1", "2"), encoding="utf-8")
    files = {"source": str(other), "target": str(corpus / "train.tgt")}
    data = {"train": [files], "retranslation_steps": STEPS, "retranslation_models": 2}
    settings = recipe(corpus, data=data)
    with pytest.raises(UserError, match="other settings"):
        train(settings, folder, display=QuietDisplay(), processes=1, threads=1)


def test_it_is_refused_for_finetuning(retranslated, corpus, tmp_path):
    from regard.training.finetune import finetune

    settings = recipe(corpus, data={"retranslation_steps": STEPS})
    with pytest.raises(UserError, match="from nothing"):
        finetune(retranslated, settings, tmp_path / "tuned", display=QuietDisplay(), processes=1, threads=1)
    assert not (tmp_path / "tuned").exists()


def test_it_is_refused_under_torchrun(corpus, tmp_path, monkeypatch):
    told = {"TORCHELASTIC_RUN_ID": "a", "RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2"}
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UserError, match="torchrun"):
        train(recipe(corpus, data={"retranslation_steps": STEPS}), tmp_path / "run", display=QuietDisplay(), threads=1)
    assert not (tmp_path / "run").exists()


def test_preparing_alone_says_what_to_do(retranslated, tmp_path):
    settings = str(retranslated / "settings.toml")
    result = CliRunner().invoke(app, ["prepare", settings, "--out", str(tmp_path / "new")])
    assert isinstance(result.exception, UserError)
    assert "--set data.retranslation_steps=0" in str(result.exception)
    assert not (tmp_path / "new").exists()
