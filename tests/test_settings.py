"""Recipes: every mistake at once with a suggestion, overrides, presets, paths, and TOML that comes back as it was."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from regard.errors import SettingsError, UserError
from regard.settings import (
    Corpus,
    ModelSettings,
    Settings,
    TrainingSettings,
    find_setting,
    list_settings,
    parse_override,
    preset,
    read_recipe,
    resolve,
)


def problems_of(values: dict, overrides: list[str] | None = None) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as caught:
        resolve(values, overrides or [])
    return caught.value.problems


def write(folder: Path, text: str, name: str = "recipe.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


# ---- mistakes --------------------------------------------------------------------------------------------------------


def test_all_mistakes_of_a_recipe_and_its_overrides_are_reported_at_once(tmp_path):
    path = write(
        tmp_path,
        """
        [model]
        haeds = 8
        dropout = 1.5
        norm = "per"
        [training]
        warmup = 0
        [serch]
        beam = 4
        """,
    )
    with pytest.raises(SettingsError) as caught:
        read_recipe(path, ["training.steps=many", "nonsense"])
    error = caught.value
    assert error.origin == str(path)
    assert str(error).startswith(f"{path}: 7 mistakes\n")
    for part in (
        "model.haeds: no such setting. Did you mean 'heads'?",
        "model.dropout = 1.5: input should be less than 1",
        "model.norm = 'per': input should be 'post' or 'pre'",
        "training.warmup = 0: input should be greater than or equal to 1",
        "training.steps = 'many': input should be a valid integer",
        "serch: no such setting. Did you mean 'search'?",
        "override 'nonsense': expected section.key=value",
    ):
        assert any(problem.startswith(part) for problem in error.problems), part


@pytest.mark.parametrize(
    ("values", "hint"),
    [
        ({"model": {"d_modle": 1}}, "Did you mean 'd_model'?"),
        ({"warmup": 1}, "Did you mean 'training.warmup'?"),
        ({"model": {"label_smoothing": 0.1}}, "Did you mean 'training.label_smoothing'?"),
        ({"training": {"beam": 1}}, "Did you mean 'search.beam'?"),  # not 'beta2', which only looks like it
        ({"search": {"xyzzy": 1}}, "Known here: beam, length_penalty, extra_length."),
        (
            {"data": {"train": [{"sorce": "a", "pairs": "b"}]}},
            "data.train.0.sorce: no such setting. Did you mean 'source'?",
        ),
    ],
)
def test_an_unknown_setting_comes_with_a_suggestion(values, hint):
    [problem] = problems_of(values)
    assert hint in problem


@pytest.mark.parametrize(
    "corpus",
    [{}, {"source": "a"}, {"target": "b"}, {"source": "a", "target": "b", "pairs": "c"}, {"source": "a", "pairs": "c"}],
)
def test_a_corpus_is_two_files_or_one_of_pairs(corpus):
    [problem] = problems_of({"data": {"train": [corpus]}})
    assert problem.startswith("data.train.0: ")
    assert "source" in problem


def test_a_corpus_in_single_brackets_is_told_of_double_ones():
    [problem] = problems_of({"data": {"train": {"pairs": "a.tsv"}}})
    assert problem == "data.train: a corpus is one of a list; write [[data.train]] instead of [data.train]"


def test_a_section_that_is_a_value_is_told_how_to_write_one():
    assert problems_of({"model": 3}) == ("model = 3: is a section; write [model] and its settings below it",)


@pytest.mark.parametrize("weight", [0, -1, 1001, float("nan")])
def test_a_corpus_weight_is_positive_and_bounded(weight):
    [problem] = problems_of({"data": {"valid": [{"pairs": "a.tsv", "weight": weight}]}})
    assert problem.startswith("data.valid.0.weight = ")


def test_widths_that_do_not_divide_need_head_widths_of_their_own():
    [problem] = problems_of({"model": {"d_model": 100, "heads": 3}})
    assert problem == "model: d_model (100) is not a multiple of heads (3); set d_k and d_v"
    assert ModelSettings(d_model=100, heads=3, d_k=30, d_v=20).key_width == 30


@pytest.mark.parametrize("key", ["model.dropout", "search.length_penalty", "data.max_ratio", "training.epsilon"])
def test_not_a_number_is_no_number(key):
    [problem] = problems_of({}, [f"{key}=nan"])
    assert problem.startswith(f"{key} = nan: ")


def test_a_recipe_that_is_missing_or_a_folder_is_a_users_mistake(tmp_path):
    for path in (tmp_path / "none.toml", tmp_path):
        with pytest.raises(UserError, match="can't be read"):
            read_recipe(path)


@pytest.mark.parametrize("content", [b"[model\n", b"a = \xff", b"x = 1\nx = 2", b"a = " + b"[" * 5000])
def test_a_file_that_is_no_toml_is_named(tmp_path, content):
    path = tmp_path / "recipe.toml"
    path.write_bytes(content)
    with pytest.raises(SettingsError, match="not valid TOML") as caught:
        read_recipe(path)
    assert caught.value.origin == str(path)


def test_a_recipe_with_any_number_of_mistakes_names_the_first_and_counts_the_rest():
    problems = problems_of({f"name{number}": 1 for number in range(100_000)})
    assert len(problems) == 51
    assert problems[-1] == "and 99,950 more"


def test_what_is_given_for_a_setting_is_shown_in_part_if_it_is_long_or_deep():
    deep = value = {}
    for _ in range(100_000):
        value["a"] = value = {}
    for wrong in (deep, "x" * 1_000_000, 1 << 1_000_000, [[]] * 1_000_000):
        [problem] = problems_of({"model": {"d_model": wrong}})
        assert problem.startswith("model.d_model = ")
        assert len(problem) < 1000


NUMBERS = [name for name, field in list_settings() if field.annotation in (int, int | None)]


@pytest.mark.parametrize("name", NUMBERS)
def test_every_whole_number_has_a_limit(name):
    [problem] = problems_of({}, [f"{name}=9223372036854775808"])
    assert problem.startswith(f"{name} = 9223372036854775808: input should be less than or equal to ")


@pytest.mark.parametrize("value", ["9" * 5000, "0x" + "f" * 5000, "[" * 5000, ""])
def test_an_override_may_be_anything(value):
    [problem] = problems_of({}, [f"training.warmup={value}"])
    assert problem.startswith("training.warmup = ")


def test_an_override_of_very_many_parts_is_refused():
    key = ".".join("a" * 5000)
    first, second = problems_of({}, [f"{key}=1", f"{key}=2"])
    assert first == second.replace("=2", "=1")
    assert "has two parts" in first


@pytest.mark.parametrize("name", ["a\0b", "caf\udce9"])
def test_a_file_name_that_toml_can_not_hold_is_refused(name):
    corpus = {"source": name, "target": "fine"}
    problems = problems_of({"data": {"train": [corpus], "valid": [{"pairs": name}], "vocabulary": name}})
    assert [problem.partition(" = ")[0] for problem in problems] == ["data.train", "data.valid", "data.vocabulary"]
    assert "rename the file" in problems[0]


# ---- presets and overrides -------------------------------------------------------------------------------------------


def test_an_unknown_preset_comes_with_a_suggestion_and_the_known_ones():
    [problem] = problems_of({"preset": "paper-bas"})
    assert "no preset 'paper-bas'. Did you mean 'paper-base'?" in problem
    assert "table3-big" in problem


def test_an_unknown_preset_hides_neither_the_file_nor_its_other_mistakes(tmp_path):
    path = write(tmp_path, 'preset = "tinny"\n[model]\nhaeds = 2\n')
    with pytest.raises(SettingsError) as caught:
        read_recipe(path)
    assert caught.value.origin == str(path)
    assert len(caught.value.problems) == 2


def test_a_preset_that_is_no_word_is_refused():
    assert "no preset 3" in problems_of({"preset": 3})[0]


def test_a_recipe_lies_over_its_preset_and_overrides_over_both(tmp_path):
    path = write(tmp_path, 'preset = "tiny"\n[model]\nheads = 2\n[training]\nwarmup = 100\n')
    settings = read_recipe(path, ["training.warmup=7", "search.beam = 1"])
    assert (settings.model.d_model, settings.model.heads) == (128, 2)  # the preset's, the recipe's
    assert (settings.training.warmup, settings.search.beam) == (7, 1)
    assert settings.training.learning_rate == preset("tiny").training.learning_rate


def test_the_last_of_two_overrides_wins():
    assert resolve({}, ["training.seed=1", "training.seed=2"]).training.seed == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("training.warmup=8000", {"training": {"warmup": 8000}}),
        (" training . warmup = 8_000 ", {"training": {"warmup": 8000}}),
        ("model.dropout=1e-1", {"model": {"dropout": 0.1}}),
        ("model.attention_bias=true", {"model": {"attention_bias": True}}),
        ("model.norm=pre", {"model": {"norm": "pre"}}),
        ('model.norm="pre"', {"model": {"norm": "pre"}}),
        ("data.source_language=", {"data": {"source_language": ""}}),
        ("data.vocabulary=/a=b/c.spm", {"data": {"vocabulary": "/a=b/c.spm"}}),
        ("data.train=[{pairs = 'a.tsv'}]", {"data": {"train": [{"pairs": "a.tsv"}]}}),
    ],
)
def test_an_override_is_read_as_toml_or_else_as_text(text, expected):
    assert parse_override(text) == expected


@pytest.mark.parametrize("text", ["", "training.warmup", "=3", ".warmup=3", "training.=3", "a..b=3"])
def test_an_override_without_key_or_value_says_what_was_expected(text):
    with pytest.raises(UserError, match=r"expected section\.key=value"):
        parse_override(text)


def test_settings_cannot_be_changed_afterwards():
    with pytest.raises(ValidationError):
        Settings().model.heads = 3


# ---- paths -----------------------------------------------------------------------------------------------------------


def test_corpora_are_found_from_the_recipes_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/home/someone")
    folder = tmp_path / "recipes"
    folder.mkdir()
    path = write(
        folder,
        """
        [data]
        vocabulary = "../v.spm"
        [[data.train]]
        source = "train.en"
        target = "/absolute/train.de"
        [[data.valid]]
        pairs = "~/valid.tsv"
        """,
    )
    data = read_recipe(path).data
    assert data.train[0].source == folder / "train.en"
    assert data.train[0].target == Path("/absolute/train.de")
    assert data.train[0].files == (folder / "train.en", Path("/absolute/train.de"))
    assert data.valid[0].files == (Path("/home/someone/valid.tsv"),)
    assert data.vocabulary == folder / "../v.spm"


def test_paths_are_absolute_even_if_the_recipe_was_named_relatively(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, '[[data.train]]\npairs = "a.tsv"\n')
    assert read_recipe(Path("recipe.toml")).data.train[0].pairs == tmp_path / "a.tsv"


def test_the_home_of_an_unknown_user_is_an_ordinary_name(tmp_path):
    path = write(tmp_path, '[data]\nvocabulary = "~no-such-user/v.spm"\n')
    assert read_recipe(path).data.vocabulary == tmp_path / "~no-such-user/v.spm"


def test_a_byte_order_mark_before_a_recipe_is_dropped(tmp_path):
    assert read_recipe(write(tmp_path, "\ufeff[training]\nwarmup = 7\n")).training.warmup == 7


# ---- values that follow from others ----------------------------------------------------------------------------------


def test_head_widths_follow_from_the_model_unless_they_are_said():
    assert ModelSettings().key_width == ModelSettings().value_width == ModelSettings().head_width == 64
    assert ModelSettings(d_k=16).key_width == 16
    assert ModelSettings(d_k=16).value_width == 64


@pytest.mark.parametrize(
    ("batch", "micro", "pieces"),
    [(25_000, None, 7), (8192, None, 2), (4096, None, 2), (100, None, 2), (1, None, 1), (100, 100, 1), (100, 33, 4)],
)
def test_a_step_is_cut_into_pieces_of_bounded_size(batch, micro, pieces):
    training = TrainingSettings(batch_tokens=batch, micro_batch_tokens=micro)
    assert training.pieces == pieces


@given(st.integers(1, 100_000), st.none() | st.integers(1, 100_000))
def test_pieces_hold_the_whole_batch_and_none_is_larger_than_wanted(batch, micro):
    training = TrainingSettings(batch_tokens=batch, micro_batch_tokens=micro)
    assert training.pieces * training.piece_tokens >= batch
    assert training.piece_tokens <= (micro or 4096)
    assert (training.pieces - 1) * training.piece_tokens < batch


# ---- TOML out and in -------------------------------------------------------------------------------------------------

names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8)
paths = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/~"), min_size=1, max_size=12)
corpora = st.one_of(
    st.fixed_dictionaries({"pairs": paths}, optional={"weight": st.floats(0.001, 1000)}),
    st.fixed_dictionaries({"source": paths, "target": paths}, optional={"weight": st.floats(0.001, 1000)}),
)
recipes = st.fixed_dictionaries(
    {},
    optional={
        "preset": st.sampled_from(["paper-base", "tiny", "table3-heads-32", "demo"]),
        "model": st.fixed_dictionaries(
            {},
            optional={
                "d_ff": st.integers(1, 10**6),
                "d_k": st.integers(1, 512),
                "dropout": st.floats(0, 0.99),
                "norm": st.sampled_from(["post", "pre"]),
                "attention_bias": st.booleans(),
                "neighbours": st.integers(2, 99),
            },
        ),
        "data": st.fixed_dictionaries(
            {},
            optional={
                "source_language": names,
                "vocabulary": paths,
                "train": st.lists(corpora, max_size=3),
                "max_ratio": st.floats(1, 100),
            },
        ),
        "training": st.fixed_dictionaries(
            {},
            optional={
                "learning_rate": st.floats(1e-300, 10),
                "epsilon": st.floats(1e-300, 1),
                "clip_norm": st.floats(0.1, 10),
                "patience": st.integers(1, 10),
                "seed": st.integers(0, 2**62),
            },
        ),
        "search": st.fixed_dictionaries({}, optional={"length_penalty": st.floats(0, 5)}),
    },
)


@given(recipes)
def test_settings_written_as_toml_are_read_back_the_same(values):
    settings = resolve(values)
    assert resolve(tomllib.loads(settings.to_toml())) == settings


def test_written_settings_do_not_depend_on_the_preset_they_came_from():
    written = tomllib.loads(preset("tiny").to_toml())
    assert "preset" not in written
    assert written["model"]["d_model"] == 128
    assert written["search"]["beam"] == 4  # defaults are written as well: a later default changes nothing


# ---- explaining ------------------------------------------------------------------------------------------------------


def test_every_setting_is_listed_once_with_a_text_that_is_a_sentence():
    listed = list(list_settings())
    assert len(dict(listed)) == len(listed) > 40
    assert [key.partition(".")[0] for key, _ in listed] == sorted(
        (key.partition(".")[0] for key, _ in listed), key=["model", "data", "training", "search"].index
    )
    for key, field in listed:
        assert field.description, key
        assert field.description.endswith("."), key
    assert all(field.description for field in Corpus.model_fields.values())


def test_a_setting_is_found_by_its_name():
    assert find_setting("training.warmup").default == 4000


@pytest.mark.parametrize(
    ("key", "hint"), [("warmup", "'training.warmup'"), ("training.warmpu", "'training.warmup'"), ("xyzzy", "")]
)
def test_an_unknown_name_is_answered_with_a_suggestion(key, hint):
    with pytest.raises(UserError, match=f"no setting '{key}'") as caught:
        find_setting(key)
    assert ("Did you mean" in str(caught.value)) == bool(hint)
    assert hint in str(caught.value)


def test_settings_do_not_load_torch():
    code = "import sys, regard.settings; print('torch' in sys.modules)"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert printed.stdout.strip() == "False"
