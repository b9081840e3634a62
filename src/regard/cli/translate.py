"""`regard translate`: lines in, lines out."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from regard.cli.options import Device, ModelPath, Progress, ProgressMode, Threads

if TYPE_CHECKING:
    from regard.translation import Candidate, SearchChanges, Translation


def translate(
    model: ModelPath,
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILE]...", help="Text files; standard input if there are none.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="OUT", help="Write here instead of standard output.")
    ] = None,
    beam: Annotated[int | None, typer.Option(min=1, help="Hypotheses kept at each step; 1 is greedy.")] = None,
    length_penalty: Annotated[float | None, typer.Option(min=0, help="α: above 0 favours longer translations.")] = None,
    extra_length: Annotated[
        int | None, typer.Option(min=0, help="Output may be longer than input by so many tokens.")
    ] = None,
    n_best: Annotated[
        int | None, typer.Option(min=1, help="Write so many translations of each line: 'line ||| text ||| score'.")
    ] = None,
    scores: Annotated[
        bool, typer.Option("--scores", help="Add a column with the score (log-probability over length penalty).")
    ] = False,
    alignments: Annotated[
        bool, typer.Option("--alignments", help="Add a column with the word alignment, such as '0-0 1-2 2-1'.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write a JSON object a line, with all of that.")] = False,
    sample: Annotated[
        bool, typer.Option("--sample", help="Draw translations by their probability instead of searching.")
    ] = False,
    temperature: Annotated[float, typer.Option(help="For --sample: below 1 is more careful.")] = 1.0,
    top_k: Annotated[int | None, typer.Option(min=1, help="For --sample: only the likeliest tokens.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="For --sample.")] = 1,
    batch_tokens: Annotated[
        int, typer.Option(min=1, help="Size of a batch: source tokens times hypotheses; bounds memory.")
    ] = 4096,
    device: Device = "auto",
    threads: Threads = None,
    progress: Progress = ProgressMode.AUTO,
) -> None:
    """Translate text line by line: as many lines out as in, in the same order.

    An empty line gives an empty line. A line that fails gives an empty line, is named on standard error, and makes the
    exit code 1.
    """
    from regard.cli.lines import read_input
    from regard.progress import open_display
    from regard.translator import load

    _refuse_overwriting(output, files or [])
    display = open_display(progress.value)
    translator = load(model, device=device, threads=threads)
    changes: SearchChanges = {"alignments": alignments or as_json, "batch_tokens": batch_tokens}
    for name, value in (
        ("beam", beam),
        ("length_penalty", length_penalty),
        ("extra_length", extra_length),
        ("n_best", n_best),
    ):
        if value is not None:
            changes[name] = value  # type: ignore[literal-required]
    if sample:
        changes.update({"sampling": True, "temperature": temperature, "top_k": top_k, "seed": seed})
    # Somebody who types wants an answer to each line; a stream goes faster in large windows.
    interactive = not files and sys.stdin.isatty()
    window = {"window": 1} if interactive else {}
    failed = 0
    with _open_output(output) as out, display.job("translating", unit="lines") as job:
        found = translator.translate_lines(read_input(files or [], display.say), **window, **changes)
        for number, translation in enumerate(found, start=1):
            if translation.error is not None:
                failed += 1
                display.say(f"line {number:,} could not be translated: {translation.error}")
            for line in _format(number, translation, n_best is not None, scores, alignments, as_json):
                out.write(line + "\n")
            if interactive:
                out.flush()
            job.advance()
    if failed:
        display.say(f"{failed:,} lines could not be translated and are empty in the output")
        raise typer.Exit(1)


def _format(
    number: int, translation: "Translation", n_best: bool, scores: bool, alignments: bool, as_json: bool
) -> Iterator[str]:
    from regard.attention_maps import pharaoh
    from regard.cli.lines import one_column, one_line

    if as_json:
        yield json.dumps(_as_dict(translation), ensure_ascii=False)
        return
    for candidate in translation.candidates if n_best else translation.candidates[:1]:
        columns = [f"{candidate.score:.4f}"] if scores or n_best else []
        columns += [pharaoh(candidate.alignment)] if alignments else []
        if n_best:
            yield " ||| ".join([str(number), one_line(candidate.text), *columns])
        elif columns:
            yield "\t".join([one_column(candidate.text), *columns])
        else:
            yield one_line(candidate.text)


def _as_dict(translation: "Translation") -> dict[str, object]:
    candidates = [_candidate_as_dict(candidate) for candidate in translation.candidates]
    answer: dict[str, object] = {"source": translation.source, **candidates[0]}
    if len(candidates) > 1:
        answer["others"] = candidates[1:]
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


def _refuse_overwriting(output: Path | None, files: list[Path]) -> None:
    from regard.errors import UserError

    if output is not None and output.exists() and any(path.exists() and path.samefile(output) for path in files):
        raise UserError(f"{output}: is read and written at the same time; choose another --output")


def _open_output(path: Path | None) -> TextIO:
    from regard.errors import UserError

    if path is None:
        # Standard output stays open; it is given anew as UTF-8 with "\n", whatever the system's locale.
        return open(sys.stdout.fileno(), "w", encoding="utf-8", errors="replace", newline="\n", closefd=False)
    try:
        return path.open("w", encoding="utf-8", errors="replace", newline="\n")
    except OSError as error:
        raise UserError(f"{path}: can't be written: {error.strerror}") from None
