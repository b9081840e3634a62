"""`regard report`: a finished training's page, written again."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import Device, Progress, ProgressMode, Threads

EXAMPLES = """
regard report RUN
"""


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a finished run.")],
    device: Device = "auto",
    threads: Threads = None,
    progress: Progress = ProgressMode.AUTO,
) -> None:
    """Write the page that shows how a training went again.

    Training writes RUN/report.html when it is done: one page, without network. This verb translates the validation
    text again and writes the page anew.
    """
    from regard.data.report import Report
    from regard.errors import FileFormatError
    from regard.files import read_json, read_record
    from regard.model_folder import FACTS, WEIGHTS
    from regard.progress import open_display
    from regard.training.finish import score_validation
    from regard.training.report import check_facts, write_report
    from regard.training.run import Run
    from regard.translator import load

    display = open_display(progress.value)
    folders = Run(run)
    if not (folders.model / WEIGHTS).exists():
        raise FileFormatError(run, "no finished run here: there is no model in it")
    facts = read_json(folders.model / FACTS)
    check_facts(folders, facts)
    translator = load(run, device=device, threads=threads)
    pairs, translations, scores = score_validation(translator, display)
    lines = read_record(run / "data" / "report.json", Report, may_miss=("segmentations",)).lines()
    path = write_report(folders, translator, facts, lines, pairs, translations, scores)
    print(path)
