import json
from pathlib import Path

import pytest
from comparison.rounds import describe_setting
from comparison.table import find_ratio, goals_table, report, standing, work_table
from comparison.works import GOALS, WORKS, Goal

MORE, LESS = WORKS["translation-base-beam"], WORKS["latency-base-beam"]


def entry(*figures, precision="float32", **facts):
    return {"precision": precision, "setting": {}, "figures": list(figures), **facts}


ENTRIES = {
    "regard": entry(10, 12, 11),
    "regard int8": entry(30, 33, 31, precision="int8"),
    "CTranslate2": entry(8, 8, 9),
    "CTranslate2 int8": entry(20, 21, 30, precision="int8"),
    "Hugging Face Marian": entry(5, 6, 7),
    "eole": {"precision": "float32", "failure": "not installed: no such package"},
}


def test_the_ratio_is_that_of_medians_to_the_best_other():
    ratio = find_ratio(MORE, ENTRIES, "float32")
    assert (ratio.ours, ratio.other) == ("regard", "CTranslate2")
    assert ratio.value == 11 / 8
    assert (ratio.lowest, ratio.highest) == (11 / 9, 12 / 8)


def test_without_a_type_each_side_uses_its_best():
    assert find_ratio(MORE, ENTRIES).ours == "regard int8"
    assert find_ratio(MORE, ENTRIES).value == 31 / 21


def test_where_less_is_better_the_best_is_the_least():
    ratio = find_ratio(LESS, ENTRIES)
    assert (ratio.ours, ratio.other, ratio.value) == ("regard", "Hugging Face Marian", 11 / 6)


def test_without_both_sides_there_is_no_ratio():
    assert find_ratio(MORE, {"regard": entry(1)}) is None
    assert find_ratio(MORE, {"CTranslate2": entry(1)}) is None
    assert find_ratio(MORE, {"regard": entry(1), "eole": ENTRIES["eole"]}) is None
    assert find_ratio(MORE, {"regard": entry(1), "CTranslate2": entry(1)}, "int8") is None


@pytest.mark.parametrize(
    ("ratio", "more_is_better", "stands"),
    [(2.0, True, "aim reached"), (1.5, True, "minimum reached"), (1.2, True, "below"), (2.0, False, "below")],
)
def test_a_ratio_stands_somewhere(ratio, more_is_better, stands):
    goal = Goal("", "", None, 1.3, 1.8) if more_is_better else Goal("", "", None, 1.0, 0.7)
    assert standing(goal, ratio, more_is_better) == stands


def test_a_shorter_time_than_aimed_at_reaches_the_aim():
    assert standing(Goal("", "", None, 1.0, 0.7), 0.6, more_is_better=False) == "aim reached"
    assert standing(Goal("", "", None, 1.0, 0.7), 0.9, more_is_better=False) == "minimum reached"


def test_the_goals_are_the_issues_and_of_works_that_exist():
    assert len(GOALS) == 9
    assert {goal.work for goal in GOALS} <= set(WORKS)


def test_a_table_shows_medians_spread_and_failures():
    lines = work_table(MORE, ENTRIES).splitlines()
    assert lines[2].startswith("| regard | 11.0 | 10.0–12.0 |")
    assert "not installed: no such package" in lines[-1]


def test_who_did_fewer_rounds_is_said_to():
    lines = work_table(MORE, {"regard": entry(10, 12), "CTranslate2": entry(2)}).splitlines()
    assert lines[2].startswith("| regard | 11.0 | 10.0–12.0 |")
    assert lines[3].startswith("| CTranslate2 | 2.00 | far behind, one round |")


def test_everything_that_a_toolkit_chose_by_itself_is_shown():
    choices = [{"processes": 2, "threads": 1}, {"processes": 1, "threads": 2}]
    shown = work_table(WORKS["training-tiny"], {"regard": entry(1, 2, 3, chosen=choices)})
    assert "| 2 processes, 1 thread or 1 process, 2 threads |" in shown


def test_memory_is_shown_in_gigabytes():
    shown = work_table(WORKS["memory-base"], {"regard": entry(1.5e9, 2.5e9, 2e9)})
    assert "| regard | 2.00 | 1.50–2.50 |" in shown


def test_the_table_of_goals_has_the_ratio_beside_what_is_asked():
    results = {"works": {"translation-base-beam": {"entries": ENTRIES}}}
    lines = goals_table(results).splitlines()[2:]
    assert lines[0].startswith(
        "| translation, base, beam 4, float32 | 1.38 | 1.22–1.50 | 1.3 | 1.8 | minimum reached |"
    )
    assert lines[1].startswith("| translation, base, beam 4, int8 | 1.48 |")
    assert len(lines) == 2


def test_a_report_can_be_written_from_what_json_gives_back():
    machine = {"processor": "a processor", "cores": 2, "memory": "8 GiB", "system": "Linux"}
    work = {"date": "2026-01-01", "commit": "abc", "rounds": 3, "machine": machine, "entries": ENTRIES}
    results = {"versions": {"torch": "1"}, "works": {"latency-base-beam": work}}
    told = report(json.loads(json.dumps(results)))
    assert "a processor, 2 cores" in told
    assert "commit abc" in told
    assert "versions: torch 1" in told


def test_settings_are_told_in_words():
    assert describe_setting({"workers_threads": (2, 1), "batch": 8}) == "2 × 1 threads, batch 8"
    assert describe_setting({"processes": 2, "threads": 1}) == "2 processes, 1 thread"
    assert describe_setting({"processes_threads": (1, 2)}) == "1 process, 2 threads"
    assert describe_setting({}) == "as it comes"


# ---- what is published -----------------------------------------------------------------------------------------------

ROOT = Path(__file__).parents[2]


def test_the_page_shows_what_was_measured():
    results = json.loads((ROOT / "benchmarks" / "results.json").read_text(encoding="utf-8"))
    assert report(results) in (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
