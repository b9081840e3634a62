"""A run's folder: whose it is, and that two trainings never share one."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from digits import recipe

from regard.errors import SettingsError, UserError
from regard.settings import Settings
from regard.training import run as run_module
from regard.training.run import open_run, setting_differences, with_absolute_paths


def test_a_new_folder_gets_the_settings_and_a_second_opening_finds_the_same(tmp_path, corpus):
    settings = recipe(corpus)
    for _ in range(2):
        with open_run(tmp_path / "deep" / "run", settings) as run:
            assert run.settings.read_text() == settings.to_toml()


def prepared_run(folder, settings):
    """Open a run's folder and leave it as if its data were prepared."""
    with open_run(folder, settings) as run:
        run.prepared.parent.mkdir(parents=True, exist_ok=True)
        run.prepared.touch()


def test_every_setting_that_differs_is_named_with_both_values(tmp_path, corpus):
    prepared_run(tmp_path, recipe(corpus))
    other = recipe(corpus, warmup=11, clip_norm=0.5, average="best")
    with pytest.raises(UserError) as error, open_run(tmp_path, other):
        pass
    told = str(error.value)
    assert "training.warmup: was 10, now 11" in told
    assert "training.clip_norm: was unset, now 0.5" in told
    assert 'training.average: was "last", now "best"' in told
    assert len(told.splitlines()) == 4
    assert "another --out" in told


def test_before_anything_is_prepared_settings_may_be_corrected(tmp_path, corpus):
    for settings in (recipe(corpus), recipe(corpus, warmup=11)):
        with open_run(tmp_path, settings) as run:
            assert run.settings.read_text() == settings.to_toml()


def test_settings_do_not_differ_from_themselves_read_again():
    assert setting_differences(Settings(), Settings()) == []


def test_relative_paths_are_made_absolute_so_that_they_mean_the_same_later(tmp_path, corpus, monkeypatch):
    monkeypatch.chdir(corpus)
    settings = with_absolute_paths(recipe(Path()))
    assert settings.data.train[0].source == corpus / "train.src"
    assert settings == recipe(corpus)


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path, corpus):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(UserError, match="not empty, and not a run's folder"), open_run(tmp_path, recipe(corpus)):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_folder_whose_first_process_was_killed_at_once_can_be_used(tmp_path, corpus):
    (tmp_path / ".lock").touch()
    (tmp_path / ".settings.toml.writing").write_text("[mod")
    with open_run(tmp_path, recipe(corpus)) as run:
        assert run.settings.exists()


def test_a_folder_that_can_t_be_made_is_the_users_mistake(tmp_path, corpus):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="can't be made"), open_run(tmp_path / "file" / "run", recipe(corpus)):
        pass


def test_settings_of_a_run_that_are_no_toml_are_named(tmp_path, corpus):
    prepared_run(tmp_path, recipe(corpus))
    (tmp_path / "settings.toml").write_text("[model\n")
    with pytest.raises(SettingsError, match="not valid TOML"), open_run(tmp_path, recipe(corpus)):
        pass


def test_a_second_process_is_refused_while_the_first_is_there(tmp_path, corpus):
    settings = recipe(corpus)
    with open_run(tmp_path, settings):
        code = f"import fcntl; fcntl.flock(open({str(tmp_path / '.lock')!r}), fcntl.LOCK_EX | fcntl.LOCK_NB)"
        refused = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
        assert b"BlockingIOError" in refused.stderr
        # The lock belongs to the opened file, so this process is a stranger to itself.
        with pytest.raises(UserError, match="another process is training here"), open_run(tmp_path, settings):
            pass
    with open_run(tmp_path, settings):
        pass


def test_a_disk_without_locks_is_named(tmp_path, corpus, monkeypatch):
    def fail(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(run_module.fcntl, "flock", fail)
    with pytest.raises(UserError, match="can't be locked: No locks available"), open_run(tmp_path, recipe(corpus)):
        pass


def test_whoever_has_patience_waits_for_the_first_to_end(tmp_path, corpus):
    settings = recipe(corpus)
    first = open_run(tmp_path, settings)
    first.__enter__()
    leaves = threading.Timer(0.3, lambda: first.__exit__(None, None, None))
    leaves.start()
    with open_run(tmp_path, settings, patience=60):  # no measure of speed: only so that a failing test ends
        assert leaves.finished.is_set()
