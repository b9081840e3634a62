"""What a report shows: all of it, gathered, before any of it is drawn."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from regard.attention_maps import AttentionMaps
from regard.evaluate import Score, sentence_scores
from regard.report.charts import Point
from regard.settings import DataSettings, Settings, TrainingSettings, list_settings

SHOWN, WORST = 20, 10


@dataclass(frozen=True)
class Sample:
    """A sentence with its reference, its translation, and how like the two are (chrF, 0 to 100)."""

    source: str
    reference: str
    translation: str
    score: float


@dataclass(frozen=True)
class Curves:
    """What was logged, by step."""

    loss: Sequence[Point] = ()
    perplexity: Sequence[Point] = ()
    valid_loss: Sequence[Point] = ()
    valid_perplexity: Sequence[Point] = ()
    bleu: Sequence[Point] = ()


@dataclass(frozen=True)
class Content:
    """What a report is made of."""

    settings: Settings
    version: str
    weights: int
    step: int
    seconds: float
    target_tokens: int
    skipped: int
    averaged: Sequence[int]
    data: Sequence[str]
    """The lines of the data's report."""
    scores: Sequence[Score]
    samples: Sequence[Sample]
    worst: Sequence[Sample]
    sentences: int
    """How many sentences were translated."""
    curves: Curves = field(default_factory=Curves)
    attention: Sequence[AttentionMaps] = ()

    @property
    def title(self) -> str:
        """The languages."""
        data = self.settings.data
        return f"{data.source_language or 'source'} → {data.target_language or 'target'}"


def choose_samples(
    sources: Sequence[str], references: Sequence[str], translations: Sequence[str]
) -> tuple[list[Sample], list[Sample]]:
    """Return twenty sentences, evenly spread, and up to ten translations that are least like their references."""
    if not sources:
        return [], []
    scores = sentence_scores(translations, references)
    everything = [Sample(*one) for one in zip(sources, references, translations, scores, strict=True)]
    count = min(SHOWN, len(everything))
    spread = [everything[number * len(everything) // count] for number in range(count)]
    different = [one for one in everything if one.translation != one.reference]
    return spread, sorted(different, key=lambda sample: sample.score)[:WORST]


def choose_to_look_at(samples: Sequence[Sample], count: int = 3) -> list[Sample]:
    """Return sentences whose attention is worth a picture: neither short nor too long to be read."""

    def distance(sample: Sample) -> int:
        return abs(len(sample.source.split()) - 10)

    readable = [one for one in samples if one.source.strip() and one.translation.strip()]
    return sorted((one for one in readable if len(one.source) < 160), key=distance)[:count]


def departures(settings: Settings) -> list[tuple[str, object, object]]:
    """Return each setting that is not the paper's base model's: its name, its value, and the paper's."""
    paper = Settings()
    found: list[tuple[str, object, object]] = []
    for key, _ in list_settings():
        section, _, name = key.partition(".")
        ours, theirs = (getattr(getattr(one, section), name) for one in (settings, paper))
        if ours != theirs and section != "data":
            found.append((key, ours, theirs))
    return found


def describe_retranslation(data: DataSettings) -> list[str]:
    """Say what was trained on beside the corpora that were given; nothing, as a rule."""
    steps = data.retranslation_steps
    if not steps:
        return []
    return [f"the same text with its targets, and with its sources, as models of {steps:,} steps each translated them"]


def describe_average(training: TrainingSettings, steps: Sequence[int]) -> str:
    """Say in a sentence what the weights are, made of the checkpoints of these steps."""
    averaged = ", ".join(f"{step:,}" for step in steps)
    if training.average == "exponential":
        decay = f"{training.average_decay:g}"
        return f"The weights are the exponential running mean of all steps' (decay {decay}) at step {averaged}."
    return f"The weights are the average of the checkpoints at steps {averaged}."
