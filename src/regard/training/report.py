"""The training report of a run: what it shows, gathered from the run's folder and its finished model."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import regard
from regard.errors import RegardError
from regard.evaluate import Score
from regard.files import write_file
from regard.report.charts import Point
from regard.report.content import Content, Curves, choose_samples, choose_to_look_at
from regard.report.page import write_page
from regard.text.corpus import Pair
from regard.training.log import read_log
from regard.training.run import Run
from regard.translator import Translator

NAME = "report.html"


def write_report(
    run: Run,
    translator: Translator,
    facts: dict[str, Any],
    data: Sequence[str],
    pairs: Sequence[Pair],
    translations: Sequence[str],
    scores: Sequence[Score],
) -> Path:
    """Write a run's report next to its model and return its path; `data` are the lines of the data's report."""
    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    samples, worst = choose_samples(sources, references, translations)
    content = Content(
        settings=translator.settings,
        version=regard.__version__,
        weights=facts["weights"],
        step=facts["step"],
        seconds=facts["seconds"],
        target_tokens=facts["target_tokens"],
        skipped=facts["skipped_steps"],
        averaged=facts["averaged_steps"],
        data=data,
        scores=scores,
        samples=samples,
        worst=worst,
        sentences=len(pairs),
        curves=read_curves(run.log),
        attention=[translator.look(one.source, one.translation) for one in choose_to_look_at(samples)],
    )
    path = run.folder / NAME
    write_file(path, write_page(content))
    return path


def read_curves(log: Path) -> Curves:
    """Read what was logged; a line that lacks a number is passed over."""
    events = [facts for _, facts in read_log(log)]

    def points(event: str, name: str) -> list[Point]:
        found = [(facts.get("step"), facts.get(name)) for facts in events if facts.get("event") == event]
        return [(float(x), float(y)) for x, y in found if isinstance(x, int | float) and isinstance(y, int | float)]

    return Curves(
        loss=points("training", "loss"),
        perplexity=points("training", "perplexity"),
        valid_loss=points("validation", "loss"),
        valid_perplexity=points("validation", "perplexity"),
        bleu=points("validation", "bleu"),
    )


def check_facts(run: Run, facts: dict[str, Any]) -> None:
    """Raise `RegardError` if a model's facts lack what a report needs."""
    needed = {"weights", "step", "seconds", "target_tokens", "skipped_steps", "averaged_steps", "data"}
    if missing := sorted(needed - facts.keys()):
        raise RegardError(f"{run.model}: does not say its {', '.join(missing)}; was it trained by regard?")
