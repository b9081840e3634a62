"""A language of digits, small enough to be trained on in seconds: what the tests of training share."""

import os
import random
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import load_file
from torch import Tensor

from regard.progress import Display, Fact, Job
from regard.settings import Settings, resolve

Task = Callable[[list[str]], list[str]]

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
TORCHRUN = str(Path(sys.executable).parent / "torchrun")
MODEL = {"d_model": 32, "d_ff": 32, "heads": 2, "encoder_layers": 1, "decoder_layers": 1}
TRAINING = {
    "steps": 12,
    "batch_tokens": 160,
    "micro_batch_tokens": 40,
    "warmup": 10,
    "learning_rate": 0.01,
    "log_steps": 1,
    "checkpoint_steps": 4,
    "checkpoint_minutes": 0,
    "validation_sentences": 6,
}


def copied(digits: list[str]) -> list[str]:
    return digits


def reversed_(digits: list[str]) -> list[str]:
    return digits[::-1]


def write_corpus(
    folder: Path, task: Task = copied, sizes: Mapping[str, int] | None = None, lengths: tuple[int, int] = (2, 6)
) -> Path:
    """Write files such as train.src and train.tgt; no sentence is in two of them, or twice in one."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = random.Random(7)
    seen: set[str] = set()
    for name, size in (sizes or {"train": 300, "valid": 12}).items():
        with (folder / f"{name}.src").open("w") as source, (folder / f"{name}.tgt").open("w") as target:
            for _ in range(size):
                while (text := " ".join(generator.choices("0123456789", k=generator.randint(*lengths)))) in seen:
                    pass
                seen.add(text)
                print(text, file=source)
                print(" ".join(task(text.split())), file=target)
    return folder


def recipe(
    corpus: Path,
    *,
    valid: bool = True,
    model: Mapping[str, Any] | None = None,
    data: Mapping[str, Any] | None = None,
    **training: Any,
) -> Settings:
    """Settings for a tiny model on a corpus of digits."""

    def files(name: str) -> list[dict[str, str]]:
        return [{"source": str(corpus / f"{name}.src"), "target": str(corpus / f"{name}.tgt")}]

    return resolve(
        {
            "model": {**MODEL, **(model or {})},
            "data": {
                "train": files("train"),
                "valid": files("valid") if valid else [],
                "vocabulary_size": 300,
                **(data or {}),
            },
            "training": {**TRAINING, **training},
            "search": {"extra_length": 4},  # a model that has learned little goes on to the limit
        }
    )


class Words(Display):
    """A display that remembers what was said."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __str__(self) -> str:
        return "\n".join(self.lines)

    def say(self, text: str, facts: Mapping[str, Fact] | None = None) -> None:
        self.lines.append(text)

    def begin(self, job: Job) -> None:
        self.lines.append(job.title)

    def refresh(self, job: Job) -> None:
        pass

    def end(self, job: Job) -> None:
        pass


# ---- real processes --------------------------------------------------------------------------------------------------

started: "list[subprocess.Popen[str]]" = []
"""All that were; the tests see to it that none is left."""


def start_training(
    settings: Settings, out: Path, processes: int = 1, *, more: str = "", own_group: bool = True
) -> "subprocess.Popen[str]":
    """Start `regard train` in a process of its own; `more` is Python that it runs first."""
    recipe = out.parent / f"{out.name}.toml"
    recipe.write_text(settings.to_toml(), encoding="utf-8")
    words = ["regard", "train", recipe, "--out", out, "--processes", processes, "--threads", "1", "--progress", "plain"]
    code = f"import sys; sys.argv = {list(map(str, words))!r}\n{more}\nfrom regard.cli.main import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, env=ENVIRONMENT, start_new_session=own_group
    )
    started.append(process)
    return process


def start_torchrun(
    settings: Settings, out: Path, *options: str, more: str = "", name: str = ""
) -> "subprocess.Popen[str]":
    """Start `torchrun OPTIONS -m regard train`; `more` is Python that each of its processes runs first."""
    recipe = out.parent / f"{out.name}{name}.toml"
    recipe.write_text(settings.to_toml(), encoding="utf-8")
    what = ["-m", "regard"]
    if more:
        script = recipe.with_suffix(".py")
        script.write_text(f"{more}\nfrom regard.cli.main import main; main()", encoding="utf-8")
        what = [str(script)]
    words = [*what, "train", str(recipe), "--out", str(out), "--threads", "1", "--progress", "plain"]
    process = subprocess.Popen(
        [TORCHRUN, *options, *words], stderr=subprocess.PIPE, text=True, env=ENVIRONMENT, start_new_session=True
    )
    started.append(process)
    return process


def helpers_of(process: "subprocess.Popen[str]") -> list[int]:
    """The ids of a process's children."""
    found = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return [int(word) for word in found.read_text().split()]


def is_alive(process_id: int) -> bool:
    """Say whether a process runs: it is there, and more than an entry that nobody has read yet."""
    try:
        state = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


# ---- comparing -------------------------------------------------------------------------------------------------------


def weights_of(folder: Path) -> dict[str, Tensor]:
    return load_file(folder / "weights.safetensors")


def same_weights(one: Path, other: Path) -> bool:
    """Say whether two folders hold the same weights, bit by bit."""
    return (one / "weights.safetensors").read_bytes() == (other / "weights.safetensors").read_bytes()


def files_below(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Every file below a folder with its contents and the time of its last change."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
