"""`regard train`: both of its forms, what it chooses by itself and says, and what it refuses."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from regard.presets import PRESETS

from .running import TINY, Ended, Regard


@pytest.fixture
def settings_of(regard: Regard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that runs `regard train` without the training, and returns the settings and how it ended."""
    seen: list[Any] = []

    def train(settings: Any, out: Path, **_: Any) -> Path:
        seen.append(settings)
        return out / "model"

    monkeypatch.setattr("regard.training.loop.train", train)

    def run(*arguments: object) -> tuple[Any, Ended]:
        ended = regard("train", *arguments, "--out", tmp_path / "run")
        return (seen.pop() if ended.code == 0 else None), ended

    return run


def test_two_text_files_are_enough(run: Path) -> None:
    settings = tomllib.loads((run / "settings.toml").read_text())
    assert (settings["data"]["source_language"], settings["data"]["target_language"]) == ("dig", "let")
    assert (run / "model" / "README.md").exists()
    assert (run / "log.jsonl").exists()


def test_the_same_command_again_finds_the_work_done(regard: Regard, run: Path, corpus: Path) -> None:
    before = (run / "model" / "weights.safetensors").read_bytes()
    files = [corpus / name for name in ("train.dig", "train.let", "valid.dig", "valid.let")]
    settings = ("training.steps=120", "training.checkpoint_steps=60", "search.extra_length=5")
    same = [part for one in (*settings, "training.average_checkpoints=1") for part in ("--set", one)]
    again = ("train", "--train", *files[:2], "--valid", *files[2:], "--out", run)
    assert regard(*again, *TINY, *same).code == 0
    assert (run / "model" / "weights.safetensors").read_bytes() == before
    ended = regard(*again, *TINY, *same, "--set", "training.steps=130")
    assert ended.code == 2
    assert "training.steps: was 120, now 130" in ended.err


def test_a_preset_is_chosen_by_the_corpus_and_said(settings_of: Any, corpus: Path) -> None:
    settings, ended = settings_of("--train", corpus / "train.dig", corpus / "train.let")
    assert f"600 training pairs: preset 'tiny' ({PRESETS['tiny'].purpose}); --preset chooses another" in ended.err
    assert settings.model.d_model == PRESETS["tiny"].values["model"]["d_model"]
    assert "no validation text (--valid)" in ended.err
    settings, ended = settings_of("--train", corpus / "train.dig", corpus / "train.let", "--preset", "paper-big")
    assert settings.model.d_model == 1024
    assert "training pairs: preset" not in ended.err


def test_the_size_of_the_corpus_counts(settings_of: Any, corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.cli.corpora.read_pairs", lambda corpus: iter(range(100_000)))
    _, ended = settings_of("--train", corpus / "train.dig", corpus / "train.let")
    assert "100,000 training pairs: preset 'small'" in ended.err


def test_languages_come_from_the_endings_or_are_told(settings_of: Any, tmp_path: Path) -> None:
    for name in ("a.en", "a.de", "a.txt", "b.txt"):
        (tmp_path / name).write_text("one two\nthree\n")
    settings, ended = settings_of("--train", tmp_path / "a.en", tmp_path / "a.de")
    assert (settings.data.source_language, settings.data.target_language) == ("en", "de")
    assert "languages unknown" not in ended.err
    settings, _ = settings_of("--train", tmp_path / "a.en", tmp_path / "a.de", "--from", "fr")
    assert (settings.data.source_language, settings.data.target_language) == ("fr", "de")
    settings, ended = settings_of("--train", tmp_path / "a.txt", tmp_path / "b.txt")
    assert settings.data.source_language == ""
    assert "languages unknown: the files' endings do not tell them; --from and --to name them" in ended.err


def test_tab_separated_pairs_do_as_well(settings_of: Any, tmp_path: Path) -> None:
    table = tmp_path / "memory.tsv"
    table.write_text("one\teins\ntwo\tzwei\n")
    settings, ended = settings_of("--train-pairs", table, "--valid-pairs", table, "--from", "en", "--to", "de")
    assert "2 training pairs" in ended.err
    assert settings.data.train[0].pairs == table
    assert settings.data.valid[0].pairs == table


def test_a_recipe_takes_overrides_and_corpora_from_the_command_line(settings_of: Any, tmp_path: Path) -> None:
    for name in ("a.en", "a.de", "b.fr", "b.it"):
        (tmp_path / name).write_text("one\n")
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        'preset = "tiny"\n[data]\nsource_language = "eng"\n[[data.train]]\nsource="a.en"\ntarget="a.de"\n'
    )
    settings, _ = settings_of(recipe, "--set", "training.warmup=8000")
    assert settings.training.warmup == 8000
    assert settings.data.train[0].source == tmp_path / "a.en"
    settings, _ = settings_of(recipe, "--train", tmp_path / "b.fr", tmp_path / "b.it", "--to", "xx")
    assert settings.data.train[0].source == tmp_path / "b.fr"
    assert (settings.data.source_language, settings.data.target_language) == ("fr", "xx")
    assert settings.data.valid == ()
    (tmp_path / "more.txt").write_text("one\n")
    settings, _ = settings_of(recipe, "--train", tmp_path / "more.txt", tmp_path / "a.de")
    assert settings.data.source_language == "eng"  # where files tell nothing, the recipe does


@pytest.fixture
def pair_recipe(tmp_path: Path) -> Path:
    """A recipe from English to German with validation text, beside files in other languages."""
    for name in ("a.en", "a.de", "a.fr", "v.en", "v.de", "v.fr"):
        (tmp_path / name).write_text("one\n")
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        """preset = "tiny"
        data.source_language = "en"
        data.target_language = "de"
        data.train = [{source = "a.en", target = "a.de"}]
        data.valid = [{source = "v.en", target = "v.de"}]
        """
    )
    return recipe


@pytest.mark.parametrize(("source", "target"), [("de", "en"), ("en", "fr"), ("fr", "de")])
def test_a_recipe_serves_another_pair_of_languages(
    settings_of: Any, pair_recipe: Path, source: str, target: str
) -> None:
    train, valid = ([pair_recipe.with_name(f"{part}.{language}") for language in (source, target)] for part in "av")
    settings, ended = settings_of(pair_recipe, "--train", *train, "--valid", *valid)
    assert (settings.data.source_language, settings.data.target_language) == (source, target)
    assert [corpus.files for corpus in (*settings.data.train, *settings.data.valid)] == [tuple(train), tuple(valid)]
    assert f"languages: {source} → {target}; the recipe's are en → de" in ended.err
    plain, _ = settings_of(pair_recipe)
    for section in ("model", "training", "search"):
        assert getattr(settings, section) == getattr(plain, section)


def test_what_is_said_about_languages_counts_more_than_endings(settings_of: Any, pair_recipe: Path) -> None:
    files = (pair_recipe.with_name("a.fr"), pair_recipe.with_name("a.en"))
    valid = ("--valid", *(pair_recipe.with_name(name) for name in ("v.fr", "v.en")))
    settings, _ = settings_of(pair_recipe, "--train", *files, *valid, "--set", "data.source_language=it")
    assert (settings.data.source_language, settings.data.target_language) == ("it", "en")
    settings, ended = settings_of(pair_recipe, "--train", *files, "--from", "en", "--to", "de")
    assert (settings.data.source_language, settings.data.target_language) == ("en", "de")
    assert "languages:" not in ended.err


def test_validation_text_of_other_languages_is_refused(settings_of: Any, pair_recipe: Path) -> None:
    _, ended = settings_of(pair_recipe, "--train", pair_recipe.with_name("a.de"), pair_recipe.with_name("a.en"))
    assert ended.code == 2
    assert "the recipe's validation text is en → de, and this training de → en: give --valid" in ended.err
    settings, _ = settings_of(pair_recipe, "--train", *(pair_recipe.with_name(name) for name in ("a.en", "a.de")))
    assert settings.data.valid[0].source == pair_recipe.with_name("v.en")


@pytest.mark.parametrize("pairs", [1, 3])
def test_a_handful_of_pairs_can_be_trained_on(regard: Regard, tmp_path: Path, pairs: int) -> None:
    for name, lines in {"a.en": ["one two", "three", "four"], "a.de": ["eins zwei", "drei", "vier"]}.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines[:pairs]))
    files = (tmp_path / "a.en", tmp_path / "a.de")
    out = tmp_path / "run"
    ended = regard("train", "--train", *files, "--out", out, *TINY, "--set", "training.steps=2")
    assert ended.code == 0
    assert f"regard translate {out / 'model'}" in ended.err
    assert len(regard("translate", out, *files[:1], "--extra-length", "0").lines) == pairs


def test_mistakes_are_told(regard: Regard, tmp_path: Path) -> None:
    for name, data in {
        **{"two.en": b"a\nb\n", "two.de": b"a\nb\n", "one.de": b"a\n", "empty.en": b"", "empty.de": b""},
        **{
            "bad.de": b"a\n\xff\n",
            "nul.de": b"a\n\0\n",
            "blank.en": b" \n\n",
            "recipe.toml": b"",
            "flat.tsv": b"a\tb\nc\n",
        },
    }.items():
        (tmp_path / name).write_bytes(data)
    two = tmp_path / "two.en"
    for arguments, told in (
        ([], "nothing to train on: give --train SOURCE TARGET, --train-pairs FILE, or a recipe"),
        ([tmp_path / "recipe.toml"], "data.train: no training corpus"),
        ([tmp_path / "recipe.toml", "--preset", "tiny"], "--preset goes without a recipe"),
        ([tmp_path / "missing.toml"], "missing.toml: can't be read: No such file"),
        (["--train", two, tmp_path / "missing"], f"{tmp_path / 'missing'}: can't be read: No such file"),
        (["--train", two, tmp_path], f"{tmp_path}: can't be read: Is a directory"),
        (["--train", two, tmp_path / "one.de"], f"{tmp_path / 'one.de'}: ends after 1 line, but {two} has 2"),
        (["--train", two, tmp_path / "bad.de"], f"{tmp_path / 'bad.de'}, line 2: not UTF-8 (byte 0xff)"),
        (["--train", two, tmp_path / "nul.de"], f"{tmp_path / 'nul.de'}, line 2: contains a NUL character"),
        (["--train", tmp_path / "empty.en", tmp_path / "empty.de"], "is empty; there is nothing to train on"),
        (["--train", tmp_path / "blank.en", tmp_path / "two.de"], "no pair is left to train on"),
        (["--train-pairs", tmp_path / "flat.tsv"], "line 2: no tab"),
        (["--train", two, two, "--preset", "tinny"], "no preset 'tinny'. Did you mean 'tiny'?"),
        (["--train", two, two, "--set", "steps"], "override 'steps': expected section.key=value"),
        (["--train", two, two, "--set", "steps=3"], "Did you mean 'training.steps'?"),
        (["--train", two, two, "--set", "training.steps=many"], "training.steps = 'many'"),
        (["--train", two, two, "--valid", two, tmp_path / "one.de"], "ends after 1 line"),
        (["--train", two, two, "--out", tmp_path], "not empty, and not a run's folder"),
        (["--train", two, two, "--out", two], f"{two}: can't be made"),
        (["--train", two, two, "--device", "gpu"], "device 'gpu' can't be used"),
    ):
        ended = regard("train", "--out", tmp_path / f"run-{abs(hash(told))}", *arguments)
        assert ended.code == 2, ended.err
        assert told in ended.err


def test_torchrun_and_processes_contradict_each_other(
    regard: Regard, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {"TORCHELASTIC_RUN_ID": "a", "RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2"}
    for name, value in names.items():
        monkeypatch.setenv(name, value)
    files = (corpus / "train.dig", corpus / "train.let")
    ended = regard("train", "--train", *files, "--out", tmp_path / "run", "--processes", "4")
    assert ended.code == 2
    assert "--processes 4 goes without torchrun, which has started 2 already" in ended.err
    assert not (tmp_path / "run").exists()
    ended = regard("evaluate", tmp_path)
    assert ended.code == 2
    assert "'regard evaluate' is for one process; torchrun is for these: train, finetune, translate" in ended.err


@pytest.mark.parametrize("verb", [("train",), ("finetune", "MODEL")])
def test_a_forgotten_second_file_is_told(regard: Regard, verb: tuple[str, ...]) -> None:
    ended = regard(*verb, "--train", "a.en", "--out", "RUN")
    assert ended.code == 2
    assert "--train needs two files, and only '--train a.en' was given" in ended.err
