"""The log: one JSON object an event, whole lines, no step twice."""

import json
import math

import pytest

from regard.errors import MissingExtraError
from regard.training import log as log_module
from regard.training.log import Interval, Log, read_log
from regard.training.step import StepReport


def written(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def report(loss=2.0, tokens=10, norm=1.0):
    return StepReport(
        objective=loss * tokens, smoothed=loss * tokens, plain=loss * tokens / 2, tokens=tokens, norm=norm, stop=False
    )


# ---- sums ------------------------------------------------------------------------------------------------------------


def test_means_are_by_token_and_norms_by_step():
    interval = Interval()
    interval.add(report(loss=2.0, tokens=30, norm=1.0))
    interval.add(report(loss=6.0, tokens=10, norm=3.0))
    facts = interval.facts()
    assert facts["loss"] == pytest.approx((2 * 30 + 6 * 10) / 40)
    assert facts["perplexity"] == pytest.approx(math.exp((1 * 30 + 3 * 10) / 40))
    assert facts["gradient_norm"] == 2.0
    assert facts["tokens_per_second"] > 0


def test_a_skipped_step_does_not_hide_the_others():
    interval = Interval()
    interval.add(report(loss=2.0))
    interval.add(report(loss=math.nan, norm=math.nan))
    assert interval.facts()["loss"] == 2.0
    assert interval.facts()["gradient_norm"] == 1.0


def test_where_every_step_was_skipped_the_means_are_not_numbers():
    interval = Interval()
    interval.add(report(norm=math.inf))
    assert math.isnan(interval.facts()["loss"])
    assert math.isnan(interval.facts()["perplexity"])


# ---- the file --------------------------------------------------------------------------------------------------------


def test_an_event_is_a_line_and_is_there_at_once(tmp_path):
    path = tmp_path / "log.jsonl"
    with Log(path, 0) as log:
        log.write("training", {"step": 1, "loss": 5.5})
        assert written(path) == [{"event": "training", "step": 1, "loss": 5.5}]
        log.write("validation", {"step": 1, "bleu": None})
    assert [facts["event"] for facts in written(path)] == ["training", "validation"]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_null_so_that_every_line_is_json(tmp_path, value):
    with Log(tmp_path / "log.jsonl", 0) as log:
        log.write("training", {"step": 1, "loss": value})
    assert (tmp_path / "log.jsonl").read_text() == '{"event": "training", "step": 1, "loss": null}\n'


def test_going_on_drops_what_was_logged_past_the_checkpoint(tmp_path):
    path = tmp_path / "log.jsonl"
    with Log(path, 0) as log:
        for step in range(1, 8):
            log.write("training", {"step": step})
    with Log(path, 4) as log:
        log.write("training", {"step": 5})
    assert [facts["step"] for facts in written(path)] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "tail", ['{"event": "training", "st', '{"event": "training", "step": 2}', "\0\0\0\0", "\xff\xfe", "[1, 2]\n", "7\n"]
)
def test_a_line_that_was_cut_off_is_passed_over_and_not_continued(tmp_path, tail):
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"event": "training", "step": 1}\n' + tail.encode("latin-1"))
    assert [facts["step"] for _, facts in read_log(path)] == [1]
    with Log(path, 1) as log:
        log.write("training", {"step": 2})
    assert [facts["step"] for facts in written(path)] == [1, 2]


def test_a_log_that_is_not_there_is_empty(tmp_path):
    assert list(read_log(tmp_path / "log.jsonl")) == []


# ---- TensorBoard -----------------------------------------------------------------------------------------------------


def test_the_same_numbers_go_to_tensorboard_if_that_is_wanted(tmp_path):
    pytest.importorskip("tensorboard")
    with Log(tmp_path / "log.jsonl", 0, tmp_path / "board") as log:
        log.write("training", {"step": 1, "loss": 5.5, "epoch": 1, "none": None, "nan": math.nan})
        log.write("training", {"step": 2, "loss": 4.5, "epoch": 1})
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(tmp_path / "board"))
    events.Reload()
    assert sorted(events.Tags()["scalars"]) == ["training/epoch", "training/loss"]
    assert [(event.step, event.value) for event in events.Scalars("training/loss")] == [(1, 5.5), (2, 4.5)]


def test_without_its_package_it_is_said_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(log_module, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'regard\[tensorboard\]'"):
        Log(tmp_path / "log.jsonl", 0, tmp_path / "board")
