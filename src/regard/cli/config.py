"""`regard config`: what can be set, what it means, and what a recipe comes to."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import Overrides

app = typer.Typer(
    help="List settings and presets, explain a setting, or print all settings of a recipe.", no_args_is_help=True
)


@app.command("list")
def list_all() -> None:
    """List every setting with its default, and every preset."""
    from regard.cli.table import print_table
    from regard.presets import PRESETS
    from regard.settings import list_settings

    print_table(
        ["setting", "default", "meaning"],
        [[name, _shown(field.default), field.description or ""] for name, field in list_settings()],
    )
    typer.echo()
    print_table(["preset", "for"], [[name, preset.purpose] for name, preset in PRESETS.items()])


@app.command()
def explain(
    key: Annotated[str, typer.Argument(help="A setting, such as training.warmup, or a preset, such as paper-big.")],
) -> None:
    """Explain a setting: its type, default, limits and meaning; or show what a preset sets."""
    from regard.presets import PRESETS
    from regard.settings import find_setting

    if key in PRESETS:
        typer.echo(f"{key}: {PRESETS[key].purpose}")
        for section, values in PRESETS[key].values.items():
            for name, value in values.items():
                typer.echo(f"  {section}.{name} = {_shown(value)}")
        return
    field = find_setting(key)
    kind = str(field.annotation).replace("typing.", "").replace("<class '", "").replace("'>", "")
    limits = ", ".join(str(limit) for limit in field.metadata)
    typer.echo(
        f"{key} = {_shown(field.default)}\n  type: {kind}{f' ({limits})' if limits else ''}\n  {field.description}"
    )


@app.command()
def show(
    recipe: Annotated[str, typer.Argument(help="A recipe's file, or the name of a preset.")],
    overrides: Overrides = None,
) -> None:
    """Print all settings of a recipe or preset, resolved, as TOML."""
    from regard.presets import PRESETS
    from regard.settings import preset, read_recipe

    known = recipe in PRESETS and not Path(recipe).exists()
    settings = preset(recipe, overrides or []) if known else read_recipe(Path(recipe), overrides or [])
    typer.echo(settings.to_toml(), nl=False)


def _shown(value: object) -> str:
    if value is None:
        return "unset"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:,}" if isinstance(value, int) else str(value) if value != () else "none"
