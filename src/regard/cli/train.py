"""`regard train`: from text to a model."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.options import Device, OutFolder, Overrides, Processes, Progress, ProgressMode, Threads

if TYPE_CHECKING:
    from regard.launch import Launch

EXAMPLES = """
regard train --train a.en a.de --valid v.en v.de --out RUN
regard train --train-pairs memory.tsv --from en --to de --out RUN
regard train recipe.toml --out RUN --set training.warmup=8000
regard train --train a.en a.de --preset small --out RUN
torchrun --nproc-per-node=8 -m regard train recipe.toml --out RUN
"""

Files = Annotated[
    tuple[Path, Path] | None,
    typer.Option("--train", metavar="SOURCE TARGET", help="Two text files, a sentence a line; plain or gzip."),
]
ValidFiles = Annotated[
    tuple[Path, Path] | None,
    typer.Option("--valid", metavar="SOURCE TARGET", help="Validation text, as for --train."),
]
Tables = Annotated[
    Path | None, typer.Option("--train-pairs", metavar="FILE", help="Tab-separated pairs, instead of --train.")
]
ValidTables = Annotated[
    Path | None, typer.Option("--valid-pairs", metavar="FILE", help="Validation pairs, instead of --valid.")
]
SourceLanguage = Annotated[
    str | None, typer.Option("--from", metavar="LANGUAGE", help="Source language; else from the file's ending.")
]
TargetLanguage = Annotated[
    str | None, typer.Option("--to", metavar="LANGUAGE", help="Target language; else from the file's ending.")
]
TensorBoard = Annotated[bool, typer.Option("--tensorboard", help="Also log for TensorBoard.")]


def train(
    out: OutFolder,
    recipe: Annotated[
        Path | None, typer.Argument(metavar="RECIPE.toml", help="Settings; the paper's where it is silent.")
    ] = None,
    train_files: Files = None,
    valid_files: ValidFiles = None,
    train_pairs: Tables = None,
    valid_pairs: ValidTables = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    preset: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Named settings (see 'regard config list'); else chosen by the corpus's size."
        ),
    ] = None,
    overrides: Overrides = None,
    device: Device = "auto",
    processes: Processes = None,
    threads: Threads = None,
    tensorboard: TensorBoard = False,
    progress: Progress = ProgressMode.AUTO,
) -> None:
    """Train a translator from two text files or by a recipe.

    Two text files are enough: languages are read off their endings, and a preset is chosen by their size. The finished
    model is in RUN/model. Stopped or killed, training goes on where it was when the same command is run again. For
    several corpora with weights, write a recipe; 'regard config' explains what can be in it.
    """
    from regard.cli.corpora import CorpusOptions, gather_settings
    from regard.launch import read_launch
    from regard.progress import open_display
    from regard.training.loop import train as run_training

    launch = read_launch()
    if launch is not None and not launch.is_first:
        follow(launch)
        return
    display = open_display(progress.value)
    options = CorpusOptions(train_files, valid_files, train_pairs, valid_pairs, source_language, target_language)
    settings = gather_settings(recipe, options, preset, overrides or [], display)
    model = run_training(
        settings, out, display=display, device=device, processes=processes, threads=threads, tensorboard=tensorboard
    )
    display.say(f"translate with it:  regard translate {model} < text")


def follow(launch: "Launch") -> None:
    """Train as one of torchrun's processes that is not the first: that one reads the options and says everything."""
    from regard.training.loop import follow_training
    from regard.training.stop import TrainingStopped

    try:
        follow_training(launch)
    except TrainingStopped as stopped:
        raise typer.Exit(stopped.exit_code) from None
