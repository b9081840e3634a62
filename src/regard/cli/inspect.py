"""`regard inspect`: who looks at whom in a sentence."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import Device, ModelPath, Threads


def inspect(
    model: ModelPath,
    sentence: Annotated[str, typer.Argument(help="A sentence to translate and to look into.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Where the pictures go.")],
    target: Annotated[str | None, typer.Option(help="Look at this translation instead of the model's own.")] = None,
    formats: Annotated[
        list[str] | None, typer.Option("--format", help="png, svg or pdf. Repeatable; png and svg by default.")
    ] = None,
    device: Device = "auto",
    threads: Threads = None,
) -> None:
    """Draw the attention of every layer and head for a sentence, and say what each head does.

    Writes a picture for each layer of encoder, decoder and cross-attention, an overview of each, and the word
    alignment; prints the alignment and a table of the heads.
    """
    from regard.attention_maps import describe_heads, draw, head_table
    from regard.cli.table import print_table
    from regard.errors import UserError
    from regard.translator import load

    if not sentence.strip():
        raise UserError("the sentence is empty; there is nothing to look at")
    chosen = tuple(formats or ("png", "svg"))
    unknown = [one for one in chosen if one not in ("png", "svg", "pdf")]
    if unknown:
        raise UserError(f"no picture format {unknown[0]!r}; known: png, svg, pdf")
    translator = load(model, device=device, threads=threads)
    found = translator.translate(sentence, alignments=True)
    maps = translator.look(sentence, target)
    typer.echo(f"{sentence}\n{target if target is not None else found.text}\n")
    if target is None:
        source_words, target_words = sentence.split(), found.text.split()
        for source, aligned in found.alignment:
            typer.echo(f"  {source_words[source]} – {target_words[aligned]}")
        typer.echo()
    header, *rows = head_table(describe_heads([maps]))
    print_table(header, rows)
    pictures = draw(maps, out, chosen)
    typer.echo(f"\n{len(pictures)} pictures in {out}")
