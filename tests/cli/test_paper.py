"""`regard paper`: tables, and the cost of a training next to the paper's."""

import json
from pathlib import Path

import pytest

from .running import Regard

RECIPES = Path(__file__).parents[2] / "recipes"


def test_cost_shows_the_count_the_times_and_the_papers_own(regard: Regard) -> None:
    ended = regard("paper", "cost", "paper-base")
    assert ended.code == 0
    assert "in all    9.5e17 FLOPs" in ended.out
    assert "paper-base\t100,000 × 0.4 s, 12 h 00 min\t3.3e18\t3.3e18\t9.5e17" in ended.lines
    assert "paper-big\t300,000 × 1.0 s, 3 d 12 h\t2.3e19\t2.3e19\t9.7e18" in ended.lines
    assert "P100\t9.5 TFLOPS\t3 h 29 min\tthe paper's assumption of what it sustains" in ended.lines


def test_cost_in_json_follows_overrides_and_options(regard: Regard) -> None:
    once = json.loads(regard("paper", "cost", "tiny", "--json", "--length", "20").out)
    twice = json.loads(
        regard("paper", "cost", "tiny", "--json", "--length", "20", "--set", "training.steps=16000", "--gpus", "4").out
    )
    assert twice["flops"] == 2 * once["flops"]
    assert twice["times"][0]["seconds"] == 4 * once["times"][0]["seconds"]
    assert once["length"] == 20


@pytest.mark.parametrize("recipe", sorted(RECIPES.glob("wmt14-*.toml")), ids=lambda path: path.name)
def test_a_recipe_of_the_papers_says_what_cost_prints(regard: Regard, recipe: Path) -> None:
    facts = json.loads(regard("paper", "cost", recipe, "--json").out)
    comment = " ".join(line.lstrip("# ") for line in recipe.read_text().splitlines() if line.startswith("#"))
    assert f"{facts['flops']:.1e} FLOPs".replace("e+", "e") in comment
    text = regard("paper", "cost", recipe).lines
    for gpu in ("P100", "A100"):
        times = [line.split("\t")[2] for line in text if line.startswith(gpu)]
        assert all(time in comment for time in times), (gpu, times)


def test_the_tables_are_printed(regard: Regard) -> None:
    lines = regard("paper", "tables").lines
    assert "Transformer big\t28.4\t41.8\t2.3e19\t" in lines
    assert "table3-keys-16\tB\t5.16\t25.1\t58 M" in lines


def test_what_is_neither_recipe_nor_preset_is_told(regard: Regard) -> None:
    ended = regard("paper", "cost", "paper-bas")
    assert ended.code == 2
    assert "no such file, and no preset. Did you mean 'paper-base'?" in ended.err
