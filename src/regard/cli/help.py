"""How help looks: plain columns, headings and options coloured in a terminal, examples at the end of each verb's.

Typer's own boxes are drawn by rich, and importing rich takes as long as all the rest of `regard --help`.
"""

import os
import re
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from regard.errors import UserError

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_HEADING = re.compile(r"^\w+:", re.MULTILINE)
_OPTION = re.compile(r"(?<![\w-])--?[a-z][\w-]*")
_TYPE = re.compile(r" <[^>]*>$")


class Verb(TyperCommand):
    """A verb, whose epilog holds examples: a command a line."""

    def get_help(self, ctx: Any) -> str:
        """Return the help, coloured for a terminal."""
        return _colour(super().get_help(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the command line; an option of two values that got one would take the next option for the other."""
        pairs = {name for one in self.get_params(ctx) if one.nargs == 2 for name in one.opts}
        for place, word in enumerate(args):
            values = args[place + 1 : place + 3]
            if word in pairs and any(value.startswith("--") for value in values):
                raise UserError(f"{word} needs two files, and only '{' '.join(args[place : place + 2])}' was given")
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return what follows the verb in the line of usage: MODEL where Typer writes {MODEL}."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options, without Python's names of their types."""
        for kind, title in (("argument", "Arguments"), ("option", "Options")):
            found = [one.get_help_record(ctx) for one in self.get_params(ctx) if one.param_type_name == kind]
            records = [(_TYPE.sub("", record[0]), record[1]) for record in found if record]
            if records:
                with formatter.section(title):
                    formatter.write_dl(records, col_max=26)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples as they are, never wrapped."""
        if self.epilog:
            with formatter.section("Examples"):
                formatter.write_text(f"\b\n{self.epilog.strip()}")


class Verbs(TyperGroup):
    """Verbs in the order of a user's way."""

    order: tuple[str, ...] = ()

    def get_help(self, ctx: Any) -> str:
        """Return the help, coloured for a terminal."""
        return _colour(super().get_help(ctx))

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the verbs in their order; Typer would put groups of verbs last."""
        found = super().list_commands(ctx)
        return sorted(found, key=lambda name: self.order.index(name) if name in self.order else len(found))

    format_epilog = Verb.format_epilog


def _colour(text: str) -> str:
    """Colour headings and options; what is printed elsewhere than in a terminal loses it again."""
    if "NO_COLOR" in os.environ:
        return text
    text = _HEADING.sub(lambda found: typer.style(found[0], bold=True), text)
    return _OPTION.sub(lambda found: typer.style(found[0], fg="cyan"), text)
