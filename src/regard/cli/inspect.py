"""`regard inspect`: who looks at whom in a sentence."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import Device, ModelPath, Threads

EXAMPLES = """
regard inspect RUN "The old woman reads a letter." --out look
regard inspect RUN "A letter." --target "Ein Brief." --out look --format svg
"""
_FORMATS = ("png", "svg", "pdf")


def inspect(
    model: ModelPath,
    sentence: Annotated[str, typer.Argument(metavar="SENTENCE", help="A sentence to translate and to look into.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Where the pictures go.")] = Path("attention"),
    target: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Look at this translation instead of the model's own.")
    ] = None,
    formats: Annotated[
        list[str] | None,
        typer.Option(
            "--format", metavar="FORMAT", help=f"{', '.join(_FORMATS)}. Repeatable.", show_default="png and svg"
        ),
    ] = None,
    device: Device = "auto",
    threads: Threads = None,
) -> None:
    """Draw the attention of every head for a sentence.

    Writes a picture for each layer of encoder, decoder and cross-attention, an overview of each, and the word
    alignment; prints the alignment and a table of the heads.
    """
    from regard.attention_maps import describe_heads, draw, head_table
    from regard.cli.table import print_table
    from regard.errors import RegardError, UserError
    from regard.translator import load

    if not sentence.strip():
        raise UserError("the sentence is empty; there is nothing to look at")
    if out.exists() and not out.is_dir():
        raise UserError(f"{out}: is not a folder; choose another --out")
    chosen = tuple(formats or ("png", "svg"))
    unknown = [one for one in chosen if one not in _FORMATS]
    if unknown:
        raise UserError(f"no picture format {unknown[0]!r}; known: {', '.join(_FORMATS)}")
    translator = load(model, device=device, threads=threads)
    if target is None:
        found = translator.translate(sentence)
        if found.error is not None:
            raise RegardError(f"the sentence could not be translated: {found.error}")
        target = found.text
    maps = translator.look(sentence, target)
    print(f"{sentence}\n{target}\n")
    for source_word, target_word in translator.align(sentence, target):
        print(f"  {source_word} – {target_word}")
    print()
    header, *rows = head_table(describe_heads([maps]))
    print_table(header, rows)
    pictures = draw(maps, out, chosen)
    print(f"\n{len(pictures)} pictures in {out}")
