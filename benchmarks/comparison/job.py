"""What a child process is told to do, and how it answers: JSON, a line each way.

A child is started with its job as its only argument. It first writes what it can try (`axes`), then answers each
setting that it is sent with the facts of one measurement.
"""

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from comparison.shapes import SHAPES, Shape

Setting = dict[str, Any]
Facts = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """A kind of work, on what, and with which model."""

    kind: str  # "training", "memory", "translation" or "latency"
    shape_name: str
    folder: str  # with the materials
    precision: str = "float32"
    beam: int = 1
    quick: bool = False

    @property
    def shape(self) -> Shape:
        """The model's size and the data's."""
        return SHAPES[self.shape_name]

    def material(self, name: str) -> Path:
        """Return the path of a material."""
        return Path(self.folder) / name

    def read(self, name: str) -> Any:
        """Return what a material in JSON says."""
        return json.loads(self.material(name).read_text())

    def steps(self, sample: bool = False) -> tuple[int, int]:
        """Return how many steps of training warm up, and how many are measured."""
        warmup, steps = self.shape.warmup_steps, self.shape.steps
        few = sample or self.quick or self.kind == "memory"
        return (max(1, warmup // 3), max(2, steps // 3)) if few else (warmup, steps)

    def to_json(self) -> str:
        """Write the job as a child's argument."""
        return json.dumps(asdict(self))


@dataclass(frozen=True)
class Engine:
    """What measures in a child: a function from a setting to facts, and the settings that are worth trying.

    `axes` has for each part of a setting its values; the first ones are the setting to begin with.
    """

    measure: Callable[[Setting], Facts]
    axes: Mapping[str, Sequence[Any]] = field(default_factory=dict)


def serve(engines: Mapping[str, Callable[[Job], Engine]]) -> None:
    """Be a child: make the engine for the job's kind and answer until there is no more to answer."""
    job = Job(**json.loads(sys.argv[1]))
    # What libraries print must not come between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    engine = engines[job.kind](job)
    print(json.dumps({"axes": engine.axes}), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(engine.measure(json.loads(line))), file=answers, flush=True)
