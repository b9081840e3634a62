"""Tables for terminals."""

import shutil
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], title: str | None = None) -> None:
    """Print a table to standard output: aligned and wrapped in a terminal, tab-separated elsewhere."""
    if not sys.stdout.isatty():
        for row in [header, *rows]:
            print("\t".join(row))
        return
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for number, name in enumerate(header):
        table.add_column(name, no_wrap=number == 0)
    for row in rows:
        table.add_row(*row)
    Console(width=min(shutil.get_terminal_size().columns, 140), highlight=False, markup=False).print(table)
