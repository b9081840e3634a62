"""`regard score`: the log-probability of given pairs."""

import json
from pathlib import Path

import pytest

from regard.translator import load

from .running import Regard


def test_a_models_own_translations_get_the_scores_it_gave_them(
    regard: Regard, run: Path, corpus: Path, tmp_path: Path
) -> None:
    translator = load(run, device="cpu")
    sources = (corpus / "test.dig").read_text().splitlines()
    found = translator.translate(sources, beam=1)
    target = tmp_path / "target"
    target.write_text("".join(f"{one.text}\n" for one in found))
    ended = regard("score", run, corpus / "test.dig", target)
    assert ended.code == 0
    compared = 0
    for one, score in zip(found, map(float, ended.lines), strict=True):
        pieces = tuple(translator.vocabulary.pieces(translator.vocabulary.encode(one.text)))
        if pieces == one.tokens or not one.source:  # else the text has another reading than the model wrote
            assert score == pytest.approx(sum(one.token_scores), abs=1e-4)
            compared += 1
    assert compared > 20


def test_right_pairs_are_likelier_than_wrong_ones(regard: Regard, run: Path, tmp_path: Path) -> None:
    (tmp_path / "source").write_text("1 2 3\n1 2 3\n")
    (tmp_path / "target").write_text("b c d\nj i h\n")
    right, wrong = map(float, regard("score", run, tmp_path / "source", tmp_path / "target").lines)
    assert right > wrong


def test_blank_lines(regard: Regard, odd_model: Path, tmp_path: Path) -> None:
    (tmp_path / "source").write_text("\n \na\n\n")
    (tmp_path / "target").write_text("\n\t\n\nb\n")
    both, spaces, no_target, no_source = map(
        float, regard("score", odd_model, tmp_path / "source", tmp_path / "target").lines
    )
    assert both == spaces == 0
    assert no_target < 0
    assert no_source < 0


def test_json_and_the_summary(regard: Regard, odd_model: Path, tmp_path: Path) -> None:
    (tmp_path / "source").write_text("a 1\nb\n")
    (tmp_path / "target").write_text("g\nh 2\n")
    ended = regard("score", odd_model, tmp_path / "source", tmp_path / "target", "--json")
    answers = [json.loads(line) for line in ended.lines]
    for answer in answers:
        assert answer["log_probability"] == pytest.approx(sum(answer["token_scores"]))
        assert len(answer["tokens"]) == len(answer["token_scores"])
        assert answer["tokens"][-1] == "</s>"
    tokens = sum(len(answer["tokens"]) for answer in answers)
    assert f"{tokens} tokens · " in ended.err
    assert "perplexity" in ended.err


def test_mistakes_are_named(regard: Regard, odd_model: Path, tmp_path: Path) -> None:
    for name, data in {"one": b"a\n", "two": b"a\nb\n", "bad": b"a\n\xff\n", "nul": b"a\n\0\n"}.items():
        (tmp_path / name).write_bytes(data)
    for source, target, told in (
        ("one", "two", f"{tmp_path / 'one'}: ends after 1 line, but {tmp_path / 'two'} has 2"),
        ("two", "bad", f"{tmp_path / 'bad'}, line 2: not UTF-8"),
        ("nul", "two", f"{tmp_path / 'nul'}, line 2: contains a NUL"),
        ("two", "missing", f"{tmp_path / 'missing'}: no such file"),
        (".", "two", "is a folder"),
    ):
        ended = regard("score", odd_model, tmp_path / source, tmp_path / target)
        assert ended.code == 2
        assert told in ended.err
