"""regard itself, as a user has it: training by its command, translation by its translator."""

import json
import shutil
import sys
from collections.abc import Sequence

import tomli_w

from comparison.commands import peak_memory, run
from comparison.corpus import LONGEST, text
from comparison.job import Engine, Facts, Job, Setting, serve
from comparison.materials import model_settings
from comparison.translating import Group, Translate, latency, translation
from regard.text.vocabulary import Vocabulary
from regard.training.run import Run

# ---- training --------------------------------------------------------------------------------------------------------


def training(job: Job) -> Engine:
    """Run `regard train` anew for each measurement; it chooses processes and threads by itself."""
    folder = job.material("regard-training")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    recipe = folder / "recipe.toml"
    recipe.write_text(tomli_w.dumps(_recipe(job)))
    run(_command("prepare", recipe, folder / "prepared"))

    def measure(setting: Setting) -> Facts:
        out = folder / "run"
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(folder / "prepared", out)
        command = _command("train", recipe, out)
        peak = peak_memory(command) if job.kind == "memory" else None
        if peak is None:
            run(command)
        events = [json.loads(line) for line in Run(out).log.read_text().splitlines()]
        first, *_, last = [event for event in events if event["event"] == "training"]
        steps, tokens, seconds = (last[name] - first[name] for name in ("step", "target_tokens", "seconds"))
        workforce = json.loads(Run(out).workforce.read_text())
        chosen = {name: workforce[name] for name in ("processes", "threads")}
        return {"figure": peak or tokens / seconds, "tokens_a_step": tokens / steps, "chosen": chosen}

    return Engine(measure)


def _recipe(job: Job) -> dict[str, object]:
    warmup, steps = job.steps()
    corpus = {side: str(job.material(f"train.{side}")) for side in ("source", "target")}
    return {
        "model": model_settings(job.shape),
        "data": {"train": [corpus], "vocabulary": str(job.material("vocabulary.spm")), "max_length": LONGEST},
        "training": {
            "batch_tokens": job.shape.batch_tokens,
            "steps": warmup + steps,
            "log_steps": warmup,
            "checkpoint_steps": warmup + steps,
        },
    }


def _command(verb: str, recipe: object, out: object) -> list[object]:
    return [sys.executable, "-m", "regard", verb, recipe, "--out", out, "--progress", "plain"]


# ---- translation -----------------------------------------------------------------------------------------------------


def _translate(job: Job) -> Translate:
    """Load the model; texts become as long as they are, because the model never ends one and no more is allowed."""
    from comparison.peers.regard_crew import Translators

    translators = Translators(str(job.material("model")), job.precision)
    letters = job.read("letters.json")
    pieces = Vocabulary.load(job.material("vocabulary.spm")).pieces(range(job.shape.vocabulary))
    ids = {piece: number for number, piece in enumerate(pieces)}

    def translate(groups: Sequence[Group], setting: Setting) -> list[list[int]]:
        processes, threads = setting["workers_threads"]
        texts = [text(sentence, letters) for group in groups for sentence in group]
        changes = {"beam": job.beam, "extra_length": 0, "batch_tokens": setting["batch_tokens"]}
        window = -(-len(texts) // (processes * setting["parts_a_process"]))
        found = translators.translate(texts, processes, threads, window, **changes)
        return [[ids[piece] for piece in tokens] for tokens in found]

    return translate


def many(job: Job) -> Engine:
    """Translate many sentences at a time."""
    axes = {"workers_threads": [(2, 1), (1, 2)], "parts_a_process": [2, 4, 1], "batch_tokens": [4096, 2048, 8192]}
    return translation(job, _translate(job), axes)


def alone(job: Job) -> Engine:
    """Translate one sentence at a time, in one process."""
    axes = {"workers_threads": [(1, 1), (1, 2)], "parts_a_process": [1], "batch_tokens": [4096]}
    return latency(job, _translate(job), axes)


if __name__ == "__main__":
    serve({"training": training, "memory": training, "translation": many, "latency": alone})
