"""What long work shows: signs of life, honest estimates, and nothing on standard output."""

import io
import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard import progress
from regard.progress import (
    Job,
    JsonDisplay,
    PlainDisplay,
    QuietDisplay,
    TerminalDisplay,
    describe,
    duration,
    open_display,
)


class Clock:
    """A clock that the test moves."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Take the place of the clock in `regard.progress`, for jobs that begin as well."""
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    begin = Job.__post_init__

    def begin_by_the_clock(job: Job) -> None:
        begin(job)
        job.started = clock.now

    monkeypatch.setattr(Job, "__post_init__", begin_by_the_clock)
    return clock


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


# ---- durations -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (8.4, "8 s"),
        (59.4, "59 s"),
        (59.6, "1 min 00 s"),
        (185, "3 min 05 s"),
        (3599.7, "1 h 00 min"),
        (7620, "2 h 07 min"),
        (86_399.9, "1 d 00 h"),
        (273_600, "3 d 04 h"),
    ],
)
def test_a_duration_is_written_as_people_say_it(seconds, text):
    assert duration(seconds) == text


@given(st.floats(0, 1e9))
def test_a_duration_never_shows_sixty_of_anything(seconds):
    numbers = [int(word) for word in duration(seconds).split() if word.isdigit()]
    assert all(number < 60 for number in numbers[1:])
    assert "60 s" not in duration(seconds)


# ---- jobs ------------------------------------------------------------------------------------------------------------


def test_a_job_estimates_what_is_left_from_what_is_done(clock):
    job = Job("training", 100, "steps", QuietDisplay())
    assert job.seconds_left is None
    clock.now += 20
    job.advance(25)
    assert job.rate == pytest.approx(1.25)
    assert job.seconds_left == pytest.approx(60)


def test_what_an_earlier_run_did_does_not_count_as_speed(clock):
    job = Job("training", 100, "steps", QuietDisplay(), done=50)
    assert job.seconds_left is None
    clock.now += 10
    job.advance(10)
    assert job.rate == pytest.approx(1)
    assert job.seconds_left == pytest.approx(40)


def test_a_job_of_unknown_size_has_no_time_left(clock):
    job = Job("reading", None, "lines", QuietDisplay())
    clock.now += 1
    job.advance(7)
    assert job.seconds_left is None
    assert describe(job) == "7 lines"


def test_a_job_that_does_more_than_its_total_has_no_negative_time_left(clock):
    job = Job("reading", 5, "lines", QuietDisplay())
    clock.now += 1
    job.advance(9)
    assert job.seconds_left == 0


def test_a_job_is_described_with_share_time_left_and_note(clock):
    job = Job("training", 2000, "steps", QuietDisplay())
    clock.now += 10
    job.advance(1000, note="loss 2.31")
    assert describe(job) == "1,000 of 2,000 (50%) steps, 10 s left · loss 2.31"


def test_a_job_of_nothing_is_described_without_a_division_by_zero():
    assert describe(Job("reading", 0, "lines", QuietDisplay())) == "0 of 0 (0%) lines"


def test_a_note_stays_until_it_is_replaced():
    job = Job("training", 10, "steps", QuietDisplay())
    job.advance(note="first")
    job.advance()
    assert job.note == "first"
    job.advance(note="")
    assert job.note == ""


# ---- plain lines -----------------------------------------------------------------------------------------------------


def test_plain_lines_give_a_sign_of_life_then_one_line_every_interval(clock):
    stream = io.StringIO()
    display = PlainDisplay(stream, interval=10)
    with display.job("translating", 4000, "lines") as job:
        assert stream.getvalue() == "translating (4,000 lines) …\n"
        for _ in range(25):
            clock.now += 1
            job.advance(100)
    assert stream.getvalue().splitlines()[1:] == [
        "translating: 1,000 of 4,000 (25%) lines, 30 s left",
        "translating: 2,000 of 4,000 (50%) lines, 20 s left",
        "translating: 2,500 lines in 25 s",
    ]


def test_a_short_job_says_only_that_it_began(clock):
    stream = io.StringIO()
    with PlainDisplay(stream).job("loading") as job:
        job.advance()
    assert stream.getvalue() == "loading …\n"


def test_a_job_ends_even_if_the_work_fails(clock):
    stream = io.StringIO()
    display = PlainDisplay(stream)

    def fail() -> None:
        with display.job("training", 10, "steps") as job:
            clock.now += 60
            job.advance(4)
            raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError, match="out of memory"):
        fail()
    assert stream.getvalue().splitlines()[-1] == "training: 4 steps in 1 min 00 s"


def test_two_jobs_at_once_keep_their_own_time(clock):
    stream = io.StringIO()
    display = PlainDisplay(stream, interval=10)
    with display.job("outer", 2, "parts") as outer:
        clock.now += 6
        with display.job("inner", 2, "parts") as inner:
            clock.now += 6
            inner.advance()
            outer.advance()
    assert stream.getvalue().splitlines() == [
        "outer (2 parts) …",
        "inner (2 parts) …",
        "outer: 1 of 2 (50%) parts, 12 s left",
        "outer: 1 parts in 12 s",
    ]


def test_plain_lines_leave_facts_to_programs():
    stream = io.StringIO()
    PlainDisplay(stream).say("step 10", {"loss": 2.0})
    assert stream.getvalue() == "step 10\n"


# ---- JSON lines ------------------------------------------------------------------------------------------------------


def test_json_lines_are_one_object_each_with_counts(clock):
    stream = io.StringIO()
    display = JsonDisplay(stream, interval=1)
    with display.job("préparer", 10, "pairs") as job:
        job.advance(1)
        clock.now += 2
        job.advance(4, note="kept 4")
    display.say("fertig", {"kept": 5, "share": 0.5, "name": None})
    events = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [event["event"] for event in events] == ["begin", "progress", "end", "message"]
    assert events[0] == {
        **{"event": "begin", "job": "préparer", "done": 0, "total": 10, "unit": "pairs"},
        **{"seconds_left": None, "note": ""},
    }
    assert (events[1]["done"], events[1]["seconds_left"], events[1]["note"]) == (5, pytest.approx(2), "kept 4")
    assert events[3] == {"event": "message", "text": "fertig", "kept": 5, "share": 0.5, "name": None}
    assert "é" in stream.getvalue()


# ---- terminal and quiet ----------------------------------------------------------------------------------------------


def test_a_terminal_shows_a_bar_and_what_is_said():
    stream = Terminal()
    display = TerminalDisplay(stream)
    with display.job("training", 10, "steps") as job:
        job.advance(5, note="loss 2.31")
        display.say("a sample [bold]as it is[/bold]")
    shown = stream.getvalue()
    assert "training" in shown
    assert "a sample [bold]as it is[/bold]" in shown  # text of the user's is not markup


def test_a_terminal_takes_two_bars_and_is_left_clean():
    stream = Terminal()
    display = TerminalDisplay(stream)
    with display.job("outer", 2) as outer, display.job("inner", None) as inner:
        inner.advance(1000)
        outer.advance()
    display.say("done")
    with display.job("again", 1) as again:
        again.advance()
    assert "done" in stream.getvalue()
    assert stream.getvalue().count("\x1b[?25l") == stream.getvalue().count("\x1b[?25h") == 2  # the cursor came back


def test_quiet_says_nothing(capsys):
    display = QuietDisplay()
    with display.job("training", 10, "steps") as job:
        job.advance(3)
        display.say("hello", {"loss": 1.0})
    assert job.done == 3
    assert capsys.readouterr() == ("", "")


# ---- choosing --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "kind"),
    [("terminal", TerminalDisplay), ("plain", PlainDisplay), ("json", JsonDisplay), ("quiet", QuietDisplay)],
)
def test_a_mode_is_taken_as_it_is_said(mode, kind):
    assert type(open_display(mode, io.StringIO())) is kind


def test_auto_is_a_bar_in_a_terminal_and_plain_lines_elsewhere():
    assert type(open_display("auto", Terminal())) is TerminalDisplay
    assert type(open_display("auto", io.StringIO())) is PlainDisplay


@pytest.mark.parametrize("mode", ["plain", "json"])
def test_everything_goes_to_standard_error(mode, capsys):
    display = open_display(mode)
    with display.job("training", 10, "steps") as job:
        job.advance()
        display.say("hello")
    out, err = capsys.readouterr()
    assert out == ""
    assert "training" in err
    assert "hello" in err


def test_progress_does_not_load_rich_unless_there_is_a_bar():
    code = "import sys, regard.progress as p; p.open_display('plain'); print('rich' in sys.modules)"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert printed.stdout.strip() == "False"
