"""The command `regard`: its verbs, and how mistakes are told.

Verbs import what they need when they run, so that `regard --help` answers at once.
"""

import errno
import io
import os
import sys
from typing import Annotated, Any, NoReturn

import typer

from regard import __version__
from regard.cli import (
    config,
    data,
    demo,
    doctor,
    evaluate,
    finetune,
    inspect,
    paper,
    prepare,
    quantize,
    report,
    score,
    shortlist,
    train,
    translate,
)
from regard.cli.help import CONTEXT, Verb, Verbs
from regard.errors import RegardError, UserError
from regard.launch import read_launch

_SHARED = ("train", "finetune", "translate")  # what several processes can do together
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NOT_THE_USERS = (*_FULL, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM)


class _ReaderGoneError(Exception):
    """Whoever read standard output has closed it: `regard translate … | head -1`."""


class _Regard(Verbs):
    order = (
        "demo",
        "data",
        "train",
        "finetune",
        "prepare",
        "translate",
        "evaluate",
        "score",
        "inspect",
        "report",
        "quantize",
        "shortlist",
        "paper",
        "config",
        "doctor",
    )

    def invoke(self, ctx: Any) -> Any:
        """Run a verb. A closed pipe is told apart from other ends here, as Typer would make it exit code 1."""
        try:
            result = super().invoke(ctx)
            if sys.stdout is not None:
                sys.stdout.flush()
        except BrokenPipeError:
            raise _ReaderGoneError from None
        return result


app = typer.Typer(
    name="regard",
    cls=_Regard,
    help="The Transformer of 'Attention Is All You Need' as a complete translation tool.",
    epilog="""
regard demo                                    see it work, in a few minutes
regard train --train a.en a.de --valid v.en v.de --out RUN
regard translate RUN < text.en > text.de
regard VERB --help                             all about a verb, with examples
""",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings=CONTEXT,
    rich_markup_mode=None,
)
for _module, _verb in (
    (demo, demo.demo),
    (train, train.train),
    (finetune, finetune.finetune),
    (prepare, prepare.prepare),
    (translate, translate.translate),
    (evaluate, evaluate.evaluate),
    (score, score.score),
    (inspect, inspect.inspect),
    (report, report.report),
    (quantize, quantize.quantize),
    (shortlist, shortlist.shortlist),
    (doctor, doctor.doctor),
):
    app.command(cls=Verb, epilog=_module.EXAMPLES)(_verb)
app.add_typer(config.app, name="config")
app.add_typer(data.app, name="data")
app.add_typer(paper.app, name="paper")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"regard {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    ctx: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    launch = read_launch()
    if launch is not None and launch.size > 1 and ctx.invoked_subcommand not in _SHARED:
        raise UserError(
            f"'regard {ctx.invoked_subcommand}' is for one process; torchrun is for these: {', '.join(_SHARED)}"
        )


def main() -> NoReturn:
    """Run the command line; a user's mistake ends with its message and exit code 2, never with a traceback."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Text out is UTF-8 with "\n", as text in is, whatever the system's locale.
        sys.stdout.reconfigure(encoding="utf-8", errors="replace", newline="\n")
    try:
        app()
    except UserError as error:
        _end(str(error), 2)
    except RegardError as error:
        _end(str(error), getattr(error, "exit_code", 1))
    except KeyboardInterrupt:
        _end("interrupted", 130)
    except _ReaderGoneError:
        _drop_output()
        sys.exit(141)
    except OSError as error:
        if error.filename is None:  # most likely standard output
            _drop_output()
            what = "standard output: can't be written" if error.errno in _FULL else "reading or writing failed"
            _end(f"{what}: {error.strerror or error}", 1)
        _end(f"{error.filename}: {error.strerror}", 1 if error.errno in _NOT_THE_USERS else 2)
    sys.exit(0)


def _drop_output() -> None:
    """Let what is still to be written to standard output go nowhere, as Python would complain about it at its end."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _end(message: str, code: int) -> NoReturn:
    print(f"regard: {message}", file=sys.stderr)
    sys.exit(code)
