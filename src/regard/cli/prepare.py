"""`regard prepare`: the corpus of a recipe, made ready for training."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import OutFolder, Overrides, Progress, ProgressMode

EXAMPLES = """
regard prepare recipe.toml --out RUN
regard prepare recipe.toml --out RUN --set data.max_length=100
"""


def prepare(
    recipe: Annotated[Path, typer.Argument(metavar="RECIPE.toml", help="Settings with the corpora.")],
    out: OutFolder,
    overrides: Overrides = None,
    progress: Progress = ProgressMode.AUTO,
) -> None:
    """Check corpora, learn the vocabulary, write the tokens.

    Reads the corpora of a recipe and says what is kept and what is dropped, and why. 'regard train' does this by
    itself; on its own it shows what training would see, and works without a GPU.
    """
    from regard.data.prepare import prepare as prepare_data
    from regard.errors import UserError
    from regard.progress import open_display
    from regard.settings import read_recipe
    from regard.training.run import open_run

    display = open_display(progress.value)
    settings = read_recipe(recipe, overrides or [])
    if settings.data.retranslation_steps:
        raise UserError(
            "data.retranslation_steps: only 'regard train' has the models that translate the text; look at the text "
            "itself with --set data.retranslation_steps=0"
        )
    with open_run(out, settings) as run:
        prepare_data(settings, run.folder, display)
    changed = "".join(f" --set {one}" for one in overrides or [])
    display.say(f"ready in {out}; train with it:  regard train {recipe} --out {out}{changed}")
