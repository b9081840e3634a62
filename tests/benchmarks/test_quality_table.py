"""`benchmarks/results.py table`: means over seeds, what they are held against, and the page that shows them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from quality.plan import ResultError
from quality.standards import ROOT, STANDARDS, Standard, Texts
from quality.store import RESULTS, read_rows
from quality.table import BEGIN, END, changes_table, headline_table, insert, report, runs_section, standing

RECIPE = Path("recipes/multi30k-en-de.toml")
TEST = [str(STANDARDS[RECIPE].test.source), str(STANDARDS[RECIPE].test.target)]


def scores(bleu):
    metrics = {"BLEU": bleu, "chrF2": bleu + 20, "TER": 40.0, "paper BLEU": bleu + 0.1}
    return [
        {"metric": name, "value": value, "interval": [value - 1, value + 1], "signature": f"{name}|…", "detail": "…"}
        for name, value in metrics.items()
    ]


def row(name=RECIPE.stem, seed=1, valid=40.0, bleu=None, seconds=600.0, **facts):
    return {
        **{"name": name, "seed": seed, "recipe": str(RECIPE), "train": None, "valid": None, "tokenized": True},
        **{"test": None if bleu is None else TEST, "overrides": [], "commands": [f"regard train --seed {seed}"]},
        **{"date": "2026-01-01", "commit": "abc", "machine": "a processor, 2 cores", "sessions": 1},
        **{"seconds": seconds, "weights": 2_600_000, "steps": 3000, "tokens_a_second": 5000},
        "valid_scores": scores(valid),
        "test_scores": None if bleu is None else scores(bleu),
        "log": {"loss": [2.0, 1.6]},
        **facts,
    }


THREE = [row(seed=1, bleu=41.9), row(seed=2, bleu=42.5, seconds=1200), row(seed=3, bleu=42.2)]


def test_the_headline_is_the_mean_of_the_seeds_beside_what_is_published():
    lines = headline_table(THREE).splitlines()[2:]
    assert lines[0] == (
        "| multi30k-en-de | multi30k/test_2016_flickr.lc.tok | **42.20** | 41.90–42.50 | 3 | "
        "41.02; with images 41.96 | 41.96 | 43.00 | minimum reached | 2,600,000 | 13 min 20 s, at most 20 min 00 s |"
    )
    assert len(lines) == len(STANDARDS)
    assert sum("not measured yet" in line for line in lines) == len(STANDARDS) - 1


@pytest.mark.parametrize(("figure", "stands"), [(43.0, "aim reached"), (42.0, "minimum reached"), (41.9, "below")])
def test_a_figure_stands_somewhere(figure, stands):
    assert standing(STANDARDS[RECIPE], [figure - 1, figure, figure + 1]) == stands
    assert standing(Standard(Texts(Path("a.en"), Path("a.de"))), [figure] * 3) == ""


def test_fewer_than_three_seeds_reach_nothing_yet():
    assert standing(STANDARDS[RECIPE], [50.0]) == "1 of 3 seeds"
    assert standing(STANDARDS[RECIPE], [50.0, 50.0]) == "2 of 3 seeds"


@pytest.mark.parametrize("other", [{"train": ["a.de", "a.en"]}, {"test": ["c/a.en", "c/a.de"]}])
def test_other_text_is_not_held_against_what_is_published(other):
    line = headline_table([row(name="other", bleu=41.9, **other)]).splitlines()[2]
    assert "41.02" not in line
    assert "**41.90**" in line


def test_every_run_has_its_scores_signatures_and_commands():
    told = runs_section([*THREE[:2], row(seed=3, bleu=42.2, sessions=2)])
    assert "| 1 | 41.90 | 40.90–42.90 | 61.90 | 42.00 | 40.00 | 3,000 | 10 min 00 s | 5,000 | abc, 2026-01-01 |" in told
    assert "10 min 00 s in 2 sessions" in told
    assert told.count("`BLEU|…`") == 1  # the same for all
    for seed in (1, 2, 3):
        assert f"\nregard train --seed {seed}\n" in told


def test_a_change_is_compared_with_the_recipe_by_the_same_seeds():
    plain = [row(seed=1, valid=40.0, bleu=41.0), row(seed=2, valid=42.0, bleu=41.0), row(seed=3, valid=99.0, bleu=41.0)]
    changed = [
        row("less", seed, valid, overrides=["training.consistency=0"], log={"loss": [1.0, 1.7]})
        for seed, valid in ((1, 39.0), (2, 40.0))
    ]
    line = changes_table(changed, [*plain, *changed]).splitlines()[2]
    assert line == (
        "| less | `recipes/multi30k-en-de.toml`, `training.consistency=0` | 39.50 | 39.00–40.00 | 1.700 | 1, 2 | "
        "multi30k-en-de | -1.50 | +0.100 | 10 min 00 s |"
    )
    assert "| 1, 2 |  |  |  |" in changes_table(changed, [plain[0], *changed])  # nothing to compare seed 2 with


def test_a_change_of_a_change_is_compared_with_that():
    plain = row(valid=42.0, bleu=41.0)
    short = row("short", valid=40.0, overrides=["training.steps=8"])
    shorter = row("shorter", valid=30.0, overrides=["training.steps=4"])
    both = row("short-plain", valid=38.0, overrides=["training.steps=8", "training.consistency=0"])
    lines = changes_table([short, shorter, both], [plain, short, shorter, both]).splitlines()[2:]
    found = {cells[1]: cells[7:9] for cells in ([cell.strip() for cell in line.split("|")] for line in lines)}
    assert found == {
        "short": ["multi30k-en-de", "-2.00"],
        "shorter": ["multi30k-en-de", "-12.00"],
        "short-plain": ["short", "-2.00"],
    }


def test_without_results_it_is_said_that_there_are_none():
    told = report([])
    assert told.count("not measured yet") == len(STANDARDS) + 2
    assert "**" not in told


def test_tables_go_between_the_marks_of_a_page():
    page = insert(f"before\n{BEGIN}\nold\n{END}\nafter\n", THREE)
    assert page == f"before\n{BEGIN}\n\n{report(THREE)}\n{END}\nafter\n"
    assert insert(page, THREE) == page


def test_the_command_shows_the_tables(tmp_path):
    (tmp_path / "quality.json").write_text(json.dumps({"runs": THREE}))
    command = [sys.executable, ROOT / "benchmarks" / "results.py", "table", "--results", tmp_path / "quality.json"]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert shown == report(THREE)


def test_a_page_without_marks_is_left_alone():
    for page in ("no marks", f"{BEGIN} only", f"{END} before {BEGIN}"):
        with pytest.raises(ResultError, match="has no marks for the tables"):
            insert(page, THREE)


# ---- what is published -----------------------------------------------------------------------------------------------


def test_the_page_shows_what_was_measured():
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert insert(page, read_rows(RESULTS)) == page


def test_a_page_that_is_not_there_is_named(tmp_path):
    page = tmp_path / "nowhere.md"
    command = [sys.executable, ROOT / "benchmarks" / "results.py", "table", "--page", page]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, f"{page}: No such file or directory\n")
