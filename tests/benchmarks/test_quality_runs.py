"""`benchmarks/results.py run`: plans, times that add up over sessions, rows, and a test set that is read once."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import results
from quality import sessions
from quality.plan import ResultError, fingerprint
from quality.running import best, validation_curve
from quality.sessions import read_sessions, train
from quality.standards import ROOT, STANDARDS
from quality.store import add_row, missing_seeds, read_rows

from regard.settings import read_recipe, resolve
from regard.text.grammar import make_splits

RECIPE = """
[model]
d_model = 16
d_ff = 16
heads = 2
encoder_layers = 1
decoder_layers = 1

[data]
vocabulary_size = 400
train = [{source = "train.en", target = "train.de"}]
valid = [{source = "valid.en", target = "valid.de"}]

[training]
steps = 100
batch_tokens = 400
log_steps = 5
checkpoint_steps = 25

[search]
beam = 1
extra_length = 0
"""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a recipe and its text."""
    folder = tmp_path_factory.mktemp("corpus")
    splits = make_splits(train=200, valid=5, test=7, heldout=1)
    for part in ("train", "valid", "test"):
        for language, side in (("en", "source"), ("de", "target")):
            lines = [getattr(pair, side) for pair in getattr(splits, part)]
            (folder / f"{part}.{language}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (folder / "recipe.toml").write_text(RECIPE)
    return folder


def plan_of(*words):
    return results.make_plan(results.make_parser().parse_args(["run", *map(str, words)]))


# ---- what is to be run -----------------------------------------------------------------------------------------------


def test_a_recipe_is_run_as_it_is_and_tested_on_its_own_test_set():
    plan = plan_of(ROOT / "recipes" / "multi30k-en-de.toml", "--runs", ROOT / "runs")
    assert plan.train_command(2) == [
        *("regard", "train", "recipes/multi30k-en-de.toml"),
        *("--set", "training.seed=2", "--out", "runs/multi30k-en-de-2"),
    ]
    files = [f"data/multi30k/test_2016_flickr.lc.tok.{language}" for language in ("en", "de")]
    told = plan.evaluate_command(2, plan.test, "test")
    assert told[:5] == ["regard", "evaluate", "runs/multi30k-en-de-2", *files]
    assert "--tokenized" in told
    assert str(plan.validation.target) == "data/multi30k/valid.lc.tok.de"


def test_another_pair_of_languages_changes_nothing_but_paths(corpus):
    paths = [str(corpus / name) for name in ("train.de", "train.en", "valid.de", "valid.en", "test.de", "test.en")]
    options = ("--train", *paths[:2], "--valid", *paths[2:4], "--test", *paths[4:], "--no-tokenized", "--name", "back")
    recipe = ROOT / "recipes" / "multi30k-en-de.toml"
    plan = plan_of(recipe, *options, "--runs", "runs")
    assert plan.train_command(1)[2:9] == [
        *("recipes/multi30k-en-de.toml", "--train", *paths[:2], "--valid"),
        *paths[2:4],
    ]
    assert plan.evaluate_command(1, plan.test, "test")[3:5] == paths[4:]
    assert "--tokenized" not in plan.evaluate_command(1, plan.test, "test")
    assert plan.identity()["settings"] == plan_of(recipe, "--runs", "runs").identity()["settings"]


def test_runs_can_be_scored_on_another_test_set(corpus):
    other = ("--test", corpus / "test.en", corpus / "test.de", "--name", "other-test", "--of", "multi30k-en-de")
    plan = plan_of(ROOT / "recipes" / "multi30k-en-de.toml", *other, "--runs", ROOT / "runs")
    assert plan.train_command(1)[-1] == "runs/multi30k-en-de-1"
    assert plan.identity()["test"] == [str(corpus / "test.en"), str(corpus / "test.de")]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--set", "training.seed=3"], "--seeds says which"),
        (["--set", "training.steps=3"], "needs a --name"),
        (["--train", "a.de", "a.en", "--name", "back"], "give --test SOURCE TARGET, or --no-test"),
    ],
)
def test_what_a_plan_lacks_is_told(words, told):
    with pytest.raises(ResultError, match=told):
        plan_of(ROOT / "recipes" / "multi30k-en-de.toml", "--runs", "runs", *words)


def test_a_recipe_without_a_test_set_wants_one(corpus):
    with pytest.raises(ResultError, match="no test set belongs to it"):
        plan_of(corpus / "recipe.toml", "--runs", corpus)
    assert plan_of(corpus / "recipe.toml", "--runs", corpus, "--no-test").test is None


def test_missing_text_is_told_before_hours_are_spent(corpus):
    with pytest.raises(ResultError, match=f"not there: {corpus}/gone.en"):
        plan_of(
            *(corpus / "recipe.toml", "--runs", corpus, "--name", "a"),
            *("--test", corpus / "gone.en", corpus / "test.de"),
        ).check_files()


def test_every_recipe_that_has_a_standard_exists_and_names_the_same_test_set():
    for recipe, standard in STANDARDS.items():
        comments = (ROOT / recipe).read_text(encoding="utf-8")
        tokenized = " --tokenized" if standard.tokenized else ""
        assert f" {standard.test.source} {standard.test.target}{tokenized}\n" in comments


def test_a_fingerprint_ignores_seed_text_and_what_is_off(corpus):
    recipe = corpus / "recipe.toml"
    plain = fingerprint(read_recipe(recipe))
    same = ["training.seed=7", "data.train=[]", "training.consistency=0.0"]
    assert fingerprint(read_recipe(recipe, same)) == plain
    assert fingerprint(read_recipe(recipe, ["training.consistency=5"])) != plain
    assert fingerprint(resolve({})) != plain


# ---- time ------------------------------------------------------------------------------------------------------------

# What a training leaves behind, in so many seconds: settings at once, a checkpoint, and if it may a model.
STUB = """
import pathlib, sys, time
folder, seconds, code = pathlib.Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
(folder / "checkpoints" / "step-1").mkdir(parents=True, exist_ok=True)
(folder / "settings.toml").touch()
time.sleep(seconds)
if code == 0:
    (folder / "model").mkdir(exist_ok=True)
    (folder / "model" / "model.json").touch()
sys.exit(code)
"""


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(sessions, "_START", STUB)
    monkeypatch.setattr(sessions, "_HEARTBEAT", 0.05)
    return lambda seconds, code: train(["regard", str(tmp_path / "run"), str(seconds), str(code)], tmp_path / "run")


def test_the_time_of_all_sessions_counts(stub, tmp_path):
    for number in (1, 2):
        with pytest.raises(ResultError, match="exit code 3; run the same command again to go on"):
            stub(0.3, 3)
        assert len(read_sessions(tmp_path / "run")) == number
    found = stub(0.3, 0)
    assert found == read_sessions(tmp_path / "run")
    assert all(session["seconds"] >= 0.3 for session in found)
    assert len(found) == 3
    assert stub(0.3, 0) == found  # a look at a finished run is no session of it


def test_a_run_whose_time_is_not_known_is_refused(stub, tmp_path):
    stub(0, 0)
    (tmp_path / "run" / "sessions.json").unlink()
    with pytest.raises(ResultError, match="its time is not known"):
        stub(0, 0)


# ---- the log ---------------------------------------------------------------------------------------------------------


def test_the_curve_has_every_validation_with_the_time_of_training(tmp_path):
    lines = [
        {"event": "training", "step": 50, "seconds": 10.0},
        {"event": "validation", "step": 58, "loss": 2.0, "perplexity": 7.389, "bleu": 20.12345},
        {"event": "training", "step": 100, "seconds": 20.5},
        {"event": "skipped", "step": 101},
        {"event": "validation", "step": 116, "loss": 1.0, "perplexity": 2.718, "bleu": None},
    ]
    (tmp_path / "log.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    curve = validation_curve(tmp_path / "log.jsonl")
    assert curve == {
        "step": [58, 116],
        "seconds": [10.0, 20.5],
        "loss": [2.0, 1.0],
        "perplexity": [7.389, 2.718],
        "bleu": [20.123, None],
    }
    assert best(curve) == {"perplexity": 2.718, "bleu": 20.123}


# ---- rows ------------------------------------------------------------------------------------------------------------


def test_rows_have_an_order_that_does_not_depend_on_time(tmp_path):
    one, other = tmp_path / "one.json", tmp_path / "other.json"
    rows = [{"name": name, "seed": seed, "log": {"step": [1]}} for name in "ab" for seed in (1, 2, 10)]
    for row in rows:
        add_row(one, row)
    for row in reversed(rows):
        add_row(other, row)
    assert one.read_text() == other.read_text()
    assert read_rows(one) == rows
    add_row(one, {**rows[0], "log": {}})
    assert read_rows(one) == [{**rows[0], "log": {}}, *rows[1:]]


def test_rows_of_one_name_are_of_one_thing(corpus):
    plan = plan_of(corpus / "recipe.toml", "--runs", corpus, "--no-test")
    rows = [{"name": "recipe", "seed": seed, **plan.identity()} for seed in (1, 2)]
    assert missing_seeds(rows, plan, [1, 2, 3], again=False) == [3]
    assert missing_seeds(rows, plan, [1, 3], again=True) == [1, 3]
    changed = plan_of(
        corpus / "recipe.toml", "--runs", corpus, "--no-test", "--name", "recipe", "--set", "training.steps=9"
    )
    with pytest.raises(ResultError, match="recipe, seed 2: measured with other settings"):
        missing_seeds(rows, changed, [1, 3], again=True)
    assert missing_seeds(rows, changed, [1, 2, 3], again=True) == [1, 2, 3]


# ---- the real thing --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_that_is_stopped_goes_on_and_its_test_set_is_read_once(corpus, tmp_path):
    test = [tmp_path / "test.en", tmp_path / "test.de"]
    for file in test:
        file.write_bytes((corpus / file.name).read_bytes())
    found, runs = tmp_path / "quality.json", tmp_path / "runs"
    command = [
        *(sys.executable, ROOT / "benchmarks" / "results.py", "run", corpus / "recipe.toml", "--seeds", "4"),
        *("--set", "training.checkpoint_minutes=0.0001", "--name", "tiny", "--test", *test, "--runs", runs),
        *("--results", found, "--processes", "1", "--threads", "1"),
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    run = runs / "tiny-4"
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        while not any(run.glob("checkpoints/step-*")) and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        told = process.stderr.read()
    assert process.returncode == 1, told
    assert "exit code 143; run the same command again to go on" in told
    assert not found.exists()

    assert subprocess.run(command, env=environment, check=False).returncode == 0
    (row,) = read_rows(found)
    both = read_sessions(run)
    assert (row["name"], row["seed"], row["steps"], row["sessions"]) == ("tiny", 4, 100, 2)
    assert row["seconds"] == pytest.approx(sum(session["seconds"] for session in both))
    assert row["log"]["step"] == [25, 50, 75, 100]
    assert [score["metric"] for score in row["test_scores"]] == ["BLEU", "chrF2", "TER", "paper BLEU"]
    assert len((run / "test.translated").read_text().splitlines()) == 7
    assert len((run / "valid.translated").read_text().splitlines()) == 5
    assert row["commands"][0].startswith("regard train ")

    for file in test:
        file.unlink()  # whoever reads it now fails
    again = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    assert again.returncode == 0
    assert "tiny, seed 4: is in quality.json already" in again.stderr
    assert read_rows(found) == [row]
