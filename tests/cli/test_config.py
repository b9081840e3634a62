"""`regard config`: list, explain, show."""

import os
import pty
import subprocess
import tomllib
from pathlib import Path

import pytest

from regard.presets import PRESETS
from regard.settings import list_settings, preset, read_recipe

from .running import REGARD, Regard


@pytest.mark.parametrize("arguments", [["config"], ["config", "list"]])
def test_every_setting_and_preset_is_listed_a_line_each(regard: Regard, arguments: list[str]) -> None:
    ended = regard(*arguments)
    assert ended.code == 0
    settings, presets = (part.split("\n") for part in ended.out.rstrip().split("\n\n"))
    assert settings[0] == "setting\tdefault\tmeaning"
    assert [line.split("\t")[0] for line in settings[1:]] == [name for name, _ in list_settings()]
    assert [line.split("\t")[0] for line in presets[1:]] == list(PRESETS)
    assert all(line.count("\t") == 2 for line in settings)
    assert "training.warmup\t4,000\tSteps of rising learning rate (§5.3)." in settings


def test_in_a_terminal_the_list_is_a_table_that_fits() -> None:
    reader, writer = pty.openpty()
    environment = {**os.environ, "COLUMNS": "80", "TERM": "xterm", "NO_COLOR": "1"}
    with subprocess.Popen([REGARD, "config", "explain", "search"], stdout=writer, env=environment) as process:
        os.close(writer)
        shown = b""
        try:
            while block := os.read(reader, 1 << 16):
                shown += block
        except OSError:  # how a terminal says that nobody writes to it any more
            pass
        assert process.wait() == 0
    os.close(reader)
    lines = shown.decode().replace("\x1b[1m", "").replace("\x1b[0m", "").split("\r\n")
    assert all(len(line.rstrip()) <= 80 for line in lines)
    assert lines[0].split() == ["setting", "default", "meaning"]
    assert lines[1].startswith("search.beam            4        Hypotheses kept")


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("training.warmup", ["training.warmup = 4,000", "Steps of rising", "a whole number, at least 1"]),
        ("model.d_k", ["model.d_k = unset", "a whole number, or unset, at least 1, at most 65,536"]),
        ("model.norm", ["model.norm = post", "one of 'post', 'pre'"]),
        ("model.dropout", ["a number, at least 0, below 1"]),
        ("model.attention_bias", ["= false", "true or false"]),
        ("data.train", ["data.train = none", "a list of tables", "pairs   Tab-separated"]),
        ("data.vocabulary", ["a file, or unset"]),
        ("data.source_language", ["data.source_language = unset", "a text"]),
        ("search", ["search.beam\t4", "search.length_penalty\t0.6", "search.extra_length\t50"]),
        ("paper-big", ["the paper's big model", "model.d_model = 1,024", "training.steps = 300,000"]),
    ],
)
def test_a_setting_a_section_or_a_preset_is_explained(regard: Regard, key: str, told: list[str]) -> None:
    ended = regard("config", "explain", key)
    assert ended.code == 0
    for words in told:
        assert words in ended.out


def test_every_setting_can_be_explained(regard: Regard) -> None:
    for name, field in list_settings():
        assert str(field.description) in regard("config", "explain", name).out


@pytest.mark.parametrize(
    ("key", "meant"),
    [("trainin.warmup", "training.warmup"), ("warmup", "training.warmup"), ("paper-bigg", "paper-big")],
)
def test_an_unknown_key_is_answered_with_the_closest(regard: Regard, key: str, meant: str) -> None:
    ended = regard("config", "explain", key)
    assert ended.code == 2
    assert f"{key!r}. Did you mean {meant!r}?" in ended.err


def test_show_prints_settings_that_read_back(regard: Regard, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('preset = "tiny"\n[training]\nwarmup = 7\n[[data.train]]\nsource = "a"\ntarget = "b"\n')
    ended = regard("config", "show", recipe, "--set", "training.steps=9")
    shown = tomllib.loads(ended.out)
    assert (shown["training"]["warmup"], shown["training"]["steps"]) == (7, 9)
    (tmp_path / "again.toml").write_text(ended.out)
    assert read_recipe(tmp_path / "again.toml") == read_recipe(recipe, ["training.steps=9"])
    assert regard("config", "show", "paper-big").out == preset("paper-big").to_toml()


def test_mistakes_in_a_recipe_are_told_all_at_once(regard: Regard, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('preset = "tinny"\n[trainning]\nsteps = 1\n[model]\nd_modle = 3\nheads = "x"\n')
    ended = regard("config", "show", recipe, "--set", "nonsense", "--set", "model.dropout=2")
    assert ended.code == 2
    assert f"{recipe}: 6 mistakes" in ended.err
    for words in ("'tiny'", "'training'", "'d_model'", "model.heads", "override 'nonsense'", "model.dropout"):
        assert words in ended.err


def test_what_is_no_recipe_is_said(regard: Regard, tmp_path: Path) -> None:
    (tmp_path / "binary.toml").write_bytes(bytes(range(256)))
    for recipe, told in (
        (tmp_path / "binary.toml", "not valid TOML"),
        (tmp_path, "can't be read"),
        ("tinny", "no such file, and no preset. Did you mean 'tiny'?"),
    ):
        ended = regard("config", "show", recipe)
        assert ended.code == 2
        assert told in ended.err
