"""`regard translate`: lines in, lines out."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.options import Device, ModelPath, Progress, ProgressMode, Threads

if TYPE_CHECKING:
    from regard.translation import Candidate, SearchChanges, Translation

EXAMPLES = """
regard translate RUN < text.en > text.de
regard translate RUN chapter1.en chapter2.en.gz -o book.de
echo "A sentence." | regard translate RUN --n-best 4 --beam 8
regard translate RUN text.en --scores --alignments > columns.tsv
regard translate RUN text.en --json | jq .score
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
            show_default="2048; 1 for lines that you type",
        ),
    ] = None,
    device: Device = "auto",
    threads: Threads = None,
    progress: Progress = ProgressMode.AUTO,
) -> None:
    """Translate text line by line: N lines in, N lines out, in order.

    An empty line gives an empty line. A line that fails gives an empty line, is named on standard error, and makes the
    exit code 1. A text too long for the model is split at sentence ends and put together again.

    Columns (--scores, --alignments) follow the text and are separated by tabs.
    """
    from regard.cli.lines import Failures, check_input, complaints, open_output, read_input
    from regard.errors import UserError
    from regard.progress import open_display
    from regard.translator import WINDOW, load

    check_input(files or [])
    if not sample and any(one is not None for one in (temperature, top_k, seed)):
        raise UserError("--temperature, --top-k and --seed are for --sample; add it, or leave them out")
    if progress is ProgressMode.AUTO and output is None and sys.stdout is not None and sys.stdout.isatty():
        progress = ProgressMode.PLAIN  # a bar would stand in the way of the text
    display = open_display(progress.value)
    translator = load(model, device=device, threads=threads)
    asked = {"beam": beam, "length_penalty": length_penalty, "extra_length": extra_length, "n_best": n_best}
    drawing = {"temperature": temperature, "top_k": top_k, "seed": seed}
    changes: SearchChanges = {"alignments": alignments or as_json, "batch_tokens": batch_tokens, "sampling": sample}
    changes.update({name: value for name, value in (asked | drawing).items() if value is not None})  # type: ignore[typeddict-item]
    # Somebody who types wants an answer to each line; a stream goes faster in large windows.
    window = window or (1 if not files and sys.stdin is not None and sys.stdin.isatty() else WINDOW)
    formats = _formatter(n_best is not None, scores, alignments, as_json)
    complain = complaints(display)
    failures = Failures(complain)
    found = translator.translate_lines(read_input(files or [], complain), window, **changes)
    with open_output(output, files or []) as out, display.job("translating", unit="lines") as job:
        for number, translation in enumerate(failures.watch(found), start=1):
            out.writelines(f"{line}\n" for line in formats(number, translation))
            if number % window == 0:
                out.flush()
            job.advance()
    failures.end()


def _formatter(
    n_best: bool, scores: bool, alignments: bool, as_json: bool
) -> "Callable[[int, Translation], Iterator[str]]":
    """Return what writes a translation, given the number of its line, as the lines that were asked for."""
    from regard.attention_maps import pharaoh
    from regard.cli.lines import one_column, one_line

    def columns(candidate: "Candidate") -> list[str]:
        score = [f"{candidate.score:.4f}"] if scores or n_best else []
        return score + ([pharaoh(candidate.alignment)] if alignments else [])

    def as_json_line(number: int, translation: "Translation") -> Iterator[str]:
        yield json.dumps(_as_dict(translation), ensure_ascii=False)

    def as_list(number: int, translation: "Translation") -> Iterator[str]:
        for one in translation.candidates:
            yield " ||| ".join([str(number), one_line(one.text), *columns(one)])

    def as_columns(number: int, translation: "Translation") -> Iterator[str]:
        best = translation.candidates[0]
        yield "\t".join([one_column(best.text), *columns(best)])

    def as_text(number: int, translation: "Translation") -> Iterator[str]:
        yield one_line(translation.text)

    if as_json:
        return as_json_line
    if n_best:
        return as_list
    return as_columns if scores or alignments else as_text


def _as_dict(translation: "Translation") -> dict[str, object]:
    best, *others = [_candidate_as_dict(candidate) for candidate in translation.candidates]
    answer: dict[str, object] = {"source": translation.source, **best}
    if others:
        answer["others"] = others
    if translation.error is not None:
        answer["error"] = translation.error
    return answer


def _candidate_as_dict(candidate: "Candidate") -> dict[str, object]:
    return {
        "text": candidate.text,
        "score": None if candidate.score == float("-inf") else candidate.score,
        "log_probability": candidate.log_probability,
        "tokens": candidate.tokens,
        "token_scores": candidate.token_scores,
        "alignment": candidate.alignment,
    }
