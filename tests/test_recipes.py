"""The recipes are what their first lines say."""

from pathlib import Path

import pytest
import torch

from regard.model.build import build_model
from regard.model.transformer import count_weights
from regard.settings import preset, read_recipe

RECIPES = Path(__file__).parents[1] / "recipes"


def test_raw_text_is_trained_on_as_lowercased_text_is():
    lowercased, raw = (read_recipe(RECIPES / f"multi30k-en-de{kind}.toml") for kind in ("", "-raw"))
    assert (raw.model, raw.training, raw.search) == (lowercased.model, lowercased.training, lowercased.search)
    texts = {"train", "valid"}
    assert raw.data.model_dump(exclude=texts) == lowercased.data.model_dump(exclude=texts)


@pytest.mark.parametrize("kind", ["", "-raw", "-paper"])
def test_multi30k_is_learned_with_at_most_2_7_million_weights(kind):
    recipe = read_recipe(RECIPES / f"multi30k-en-de{kind}.toml")
    with torch.device("meta"):
        assert count_weights(build_model(recipe.model, recipe.data.vocabulary_size)) <= 2_700_000


@pytest.mark.parametrize(
    ("name", "twin", "dropout"),
    [
        ("wmt14-en-de-base", "paper-base", 0.1),
        ("wmt14-en-de-big", "paper-big", 0.3),
        ("wmt14-en-fr-big", "paper-big", 0.1),
    ],
)
def test_a_recipe_of_the_papers_is_its_preset(name, twin, dropout):
    recipe, papers = read_recipe(RECIPES / f"{name}.toml"), preset(twin)
    assert recipe.model == papers.model.model_copy(update={"dropout": dropout})
    assert (recipe.training, recipe.search) == (papers.training, papers.search)
