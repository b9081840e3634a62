"""`regard data`: corpora by name."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.help import Verb, Verbs
from regard.cli.options import Progress, ProgressMode

if TYPE_CHECKING:
    from regard.corpora.describe import Corpus

DEFAULT_FOLDER = Path("data")
"""Where the recipes of this project look for corpora, from the folder above theirs."""

app = typer.Typer(
    cls=Verbs,
    help="Get corpora by name: listed, fetched, checked, written as text.",
    epilog="""
regard data list                             what there is
regard data show multi30k                    where it is from, on which terms
regard data get multi30k                     to data/multi30k
regard data get multi30k --from FOLDER       of files that are here already
""",
    invoke_without_command=True,
    rich_markup_mode=None,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="A corpus of 'regard data list'.")]


@app.callback()
def _list_if_nothing_else(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        list_all()


@app.command("list", cls=Verb, epilog="regard data list")
def list_all() -> None:
    """List the corpora: languages, size, licence."""
    from regard.cli.table import print_table
    from regard.corpora.catalogue import CORPORA

    rows = [
        [one.name, " ".join(one.languages), one.pairs, _to_fetch(one), one.licence, one.about]
        for one in CORPORA.values()
    ]
    print_table(["corpus", "languages", "pairs", "to fetch", "licence", "what it is"], rows)


@app.command(cls=Verb, epilog="regard data show wmt14-en-de")
def show(name: Name) -> None:
    """Say where a corpus is from, on which terms, and what is made of it."""
    from regard.corpora.catalogue import find_corpus
    from regard.corpora.get import describe_download

    corpus = find_corpus(name)
    print(f"{corpus.name}: {corpus.about}\n  languages  {' '.join(corpus.languages)}\n  pairs      {corpus.pairs}")
    print(f"  origin     {corpus.origin}\n  licence    {corpus.licence}")
    if corpus.notes:
        print(f"  note       {corpus.notes}")
    if corpus.recipe:
        print(f"  recipe     {corpus.recipe}")
    print("\nfetched:")
    for download in corpus.downloads:
        print(f"  {describe_download(download)}")
    print("\nwritten:")
    for text in corpus.texts:
        lines = f", {text.lines:,} lines" if text.lines else ""
        checksum = f", SHA-256 {text.sha256}" if text.sha256 else ""
        print(f"  {text.name}{lines}{checksum}")


@app.command(
    cls=Verb,
    epilog="regard data get multi30k\nregard data get multi30k --from FOLDER\nregard data get wmt14-en-de --out big",
)
def get(
    name: Name,
    source: Annotated[
        Path | None,
        typer.Option("--from", metavar="DIR", help="Take the files from this folder; fetch nothing."),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="The corpus goes to DIR/NAME.")
    ] = DEFAULT_FOLDER,
    progress: Progress = ProgressMode.AUTO,
) -> None:
    """Get a corpus: fetch it, check it, write it as text files.

    Fetching goes on where it broke off when the same command is run again. What was fetched stays in
    DIR/NAME/downloads, which may be removed. What is there and whole is not made again.
    """
    from regard.corpora.catalogue import find_corpus
    from regard.corpora.get import get as get_corpus
    from regard.corpora.get import summary
    from regard.progress import open_display

    corpus = find_corpus(name)
    display = open_display(progress.value)
    display.say(f"{corpus.name}: {corpus.about} · origin: {corpus.origin} · licence: {corpus.licence}")
    got = get_corpus(corpus, out / corpus.name, display, source=source)
    what = f"wrote {len(got.written)} texts" if got.written else "everything is here and whole"
    display.say(f"{what}; in {got.folder}: {summary(got.texts)}")
    display.say(f"train on it:  {next_command(corpus, out)}")


def next_command(corpus: "Corpus", out: Path) -> str:
    """Return the command that trains on a corpus: by its recipe if that is here and looks there."""
    run = Path("runs") / corpus.name
    if corpus.recipe and out == DEFAULT_FOLDER and Path(corpus.recipe).is_file():
        return f"regard train {corpus.recipe} --out {run}"
    source, target = corpus.languages[:2]
    folder = out / corpus.name
    train, valid = (f"{folder / part}.{source} {folder / part}.{target}" for part in ("train", "valid"))
    return f"regard train --train {train} --valid {valid} --out {run}"


def _to_fetch(corpus: "Corpus") -> str:
    """Say how much there is to fetch, as far as it is known."""
    unknown = f"{corpus.of_unknown_size} of unknown size" if corpus.of_unknown_size else ""
    known = f"{corpus.known_size / 1e6:,.0f} MB" if corpus.known_size else ""
    return " and ".join(part for part in (known, unknown) if part)
