"""`regard evaluate`: both of its forms, what it prints, and what it refuses."""

import json
from pathlib import Path
from typing import Any

import pytest

from regard.translator import Translator

from .running import Regard


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    lines = {
        "right": ["the cat sat on the mat", "", "a dog barked at the old man"] * 10,
        "wrong": ["a cat is on a mat", "", "the dog barks at a man"] * 10,
        "short": ["the cat sat on the mat"],
        "empty": [],
    }
    for name, text in lines.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in text))
    return {name: tmp_path / name for name in lines}


def test_given_translations_are_scored_with_signatures_and_intervals(regard: Regard, files: dict[str, Path]) -> None:
    ended = regard("evaluate", "--hypothesis", files["wrong"], "--reference", files["right"], "--bootstrap", "50")
    assert ended.code == 0
    names = [line.split("  ")[0] for line in ended.lines[::2]]
    assert names == ["BLEU", "chrF2", "TER", "paper BLEU"]
    assert all("[" in line for line in ended.lines[::2])
    assert all("version:" in line for line in ended.lines[1::2])
    assert (
        regard("evaluate", "--hypothesis", files["right"], "--reference", files["right"])
        .lines[0]
        .startswith("BLEU        100.00")
    )


def test_json_says_the_same(regard: Regard, files: dict[str, Path]) -> None:
    arguments = ("--hypothesis", files["wrong"], "--reference", files["right"], "--against", files["right"])
    answer = json.loads(regard("evaluate", *arguments, "--bootstrap", "20", "--json").out)
    assert {one["name"] for one in answer["scores"]} == {"BLEU", "chrF2", "TER", "paper BLEU"}
    bleu = answer["comparisons"][0]
    assert bleu["systems"] == ["wrong", "right"]
    assert bleu["difference"] == pytest.approx(bleu["values"][1] - bleu["values"][0])


def test_two_systems_are_compared_by_a_paired_test(regard: Regard, files: dict[str, Path]) -> None:
    arguments = ("--hypothesis", files["wrong"], "--reference", files["right"], "--bootstrap", "50")
    ended = regard("evaluate", *arguments, "--against", files["right"])
    assert "; right is better" in ended.out
    assert "p = 0.0" in ended.out
    assert "chance explains the difference" in regard("evaluate", *arguments, "--against", files["wrong"]).out


def test_options_change_how_text_is_compared(regard: Regard, tmp_path: Path, files: dict[str, Path]) -> None:
    (tmp_path / "upper").write_text(files["right"].read_text().upper())
    arguments = ("--hypothesis", tmp_path / "upper", "--reference", files["right"], "--bootstrap", "0")
    assert regard("evaluate", *arguments).lines[0].startswith("BLEU          0.00  ")
    assert regard("evaluate", *arguments, "--lowercase").lines[0].startswith("BLEU        100.00  ")
    assert "tok:none" in regard("evaluate", *arguments, "--tokenized").out
    assert "moses-de" in regard("evaluate", *arguments, "--to", "de").out


def test_a_model_is_scored_and_its_translations_kept(regard: Regard, run: Path, corpus: Path, tmp_path: Path) -> None:
    source, reference, out = corpus / "test.dig", corpus / "test.let", tmp_path / "out"
    ended = regard("evaluate", run, source, reference, "-o", out, "--bootstrap", "20", "--json")
    assert ended.code == 0
    chrf = json.loads(ended.out)["scores"][1]
    assert chrf["value"] > 30  # it has learned something
    assert out.read_text() == regard("translate", run, source).out
    again = regard("evaluate", "--hypothesis", out, "--reference", reference, "--bootstrap", "20", "--json")
    assert json.loads(again.out)["scores"][1]["value"] == chrf["value"]


def test_the_models_language_is_used_unless_told(regard: Regard, run: Path, corpus: Path) -> None:
    arguments = ("evaluate", run / "model", corpus / "test.dig", corpus / "test.let", "--bootstrap", "0", "--beam", "1")
    assert "moses-let" in regard(*arguments).out
    assert "moses-de" in regard(*arguments, "--to", "de").out


def test_a_line_that_fails_is_named_and_the_scores_are_still_there(
    regard: Regard, odd_model: Path, files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Translator, units: Any, options: Any) -> Any:
        raise RuntimeError("no luck")

    monkeypatch.setattr(Translator, "_search", fail)
    ended = regard("evaluate", odd_model, files["short"], files["short"], "--bootstrap", "0")
    assert ended.code == 1
    assert "line 1 could not be translated: RuntimeError: no luck" in ended.err
    assert ended.lines[0].startswith("BLEU          0.00")


def test_contradictions_are_refused(regard: Regard, odd_model: Path, files: dict[str, Path]) -> None:
    right, short = files["right"], files["short"]
    forms = "give MODEL SOURCE REFERENCE, or --hypothesis FILE --reference FILE"
    for arguments, told in (
        ([], forms),
        ([odd_model], forms),
        ([odd_model, right], forms),
        ([odd_model, right, right, "--hypothesis", right], forms),
        ([odd_model, right, right, "--reference", right], forms),
        ([odd_model, "--hypothesis", right, "--reference", right], forms),
        (["--hypothesis", right], forms),
        (["--reference", right], forms),
        (
            ["--hypothesis", right, "--reference", right, "--beam", "2"],
            "are for a model's translations",
        ),
        (
            ["--hypothesis", right, "--reference", right, "-o", "x"],
            "are for a model's translations",
        ),
        (["--hypothesis", short, "--reference", right], f"{short}: ends after 1 line, but {right} has 30"),
        ([odd_model, right, short], f"{short}: ends after 1 line, but {right} has 30"),
        (["--hypothesis", right, "--reference", right, "--against", short], "1 translations of 'short' against 30"),
        (["--hypothesis", files["empty"], "--reference", files["empty"]], "is empty; there is nothing to score"),
        (["--hypothesis", right, "--reference", right.parent], "can't be read: Is a directory"),
        (["--hypothesis", right, "--reference", right, "--against", "missing"], "missing: can't be read"),
        ([odd_model, right, right, "-o", right], "is read and written at the same time"),
        ([odd_model, right, right, "-o", right / "x"], "can't be written"),
    ):
        ended = regard("evaluate", *arguments)
        assert ended.code == 2
        assert told in ended.err
        assert ended.out == ""
