"""`regard config`: what can be set, what it means, and what a recipe comes to."""

from collections.abc import Iterable
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

import typer

from regard.cli.help import Verb, Verbs
from regard.cli.options import Overrides
from regard.cli.recipes import RecipeOrPreset, read_settings

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

app = typer.Typer(
    cls=Verbs,
    help="List and explain settings; print all settings of a recipe.",
    epilog="""
regard config list                         every setting and preset
regard config explain training.warmup      one of them
regard config show recipe.toml             all settings of a recipe
""",
    invoke_without_command=True,
    rich_markup_mode=None,
)


@app.callback()
def _list_if_nothing_else(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        list_all()


@app.command("list", cls=Verb, epilog="regard config list\nregard config list | grep length")
def list_all() -> None:
    """List every setting with its default, and every preset."""
    from regard.cli.table import print_table
    from regard.presets import PRESETS
    from regard.settings import list_settings

    _print_settings(list_settings())
    print()
    print_table(["preset", "for"], [[name, preset.purpose] for name, preset in PRESETS.items()])


@app.command(
    cls=Verb,
    epilog="regard config explain training.warmup\nregard config explain search\nregard config explain paper-big",
)
def explain(
    key: Annotated[
        str,
        typer.Argument(
            metavar="KEY", help="A setting, such as training.warmup; a section, such as search; or a preset."
        ),
    ],
) -> None:
    """Explain a setting, the settings of a section, or a preset."""
    from regard.errors import UserError, did_you_mean
    from regard.presets import PRESETS
    from regard.settings import find_setting, list_settings

    section = [(name, field) for name, field in list_settings() if name.startswith(f"{key}.")]
    if section:
        _print_settings(section)
    elif key in PRESETS:
        print(f"{key}: {PRESETS[key].purpose}")
        for name, values in PRESETS[key].values.items():
            for setting, value in values.items():
                print(f"  {name}.{setting} = {_shown(value)}")
    elif hint := did_you_mean(key, list(PRESETS)):
        raise UserError(f"no preset {key!r}.{hint}")
    else:
        field = find_setting(key)
        limits = "".join(f", {_limit(limit)}" for limit in field.metadata)
        print(f"{key} = {_shown(field.default)}\n  {field.description}\n  {_kind(field.annotation)}{limits}")


@app.command(cls=Verb, epilog="regard config show recipe.toml\nregard config show paper-big --set model.dropout=0.1")
def show(
    recipe: RecipeOrPreset,
    overrides: Overrides = None,
) -> None:
    """Print all settings of a recipe or preset, resolved, as TOML."""
    print(read_settings(recipe, overrides or []).to_toml(), end="")


def _print_settings(settings: "Iterable[tuple[str, FieldInfo]]") -> None:
    from regard.cli.table import print_table

    rows = [[name, _shown(field.default), field.description or ""] for name, field in settings]
    print_table(["setting", "default", "meaning"], rows)


def _shown(value: object) -> str:
    if value is None or value == "":
        return "unset"
    if value == ():
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:,}" if isinstance(value, int) else str(value)


def _kind(annotation: Any) -> str:
    """Say in words what a setting's value may be."""
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "a text", Path: "a file"}
    if annotation in words:
        return words[annotation]
    inner = get_args(annotation)
    if get_origin(annotation) is Literal:
        return "one of " + ", ".join(map(repr, inner))
    if NoneType in inner:
        return " or ".join(_kind(one) for one in inner if one is not NoneType) + ", or unset"
    fields = "".join(f"\n    {name:<7} {field.description}" for name, field in inner[0].model_fields.items())
    return f"a list of tables, each with some of{fields}"


def _limit(limit: Any) -> str:
    """Say in words what one of pydantic's limits asks for."""
    words = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    name, value = next((name, getattr(limit, name)) for name in words if hasattr(limit, name))
    return f"{words[name]} {value:,}"
