"""Messages say what, where and what to do; every exception of ours has one ancestor."""

from pathlib import Path

import pytest

from regard import errors
from regard.errors import (
    CorpusError,
    FileFormatError,
    MissingExtraError,
    RegardError,
    SettingsError,
    TrainingError,
    UserError,
    did_you_mean,
)


def test_every_exception_here_derives_from_one_class():
    ours = [thing for thing in vars(errors).values() if isinstance(thing, type) and issubclass(thing, Exception)]
    assert len(ours) >= 7
    assert all(issubclass(one, RegardError) for one in ours)


@pytest.mark.parametrize("error", [SettingsError, CorpusError, FileFormatError, MissingExtraError])
def test_mistakes_in_what_the_user_gave_are_user_errors(error):
    assert issubclass(error, UserError)


def test_a_training_that_fails_is_not_the_users_mistake():
    assert not issubclass(TrainingError, UserError)


def test_a_settings_error_lists_every_problem_and_counts_them():
    error = SettingsError("recipe.toml", ["model.heads: too many", "training.stepz: no such setting."])
    assert str(error) == "recipe.toml: 2 mistakes\n  model.heads: too many\n  training.stepz: no such setting."
    assert error.origin == "recipe.toml"
    assert error.problems == ("model.heads: too many", "training.stepz: no such setting.")


def test_one_mistake_is_counted_in_the_singular():
    assert str(SettingsError("here", ["wrong"])).startswith("here: 1 mistake\n")


def test_a_corpus_error_names_file_and_line():
    error = CorpusError(Path("train.en"), 12_345, "not UTF-8")
    assert str(error) == "train.en, line 12,345: not UTF-8"
    assert (error.path, error.line) == (Path("train.en"), 12_345)


def test_a_corpus_error_about_the_whole_file_names_no_line():
    assert str(CorpusError("train.en", None, "is empty")) == "train.en: is empty"


def test_a_file_format_error_names_the_file():
    error = FileFormatError("run/model", "no weights")
    assert str(error) == "run/model: no weights"
    assert error.path == Path("run/model")


def test_a_missing_extra_says_what_to_type():
    error = MissingExtraError("tensorboard", "tensorboard", "the TensorBoard log")
    assert str(error).endswith("pip install 'regard[tensorboard]'")
    assert "the TensorBoard log needs tensorboard" in str(error)


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("warmpu", " Did you mean 'warmup'?"),
        ("warmup", " Did you mean 'warmup'?"),
        ("dmodel", " Did you mean 'd_model'?"),
        ("zzzzzz", ""),
        ("", ""),
    ],
)
def test_a_close_word_is_suggested_and_a_far_one_is_not(word, hint):
    assert did_you_mean(word, ["warmup", "steps", "d_model"]) == hint


def test_nothing_known_suggests_nothing():
    assert did_you_mean("warmup", []) == ""
