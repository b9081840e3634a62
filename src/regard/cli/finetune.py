"""`regard finetune`: a model, trained further on other text."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import Device, ModelPath, OutFolder, Overrides, Processes, Progress, ProgressMode, Threads
from regard.cli.train import Files, SourceLanguage, Tables, TargetLanguage, TensorBoard, ValidFiles, ValidTables, follow

EXAMPLES = """
regard finetune MODEL --train new.en new.de --valid v.en v.de --out RUN
regard finetune MODEL recipe.toml --out RUN --set training.learning_rate=1e-4
regard finetune MODEL --train-pairs memory.tsv --out RUN --set model.dropout=0
"""


def finetune(
    model: ModelPath,
    out: OutFolder,
    recipe: Annotated[
        Path | None, typer.Argument(metavar="RECIPE.toml", help="Settings; where it is silent, what suits few data.")
    ] = None,
    train_files: Files = None,
    valid_files: ValidFiles = None,
    train_pairs: Tables = None,
    valid_pairs: ValidTables = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    overrides: Overrides = None,
    device: Device = "auto",
    processes: Processes = None,
    threads: Threads = None,
    tensorboard: TensorBoard = False,
    progress: Progress = ProgressMode.AUTO,
) -> None:
    """Train a model further, on other text.

    Begins from a model's weights, with a new optimizer, a small learning rate and few steps, and with settings of its
    own; architecture, vocabulary and languages stay the model's. The finished model is in RUN/model, MODEL stays as it
    is. Stopped or killed, it goes on where it was when the same command is run again.
    """
    from regard.cli.corpora import CorpusOptions, given_settings
    from regard.launch import read_launch
    from regard.progress import open_display
    from regard.training.finetune import finetune as run_finetuning

    launch = read_launch()
    if launch is not None and not launch.is_first:
        follow(launch)
        return
    display = open_display(progress.value)
    options = CorpusOptions(train_files, valid_files, train_pairs, valid_pairs, source_language, target_language)
    settings = given_settings(recipe, options, overrides or [])
    finished = run_finetuning(
        model,
        settings,
        out,
        display=display,
        device=device,
        processes=processes,
        threads=threads,
        tensorboard=tensorboard,
    )
    display.say(f"translate with it:  regard translate {finished} < text")
