"""Hugging Face's Marian: a plain loop that trains, and the library's `generate`."""

import os
import time
from collections.abc import Sequence

import torch

from comparison.job import Engine, Facts, Job, Setting, serve
from comparison.memory import PeakMemory
from comparison.peers.transformers_crew import Crew
from comparison.peers.transformers_model import load_weights, make_model
from comparison.translating import Group, Translate, latency, sizes, translation

# ---- training --------------------------------------------------------------------------------------------------------


def training(job: Job) -> Engine:
    """Train in one process with two threads, or in two with one each."""
    crews: dict[int, Crew] = {}

    def measure(setting: Setting) -> Facts:
        processes, threads = setting["processes_threads"]
        if processes not in crews:
            crews[processes] = Crew(job, processes, threads)
        warmup, steps = job.steps(sample=setting.get("sample", False))
        crews[processes].take(warmup)
        started = time.perf_counter()
        tokens = crews[processes].take(steps)
        seconds = time.perf_counter() - started
        return {"figure": tokens / seconds, "tokens_a_step": tokens / steps}

    return Engine(measure, {"processes_threads": [(1, 2), (2, 1)]})


def memory(job: Job) -> Engine:
    """Train as `training` does, and watch the memory of this process and of those that it starts."""
    trained = training(job)

    def measure(setting: Setting) -> Facts:
        with PeakMemory(os.getpid()) as watched:
            facts = trained.measure(setting)
        return {**facts, "figure": watched.peak}

    return Engine(measure, {"processes_threads": [(1, 2)]})  # two processes would hold two models


# ---- translation -----------------------------------------------------------------------------------------------------


def _translator(job: Job) -> Translate:
    model = make_model(job).eval()
    load_weights(model, job)

    @torch.inference_mode()
    def translate(groups: Sequence[Group], setting: Setting) -> list[list[int]]:
        torch.set_num_threads(setting["threads"])
        found = []
        for group in groups:
            for start in range(0, len(group), setting["batch"]):
                src = torch.tensor(group[start : start + setting["batch"]])
                found += model.generate(
                    input_ids=src,
                    attention_mask=torch.ones_like(src),
                    max_new_tokens=src.size(1),
                    num_beams=job.beam,
                    do_sample=False,
                )[:, 1:].tolist()
        return found

    return translate


def many(job: Job) -> Engine:
    """Translate many sentences at a time."""
    return translation(job, _translator(job), {"threads": [2, 1], "batch": sizes(job, 32, 16, 64)})


def alone(job: Job) -> Engine:
    """Translate one sentence at a time."""
    return latency(job, _translator(job), {"threads": [2, 1], "batch": [1]})


if __name__ == "__main__":
    serve({"training": training, "memory": memory, "translation": many, "latency": alone})
