"""Sockeye: training by its own command, post-norm as in the paper."""

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from comparison.job import Engine, Facts, Job, serve
from comparison.training_commands import Length, training

_SPEED = re.compile(r"B=(\d+)\s+s/sec=\S+ tok/sec=\S+ u/sec=(\S+)")
_BUCKET = re.compile(r"Bucket \(\d+, \d+\): (\d+) samples in (\d+) batches of (\d+)")
_HELD_OUT = 8  # pairs to validate on, because Sockeye will not train without

# `sockeye-train`, but for telling its speed every so many batches; it does so every 50, which for the base model is
# minutes. The rest of the command line is its own.
_MORE_OFTEN = """
import sys, sockeye.constants
sockeye.constants.MEASURE_SPEED_EVERY = int(sys.argv.pop(1))
from sockeye.train import main
main()
"""


def by_command(job: Job) -> Engine:
    """Run `sockeye-train`."""
    shape = job.shape

    def prepare(folder: Path, length: Length) -> Sequence[object]:
        _write_vocabulary(job, folder / "vocabulary.json")
        for side in ("source", "target"):
            lines = job.material(f"spaced.{side}").read_text().splitlines(keepends=True)
            (folder / f"valid.{side}").write_text("".join(lines[:_HELD_OUT]))
        options = {
            "source": job.material("spaced.source"),
            "target": job.material("spaced.target"),
            "validation-source": folder / "valid.source",
            "validation-target": folder / "valid.target",
            "source-vocab": folder / "vocabulary.json",
            "target-vocab": folder / "vocabulary.json",
            "output": folder / "model",
            "max-seq-len": 101,
            "num-layers": shape.layers,
            "transformer-model-size": shape.d_model,
            "transformer-attention-heads": shape.heads,
            "transformer-feed-forward-num-hidden": shape.d_ff,
            "transformer-postprocess": "drn",
            "transformer-dropout-attention": 0.0,
            "transformer-dropout-act": 0.0,
            "transformer-dropout-prepost": shape.dropout,
            "embed-dropout": 0.0,
            "weight-tying-type": "src_trg_softmax",
            "label-smoothing": 0.1,
            "batch-type": "max-word",
            "batch-size": shape.batch_tokens,
            "optimizer": "adam",
            "max-updates": length.total,
            "checkpoint-interval": length.total,
            "decode-and-evaluate": 0,
            "seed": 1,
        }
        written = [part for name, value in options.items() for part in (f"--{name}", value)]
        return [sys.executable, "-c", _MORE_OFTEN, length.warmup, *written, "--use-cpu", "--transformer-preprocess", ""]

    tokens = sum(len(target) for _, target in job.read("pairs.json"))
    return training(job, "sockeye", prepare, lambda said, length: read_speed(said, length, tokens))


def read_speed(said: str, length: Length, tokens: int) -> Facts:
    """Return the speed: updates a second after the warm-up, times the real target tokens of an average batch.

    Sockeye's own tokens a second count padding and the source.
    """
    batches = sum(int(count) for _, count, _ in _BUCKET.findall(said))
    speeds = [float(speed) for batch, speed in _SPEED.findall(said) if int(batch) > length.warmup]
    if not speeds or not batches:
        raise ValueError(f"{len(speeds)} reports of speed, {batches} batches")
    updates = len(speeds) / sum(1 / speed for speed in speeds)
    return {"figure": updates * tokens / batches, "tokens_a_step": tokens / batches}


def _write_vocabulary(job: Job, path: Path) -> None:
    letters = job.read("letters.json")
    fill = [f"byte{number}" for number in range(job.shape.vocabulary - 4 - len(letters))]
    tokens = ["<pad>", "<unk>", "<s>", "</s>", *letters, *fill]
    path.write_text(json.dumps({token: number for number, token in enumerate(tokens)}))


if __name__ == "__main__":
    serve({"training": by_command, "memory": by_command})
