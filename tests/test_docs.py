"""Every snippet of README and docs runs: commands, Python and recipes, in the order of the pages.

Commands run in this process, with a small corpus; trainings get settings that make them small as well. Everything else
is as it is printed.
"""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from regard.cli.main import main
from regard.settings import read_recipe, resolve

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md",
    *(
        ROOT / "docs" / f"{name}.md"
        for name in (
            "data",
            "train",
            "small-corpora",
            "finetune",
            "scale",
            "settings",
            "translate",
            "shortlists",
            "deep-encoder",
            "evaluate",
        )
    ),
    *(ROOT / "docs" / f"{name}.md" for name in ("inspect", "paper")),
]
TORCHRUN = Path(sys.executable).with_name("torchrun")
SMALL = (
    "model.d_model=16 model.d_ff=16 model.heads=2 model.encoder_layers=1 model.decoder_layers=2 "
    "data.vocabulary_size=400 training.steps=2 training.batch_tokens=400 training.checkpoint_steps=2"
)
LINES = 12  # of each file of the corpus


class Snippet(NamedTuple):
    page: str
    line: int
    language: str
    text: str


def snippets(page: Path) -> Iterator[Snippet]:
    text = page.read_text(encoding="utf-8")
    for match in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield Snippet(page.name, text.count("\n", 0, match.start()) + 2, match[1], match[2])


def run_command(command: str) -> None:
    """Run one line as a shell would: `echo text | regard …`, or `regard … < file`; checks the exit code."""
    words = shlex.split(command, comments=True)
    given = b""
    if words[0] == "echo":
        given, words = (words[1] + "\n").encode(), words[3:]
    if "<" in words:
        given, words = Path(words[-1]).read_bytes(), words[:-2]
    verb = words.index("regard") + 1
    if words[verb] in ("train", "prepare"):
        words += [part for setting in SMALL.split() for part in ("--set", setting)]
    if words[0] == "torchrun":
        done = subprocess.run([TORCHRUN, *words[1:]], check=False)
        assert done.returncode == 0, command
        return
    assert words[0] == "regard"
    if words[1] == "finetune":
        words += ["--set", "training.steps=2"]
    if words[1] in ("train", "finetune"):
        words += ["--processes", "1", "--threads", "1"]
    stdin = Path("stdin")
    stdin.write_bytes(given)
    before = sys.argv, sys.stdin
    try:
        with stdin.open(encoding="utf-8") as sys.stdin:
            sys.argv = words
            with pytest.raises(SystemExit) as ended:
                main()
    finally:
        sys.argv, sys.stdin = before
    assert ended.value.code in (0, None), command


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("docs")
    before = Path.cwd()
    os.chdir(folder)
    run_command("regard demo --write-corpus corpus")
    for path in Path("corpus").iterdir():
        path.write_text("".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[:LINES]), encoding="utf-8")
    sources, targets = (Path(f"corpus/train.{end}").read_text(encoding="utf-8").splitlines() for end in ("en", "de"))
    pairs = zip(sources, targets, strict=True)
    Path("corpus/more.tsv").write_text("".join(f"{one}\t{other}\n" for one, other in pairs), encoding="utf-8")
    Path("Downloads").mkdir()
    Path("Downloads/deu.txt").write_text(Path("corpus/more.tsv").read_text(encoding="utf-8"), encoding="utf-8")
    Path("other.translated").write_text(Path("corpus/test.de").read_text(encoding="utf-8"), encoding="utf-8")
    recipe = next(one for one in snippets(ROOT / "docs" / "settings.md") if one.language == "toml")
    Path("recipe.toml").write_text(recipe.text, encoding="utf-8")
    yield folder
    os.chdir(before)


@pytest.mark.slow
def test_every_command_and_python_snippet_runs(workplace: Path, capfd: pytest.CaptureFixture[str]) -> None:
    ran = 0
    for snippet in (one for page in PAGES for one in snippets(page)):
        if snippet.language == "sh":
            for command in snippet.text.splitlines():
                if "--write-corpus" not in command:  # the fixture ran it, and made its files short
                    run_command(command)
                    ran += 1
        elif snippet.language == "python":
            exec(compile(snippet.text, f"{snippet.page}:{snippet.line}", "exec"), {})
            ran += 1
        captured = capfd.readouterr()
        assert "Traceback" not in captured.err
    assert ran > 20


@pytest.mark.parametrize(
    "snippet", [one for page in PAGES for one in snippets(page)], ids=lambda one: f"{one.page}:{one.line}"
)
def test_a_snippet_is_in_a_language_that_is_tested(snippet: Snippet) -> None:
    if snippet.language == "toml":
        resolve(tomllib.loads(snippet.text))
    assert snippet.language in ("sh", "python", "toml") or snippet.text.startswith("make ")


@pytest.mark.parametrize("recipe", sorted((ROOT / "recipes").glob("*.toml")), ids=lambda path: path.name)
def test_every_recipe_loads(recipe: Path) -> None:
    settings = read_recipe(recipe)
    assert settings.data.train


def test_every_page_that_is_linked_exists() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_readme_opens_with_the_two_commands_of_the_makefile() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in ("demo", "test"):
        assert f"make {target}" in readme.partition("## ")[0]
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


def test_the_tables_of_many_gpus_are_what_the_calculation_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import scale

    page = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    assert "\n".join(scale.check_lines()) in page
    for title, lines in scale.tables().items():
        assert f"{title[0].upper()}{title[1:]}:\n\n" + "\n".join(lines) in page
