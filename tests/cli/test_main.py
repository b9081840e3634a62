"""The command itself: help, exit codes, and what it does about pipes, signals and locales."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from regard import __version__

from .running import REGARD, Regard, apart

VERBS = [
    "demo",
    "data",
    "train",
    "finetune",
    "prepare",
    "translate",
    "evaluate",
    "score",
    "inspect",
    "report",
    "quantize",
    "shortlist",
    "paper",
    "config",
    "doctor",
]

# What the project promises to understand; `regard VERB --help` shows an example of each.
FORMS = {
    "demo": [r"regard demo\b", r"--out \S+", r"--write-corpus \S+"],
    "data": [r"regard data list", r"regard data get \S+ --from \S+"],
    "train": [
        r"regard train --train \S+\.en \S+\.de --valid \S+ \S+ --out \S+",
        r"regard train \S+\.toml --out \S+ --set \w+\.\w+=",
    ],
    "finetune": [
        r"regard finetune \S+ --train \S+ \S+ --valid \S+ \S+ --out \S+",
        r"regard finetune \S+ \S+\.toml --out \S+",
    ],
    "prepare": [r"regard prepare \S+\.toml --out \S+"],
    "translate": [r"regard translate \S+ <", r"regard translate \S+ \S+ \S+ -o \S+"],
    "evaluate": [r"regard evaluate \S+ \S+\.en \S+\.de", r"regard evaluate --hypothesis \S+ --reference \S+"],
    "score": [r"regard score \S+ \S+ \S+"],
    "inspect": [r'regard inspect \S+ ".+" --out \S+'],
    "report": [r"regard report \S+"],
    "quantize": [r"regard quantize \S+ --out \S+"],
    "shortlist": [r"regard shortlist \S+", r"regard translate \S+ \S+ --shortlist"],
    "paper": [r"regard paper cost \S+", r"regard paper tables"],
    "config": [r"regard config list", r"regard config explain \S+", r"regard config show \S+"],
    "doctor": [r"regard doctor"],
}


# ---- help ------------------------------------------------------------------------------------------------------------


def test_help_lists_the_verbs_in_the_order_of_a_users_way(regard: Regard) -> None:
    ended = regard("--help")
    commands = ended.out.split("Commands:")[1].split("Examples:")[0]
    assert re.findall(r"^  (\w+) ", commands, re.MULTILINE) == VERBS
    assert "..." not in commands  # no summary is cut
    assert ended.code == 0


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("width", ["80", "120"])
def test_help_of_a_verb_shows_an_example_of_each_form(
    regard: Regard, monkeypatch: pytest.MonkeyPatch, verb: str, width: str
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    text = regard(verb, "--help").out
    examples = text.split("Examples:")[1]
    for form in FORMS[verb]:
        assert re.search(form, examples), form
    assert all(len(line) <= int(width) for line in text.splitlines())
    assert "<" not in text.split("Examples:")[0]  # no <bool>, no <list[Path]>


def test_help_is_coloured_in_a_terminal_only(monkeypatch: pytest.MonkeyPatch, regard: Regard) -> None:
    from regard.cli.help import _colour

    assert "\x1b" not in regard("--help").out
    assert _colour("Options:\n  --set x") == "\x1b[1mOptions:\x1b[0m\n  \x1b[36m--set\x1b[0m x"
    monkeypatch.setenv("NO_COLOR", "1")
    assert _colour("Options:") == "Options:"


@pytest.mark.parametrize("arguments", [["--help"], ["translate", "--help"], ["--version"], ["config", "list"]])
def test_neither_help_nor_settings_import_torch_or_numpy(arguments: list[str]) -> None:
    code = (
        "import sys; from regard.cli.main import main\n"
        f"sys.argv = ['regard', *{arguments!r}]\n"
        "try: main()\n"
        "finally: print(*sorted({'torch', 'numpy', 'rich'} & sys.modules.keys()), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "torch" not in done.stderr
    assert "numpy" not in done.stderr
    if "--help" in arguments:
        assert "rich" not in done.stderr


def test_without_arguments_it_shows_help(regard: Regard) -> None:
    ended = regard()
    assert ended.code == 2
    assert "Commands:" in ended.out + ended.err


def test_version(regard: Regard) -> None:
    assert regard("--version").lines == [f"regard {__version__}"]


def test_python_dash_m_is_the_same_command() -> None:
    done = subprocess.run([sys.executable, "-m", "regard", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"regard {__version__}\n"


# ---- mistakes --------------------------------------------------------------------------------------------------------


def test_a_mistyped_verb_is_answered_with_the_right_one(regard: Regard) -> None:
    ended = regard("translat")
    assert ended.code == 2
    assert "Did you mean 'translate'" in ended.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["translate"], "MODEL"),
        (["translate", "m", "--beam", "many"], "--beam"),
        (["translate", "m", "--beam", "0"], "--beam"),
        (["translate", "m", "--progress", "loud"], "'auto', 'terminal', 'plain', 'json', 'quiet'"),
        (["translate", "m", "--colour"], "--colour"),
        (["train", "--train", "one"], "--train"),
        (["train", "recipe.toml"], "--out"),
        (["config", "explian"], "explain"),
    ],
)
def test_a_wrong_option_is_named_and_ends_with_2(regard: Regard, arguments: list[str], told: str) -> None:
    ended = regard(*arguments)
    assert ended.code == 2
    assert told in ended.err
    assert ended.out == ""


@pytest.mark.parametrize("verb", ["translate", "inspect", "score", "evaluate"])
@pytest.mark.parametrize(
    ("model", "told"),
    [("missing", "no such folder"), ("file", "not a folder"), ("empty", "no model here"), ("run", "checkpoint")],
)
def test_what_is_no_model_is_named(regard: Regard, tmp_path: Path, verb: str, model: str, told: str) -> None:
    (tmp_path / "file").write_text("1\n")
    (tmp_path / "empty").mkdir()
    (tmp_path / "run" / "checkpoints" / "step-00000010").mkdir(parents=True)
    path, text = tmp_path / model, tmp_path / "file"
    rest = {"translate": [text], "inspect": ["a"], "score": [text, text], "evaluate": [text, text]}
    ended = regard(verb, path, *rest[verb])
    assert ended.code == 2
    assert str(path) in ended.err
    assert told in ended.err


@pytest.mark.parametrize("part", ["weights.safetensors", "vocabulary.spm", "settings.toml", "model.json"])
def test_a_damaged_part_of_a_model_is_named(regard: Regard, tmp_path: Path, odd_model: Path, part: str) -> None:
    for file in odd_model.iterdir():
        (tmp_path / file.name).write_bytes(b"\xff garbage" if file.name == part else file.read_bytes())
    ended = regard("translate", tmp_path, stdin="1\n")
    assert ended.code == 2
    assert str(tmp_path / part) in ended.err


@pytest.mark.parametrize("device", ["gpu", "cuda:99", ""])
def test_an_unknown_device_is_named(regard: Regard, odd_model: Path, device: str) -> None:
    ended = regard("translate", odd_model, "--device", device, stdin="1\n")
    assert ended.code == 2
    assert f"device {device!r} can't be used" in ended.err


def test_a_file_error_that_nobody_foresaw_has_no_traceback(
    regard: Regard, odd_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", "somewhere")

    monkeypatch.setattr("regard.translator.load", full)
    ended = regard("translate", odd_model)
    assert (ended.code, ended.err) == (1, "regard: somewhere: No space left on device\n")
    assert regard("translate", odd_model, "x" * 300).code == 2  # a name that is too long is the user's


# ---- the world around ------------------------------------------------------------------------------------------------


def test_a_reader_that_goes_away_ends_it_silently(odd_model: Path, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("1 2\n" * 20_000)
    with subprocess.Popen(
        [REGARD, "translate", odd_model, text, "--window", "100", "--progress", "quiet"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().endswith(b"\n")
        process.stdout.close()
        assert process.wait() == 141
        assert process.stderr.read() == b""


def test_a_table_for_a_reader_that_goes_away_ends_silently() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([REGARD, "config", "list"], stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_said_and_ends_with_1() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([REGARD, "config", "list"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "regard: standard output: can't be written: No space left on device\n"


def test_ctrl_c_ends_a_translation_without_a_traceback(odd_model: Path) -> None:
    with subprocess.Popen(
        # A shell lets what it starts in the background ignore Ctrl-C, and these tests may run there.
        ["env", "--default-signal=INT", REGARD, "translate", odd_model, "--window", "1"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"1\n")
        process.stdin.flush()
        assert process.stdout.readline().endswith(b"\n")  # an answer at once, while more may come
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()


@pytest.mark.parametrize(("stream", "told"), [("stdin", "standard input"), ("stdout", "standard output")])
def test_a_closed_standard_stream_is_said(regard: Regard, odd_model: Path, stream: str, told: str) -> None:
    ended = regard("translate", odd_model, stdin="1\n", without=stream)
    assert ended.code == 2
    assert f"{told} is closed" in ended.err


def test_text_is_utf8_whatever_the_locale() -> None:
    ended = apart("config", "explain", "search.length_penalty", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert "α" in ended.out
    assert ended.code == 0


def test_bytes_that_are_no_text_are_taken_on_the_command_line(regard: Regard, odd_model: Path, tmp_path: Path) -> None:
    ended = regard("inspect", odd_model, os.fsdecode(b"1 \xff"), "--out", tmp_path / "look", "--format", "png")
    assert ended.code == 0
    assert ended.lines[0] == "1 ?"
    ended = regard("translate", os.fsdecode(b"\xff"))
    assert (ended.code, ended.err) == (2, "regard: \\udcff: no such folder\n")
