"""The report that a finished training leaves, and the verb that writes it again."""

from pathlib import Path

import pytest
from digits import Words, recipe

from regard.errors import RegardError
from regard.training.loop import train
from regard.training.report import check_facts, read_curves
from regard.training.run import Run


def test_a_finished_training_leaves_its_report_next_to_its_model(finished_run: Path) -> None:
    page = (finished_run / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    for part in ("scores", "curves", "translations", "worst", "attention", "data", "settings"):
        assert f'<section id="{part}">' in page
    assert page.count('class="chart"') == 3
    assert 1 <= page.count('class="map"') <= 3  # one for each sample that is not translated to nothing


def test_curves_are_read_from_the_log_without_what_is_no_number(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(
        '{"event": "training", "step": 1, "loss": 5.0, "perplexity": null}\n'
        '{"event": "training", "step": "two", "loss": 4.0}\n'
        '{"event": "validation", "step": 2, "loss": 3, "perplexity": 20.1, "bleu": 7.5}\nnot json\n'
    )
    curves = read_curves(log)
    assert (curves.loss, curves.perplexity) == ([(1.0, 5.0)], [])
    assert (curves.valid_loss, curves.bleu) == ([(2.0, 3.0)], [(2.0, 7.5)])
    assert read_curves(tmp_path / "nothing").loss == []


def test_a_model_that_does_not_say_how_it_was_trained_is_named(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="does not say its averaged_steps, data, seconds"):
        check_facts(Run(tmp_path), {"weights": 1, "step": 1})


def test_a_report_that_fails_leaves_the_model_finished(
    corpus: Path, tmp_path: Path, words: Words, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise MemoryError("too much")

    monkeypatch.setattr("regard.training.report.write_page", fail)
    model = train(recipe(corpus, steps=4), tmp_path / "run", display=words, processes=1, threads=1)
    assert (model / "weights.safetensors").exists()
    assert f"the report could not be written: too much; try again with:  regard report {tmp_path / 'run'}" in str(words)
