"""A recipe's file or a preset's name, as verbs take either."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from regard.settings import Settings

RecipeOrPreset = Annotated[str, typer.Argument(metavar="RECIPE", help="A recipe's file, or the name of a preset.")]


def read_settings(recipe: str, overrides: list[str]) -> "Settings":
    """Return the settings of a recipe or preset; raises `UserError` for what is neither."""
    from regard.errors import UserError, did_you_mean
    from regard.presets import PRESETS
    from regard.settings import preset, read_recipe

    if Path(recipe).exists():
        return read_recipe(Path(recipe), overrides)
    if recipe in PRESETS:
        return preset(recipe, overrides)
    raise UserError(f"{recipe}: no such file, and no preset.{did_you_mean(recipe, list(PRESETS))}")
