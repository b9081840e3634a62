"""Options that several verbs share, and what they are turned into."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class ProgressMode(StrEnum):
    """How long work shows itself on standard error."""

    AUTO = "auto"
    TERMINAL = "terminal"
    PLAIN = "plain"
    JSON = "json"
    QUIET = "quiet"


class PrecisionName(StrEnum):
    """Types of numbers in which matrix products run."""

    AUTO = "auto"
    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    INT8 = "int8"


ModelPath = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model's folder, a run's folder, or one of a run's checkpoints.")
]
OutFolder = Annotated[Path, typer.Option("--out", "-o", metavar="RUN", help="The run's folder; made if needed.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a setting, such as training.warmup=8000. Repeatable."),
]
Progress = Annotated[
    ProgressMode,
    typer.Option(
        "--progress",
        metavar="HOW",
        help="How progress is shown on standard error: terminal (a bar), plain, json, quiet, or auto.",
    ),
]
Device = Annotated[str, typer.Option(metavar="NAME", help="Where to compute: auto, cpu, cuda, cuda:1, mps.")]
Precision = Annotated[
    PrecisionName,
    typer.Option(
        metavar="TYPE",
        help="Numbers that products are made of: int8 is fastest on a CPU, float32 exact; bfloat16; auto: as the model "
        "was written.",
    ),
]
Shortlist = Annotated[
    bool,
    typer.Option(
        "--shortlist", help="Consider only the likely words of each sentence, which 'regard shortlist' has found."
    ),
]
Threads = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Threads to compute with; all cores unless given.")
]
Processes = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Processes that share the work; chosen to suit the machine if not given."),
]
