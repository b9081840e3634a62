"""`regard evaluate`: how good translations are."""

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from regard.cli.options import Device, Precision, PrecisionName, Progress, ProgressMode, Shortlist, Threads

if TYPE_CHECKING:
    from regard.evaluate import Comparison, Score

EXAMPLES = """
regard evaluate RUN test.en test.de
regard evaluate RUN test.en test.de -o test.out --against other.out
regard evaluate --hypothesis test.out --reference test.de
"""


def evaluate(
    model: Annotated[Path | None, typer.Argument(metavar="MODEL", help="A model's or run's folder.")] = None,
    source: Annotated[
        Path | None, typer.Argument(metavar="SOURCE", help="Text file for the model to translate.")
    ] = None,
    reference_text: Annotated[
        Path | None, typer.Argument(metavar="REFERENCE", help="Its translation by people, line by line.")
    ] = None,
    hypothesis: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Translations to score, instead of a model's.")
    ] = None,
    reference: Annotated[Path | None, typer.Option(metavar="FILE", help="The reference for --hypothesis.")] = None,
    against: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Another system's translations: compare, with a paired test.")
    ] = None,
    beam: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Beam for the model's translations; its own by default.")
    ] = None,
    language: Annotated[
        str,
        typer.Option("--to", metavar="LANGUAGE", help="Target language, for the paper's BLEU; the model's by default."),
    ] = "",
    tokenized: Annotated[
        bool, typer.Option("--tokenized", help="The text is tokenised already: sacreBLEU adds nothing.")
    ] = False,
    lowercase: Annotated[bool, typer.Option("--lowercase", help="Ignore upper and lower case.")] = False,
    bootstrap: Annotated[
        int, typer.Option(min=0, metavar="N", help="Draws for the 95 % intervals; 0 for none.")
    ] = 1000,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="OUT", help="Keep the model's translations here.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON: scores and comparisons.")] = False,
    device: Device = "auto",
    precision: Precision = PrecisionName.AUTO,
    shortlist: Shortlist = False,
    threads: Threads = None,
    progress: Progress = ProgressMode.AUTO,
) -> None:
    """Score a model, or given translations, by BLEU, chrF and TER.

    And by the paper's BLEU: that of tokenised text with compounds split at hyphens. Every score has a 95 % interval by
    bootstrap, and the signature that says how it was computed.
    """
    from regard.cli.lines import Failures, complaints, translate_all
    from regard.errors import UserError
    from regard.evaluate import compare, score_all
    from regard.progress import open_display

    display = open_display(progress.value)
    failures = Failures(complaints(display))
    other = _read(against) if against else None
    given = sum(one is not None for one in (model, source, reference_text, hypothesis, reference))
    if model and source and reference_text and given == 3:
        from regard.cli.windows import tell_precision
        from regard.translator import load  # torch, which the other form does without

        sources, references = _read_both(source, reference_text)
        translator = load(model, device=device, precision=precision.value, threads=threads, shortlist=shortlist)
        tell_precision(translator, precision.value, display)
        language = language or translator.settings.data.target_language
        with _maybe_open(output, [source, reference_text]) as out:
            beam = beam or translator.options.beam
            hypotheses = []
            for line in translate_all(translator, sources, display, failures, beam=beam):
                hypotheses.append(line)
                if out is not None:
                    out.write(f"{line}\n")
        name = model.resolve().name
    elif hypothesis and reference and given == 2:
        if output or beam or shortlist:
            raise UserError("--output, --beam and --shortlist are for a model's translations, not for --hypothesis")
        hypotheses, references = _read_both(hypothesis, reference)
        name = hypothesis.name
    else:
        raise UserError("give MODEL SOURCE REFERENCE, or --hypothesis FILE --reference FILE")
    how: dict[str, Any] = {"target_language": language, "bootstrap": bootstrap}
    how |= {"tokenized": tokenized, "lowercase": lowercase}
    comparisons: list[Comparison] = []
    if against and other is not None:
        comparisons = compare(hypotheses, other, references, names=(name, against.name), **how)
    show = _print_json if as_json else _print
    show(score_all(hypotheses, references, **how), comparisons)
    failures.end()


def _read(path: Path) -> list[str]:
    from regard.text.corpus import read_lines

    return list(read_lines(path))


def _read_both(one: Path, other: Path) -> tuple[list[str], list[str]]:
    from regard.errors import UserError
    from regard.settings import Corpus
    from regard.text.corpus import read_pairs

    pairs = list(read_pairs(Corpus(source=one, target=other)))
    if not pairs:
        raise UserError(f"{one}: is empty; there is nothing to score")
    return [pair.source for pair in pairs], [pair.target for pair in pairs]


def _maybe_open(path: Path | None, files: Sequence[Path]) -> AbstractContextManager[TextIO | None]:
    """Open the file to write to before anything is translated, so that no work is lost if that fails."""
    from regard.cli.lines import open_output

    return open_output(path, files) if path else nullcontext()


def _print_json(scores: "Sequence[Score]", comparisons: "Sequence[Comparison]") -> None:
    from dataclasses import asdict

    facts = {
        "scores": [asdict(one) for one in scores],
        "comparisons": [{**asdict(one), "difference": one.difference} for one in comparisons],
    }
    print(json.dumps(facts, indent=2, ensure_ascii=False))


def _print(scores: "Sequence[Score]", comparisons: "Sequence[Comparison]") -> None:
    width = max(len(one.name) for one in scores)
    for one in scores:
        interval = f"  [{one.interval[0]:.2f}, {one.interval[1]:.2f}]" if one.interval else ""
        print(f"{one.name:<{width}}  {one.value:6.2f}{interval}  {one.detail}".rstrip())
        print(f"{'':<{width}}  {one.signature}")
    for pair in comparisons:
        winner = pair.better()
        verdict = f"{winner} is better" if winner else "chance explains the difference"
        interval = f" [{pair.interval[0]:+.2f}, {pair.interval[1]:+.2f}]" if pair.interval else ""
        print(
            f"{pair.name:<{width}}  {pair.systems[0]} {pair.values[0]:.2f}, {pair.systems[1]} {pair.values[1]:.2f}: "
            f"{pair.difference:+.2f}{interval}, p = {pair.p_value:.4f}; {verdict}"
        )
