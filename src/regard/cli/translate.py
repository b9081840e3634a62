"""`regard translate`: lines in, lines out."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.options import (
    Device,
    ModelPath,
    Precision,
    PrecisionName,
    Progress,
    ProgressMode,
    Shortlist,
    Threads,
)

if TYPE_CHECKING:
    from regard.translation import SearchChanges

EXAMPLES = """
regard translate RUN < text.en > text.de
regard translate RUN chapter1.en chapter2.en.gz -o book.de
echo "A sentence." | regard translate RUN --n-best 4 --beam 8
regard translate RUN text.en --scores --alignments > columns.tsv
regard translate RUN text.en --json | jq .score
regard translate RUN large.en -o large.de --precision int8 --processes 4
torchrun --nproc-per-node=8 -m regard translate RUN large.en -o large.de
"""


def translate(
    model: ModelPath,
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE", help="Text files, plain or gzip; none, or -: standard input."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="OUT", help="Write here instead of standard output.")
    ] = None,
    beam: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Hypotheses kept at each step; 1 is greedy.")
    ] = None,
    length_penalty: Annotated[
        float | None, typer.Option(min=0, metavar="α", help="Above 0 favours longer translations.")
    ] = None,
    extra_length: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Output may be longer than input by so many tokens.")
    ] = None,
    n_best: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Write so many translations of each line, best first: 'line ||| text ||| score'."
        ),
    ] = None,
    scores: Annotated[
        bool, typer.Option("--scores", help="Add a column with the score: log-probability over length penalty.")
    ] = False,
    alignments: Annotated[
        bool,
        typer.Option(
            "--alignments", help="Add a column of words, source-target, counted from 0, such as '0-0 1-2 2-1'."
        ),
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Write a JSON object a line: source, text, score, log_probability, tokens, token_scores, alignment; "
            "with --n-best, others; error where a line failed.",
        ),
    ] = False,
    sample: Annotated[
        bool, typer.Option("--sample", help="Draw translations by their probability instead of searching.")
    ] = False,
    temperature: Annotated[
        float | None, typer.Option(metavar="T", help="For --sample: below 1 is more careful.", show_default="1")
    ] = None,
    top_k: Annotated[int | None, typer.Option(min=1, metavar="N", help="For --sample: only the N likeliest.")] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="For --sample: another seed, other draws.", show_default="1")
    ] = None,
    batch_tokens: Annotated[
        int, typer.Option(min=1, metavar="N", help="Size of a batch: source tokens times hypotheses; bounds memory.")
    ] = 4096,
    window: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Lines read before the first is written: many are faster, 1 answers each at once.",
            show_default="2048; 512 for several processes; 1 for lines that you type",
        ),
    ] = None,
    device: Device = "auto",
    precision: Precision = PrecisionName.AUTO,
    shortlist: Shortlist = False,
    processes: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Processes that share the lines, each with a copy of the model.",
            show_default="on a CPU the first lines tell, if there are many; else 1",
        ),
    ] = None,
    threads: Threads = None,
    progress: Progress = ProgressMode.AUTO,
) -> None:
    """Translate text line by line: N lines in, N lines out, in order.

    An empty line gives an empty line. A line that fails gives an empty line, is named on standard error, and makes the
    exit code 1. A text too long for the model is split at sentence ends and put together again.

    Columns (--scores, --alignments) follow the text and are separated by tabs.
    """
    from regard.cli.forms import Form
    from regard.cli.lines import check_input
    from regard.cli.windows import Order, follow_order, translate_files
    from regard.errors import UserError
    from regard.launch import read_launch
    from regard.progress import open_display

    launch = read_launch()
    if launch is not None:
        launch.refuse_processes(processes)
        if not launch.is_first:
            follow_order(launch)
            return
    check_input(files or [])
    if not sample and any(one is not None for one in (temperature, top_k, seed)):
        raise UserError("--temperature, --top-k and --seed are for --sample; add it, or leave them out")
    if sample and shortlist:
        raise UserError("--sample draws from the whole vocabulary; leave out --shortlist")
    if progress is ProgressMode.AUTO and output is None and sys.stdout is not None and sys.stdout.isatty():
        progress = ProgressMode.PLAIN  # a bar would stand in the way of the text
    asked = {"beam": beam, "length_penalty": length_penalty, "extra_length": extra_length, "n_best": n_best}
    drawing = {"temperature": temperature, "top_k": top_k, "seed": seed}
    changes: SearchChanges = {"alignments": alignments or as_json, "batch_tokens": batch_tokens, "sampling": sample}
    changes.update({name: value for name, value in (asked | drawing).items() if value is not None})  # type: ignore[typeddict-item]
    form = Form(n_best is not None, scores, alignments, as_json)
    order = Order(str(model), device, precision.value, threads, changes, form, shortlist)
    translate_files(order, files or [], output, window, processes, launch, open_display(progress.value))
