"""`regard evaluate`: how good translations are."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.options import Device, Json, Progress, ProgressMode, Threads

if TYPE_CHECKING:
    from regard.evaluate import Comparison, Score


def evaluate(
    model: Annotated[Path | None, typer.Argument(metavar="[MODEL]", help="A model's or run's folder.")] = None,
    source: Annotated[Path | None, typer.Argument(metavar="[SOURCE]", help="Text for the model to translate.")] = None,
    reference_text: Annotated[
        Path | None, typer.Argument(metavar="[REFERENCE]", help="Its translation by people, line by line.")
    ] = None,
    hypothesis: Annotated[Path | None, typer.Option(help="Translations to score, instead of a model's.")] = None,
    reference: Annotated[Path | None, typer.Option(help="The reference for --hypothesis.")] = None,
    against: Annotated[
        Path | None, typer.Option(help="Another system's translations: compare, with a paired test.")
    ] = None,
    beam: Annotated[int | None, typer.Option(min=1, help="Beam for the model's translations.")] = None,
    language: Annotated[
        str, typer.Option("--to", help="Target language, for the paper's BLEU; the model's own by default.")
    ] = "",
    tokenized: Annotated[
        bool, typer.Option("--tokenized", help="The text is tokenised already: sacreBLEU adds nothing.")
    ] = False,
    lowercase: Annotated[bool, typer.Option("--lowercase", help="Ignore upper and lower case.")] = False,
    bootstrap: Annotated[int, typer.Option(min=0, help="Draws for the 95 % intervals; 0 for none.")] = 1000,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Keep the model's translations here.")] = None,
    as_json: Json = False,
    device: Device = "auto",
    threads: Threads = None,
    progress: Progress = ProgressMode.AUTO,
) -> None:
    """Score a model, or given translations, by BLEU, chrF, TER and the paper's own BLEU, with 95 % intervals."""
    from regard.errors import UserError
    from regard.evaluate import compare, score_all
    from regard.progress import open_display
    from regard.text.corpus import read_lines

    display = open_display(progress.value)
    if hypothesis is not None and model is None and reference is not None:
        hypotheses, references, name = list(read_lines(hypothesis)), list(read_lines(reference)), hypothesis.name
    elif model is not None and source is not None and reference_text is not None and hypothesis is None:
        from regard.cli.lines import one_line
        from regard.translator import load

        references, name = list(read_lines(reference_text)), model.name
        sources = list(read_lines(source))
        if len(sources) != len(references):
            raise UserError(f"{source} has {len(sources):,} lines, {reference_text} has {len(references):,}")
        translator = load(model, device=device, threads=threads)
        language = language or translator.settings.data.target_language
        with display.job("translating", len(sources), "lines") as job:
            hypotheses = []
            for found in translator.translate_lines(sources, beam=beam or translator.options.beam):
                hypotheses.append(one_line(found.text))
                job.advance()
    else:
        raise UserError("give MODEL SOURCE REFERENCE, or --hypothesis FILE --reference FILE")
    if output is not None:
        output.write_text("".join(f"{line}\n" for line in hypotheses), encoding="utf-8")
    scores = score_all(
        hypotheses,
        references,
        target_language=language,
        bootstrap=bootstrap,
        tokenized=tokenized,
        lowercase=lowercase,
    )
    comparisons: Sequence[Comparison] = []
    if against is not None:
        comparisons = compare(
            hypotheses,
            list(read_lines(against)),
            references,
            names=(name, against.name),
            target_language=language,
            bootstrap=bootstrap,
            tokenized=tokenized,
            lowercase=lowercase,
        )
    _show(scores, comparisons, as_json)


def _show(scores: "Sequence[Score]", comparisons: "Sequence[Comparison]", as_json: bool) -> None:
    if as_json:
        facts = {
            "scores": [asdict(one) for one in scores],
            "comparisons": [{**asdict(one), "difference": one.difference} for one in comparisons],
        }
        typer.echo(json.dumps(facts, indent=2, ensure_ascii=False))
        return
    width = max(len(one.name) for one in scores)
    for one in scores:
        interval = f"  [{one.interval[0]:.2f}, {one.interval[1]:.2f}]" if one.interval else ""
        typer.echo(f"{one.name:<{width}}  {one.value:6.2f}{interval}  {one.detail}".rstrip())
        typer.echo(f"{'':<{width}}  {one.signature}")
    for pair in comparisons:
        winner = pair.better()
        verdict = f"{winner} is better" if winner else "chance explains the difference"
        interval = f" [{pair.interval[0]:+.2f}, {pair.interval[1]:+.2f}]" if pair.interval else ""
        typer.echo(
            f"{pair.name:<{width}}  {pair.systems[0]} {pair.values[0]:.2f}, {pair.systems[1]} {pair.values[1]:.2f}: "
            f"{pair.difference:+.2f}{interval}, p = {pair.p_value:.4f}; {verdict}"
        )
