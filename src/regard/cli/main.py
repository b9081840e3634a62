"""The command `regard`: its verbs, and how mistakes are told.

Verbs import what they need when they run, so that `regard --help` answers at once.
"""

import errno
import os
import sys
from typing import Annotated, NoReturn

import typer

from regard import __version__
from regard.cli import config, demo, doctor, evaluate, inspect, prepare, score, train, translate
from regard.errors import RegardError, UserError

app = typer.Typer(
    name="regard",
    help="The Transformer of 'Attention Is All You Need' as a complete translation tool.",
    epilog="Start with: regard demo. Then: regard train --train a.en a.de --valid v.en v.de --out RUN",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="rich",
)
app.command("demo")(demo.demo)
app.command("train")(train.train)
app.command("prepare")(prepare.prepare)
app.command("translate")(translate.translate)
app.command("evaluate")(evaluate.evaluate)
app.command("score")(score.score)
app.command("inspect")(inspect.inspect)
app.add_typer(config.app, name="config")
app.command("doctor")(doctor.doctor)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"regard {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def main() -> NoReturn:
    """Run the command line; a user's mistake ends with its message and exit code 2, never with a traceback."""
    try:
        app()
    except UserError as error:
        _end(str(error), 2)
    except RegardError as error:
        _end(str(error), getattr(error, "exit_code", 1))
    except KeyboardInterrupt:
        _end("interrupted", 130)
    except BrokenPipeError:
        # Whoever read our output has gone; keep Python from complaining when it closes standard output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS):
            raise
        _end(f"{error.filename or 'writing'}: {error.strerror}", 1)
    sys.exit(0)


def _end(message: str, code: int) -> NoReturn:
    print(f"regard: {message}", file=sys.stderr)
    sys.exit(code)
