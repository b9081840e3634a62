"""Fine-tuning: a training that begins from a model's weights, with text and settings of its own.

What is made of the text is the model's: its architecture and its vocabulary. What is done with the weights is new: a
rate, a number of steps, a dropout. The loop is that of every training (loop.py).
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from regard.errors import UserError
from regard.model_folder import VOCABULARY, LoadedModel, find_model, read_model
from regard.progress import Display, open_display
from regard.settings import DataSettings, ModelSettings, Settings, TrainingSettings
from regard.text.corpus import guess_languages, read_pairs
from regard.text.vocabulary import Vocabulary
from regard.training.loop import train
from regard.training.optimizer import learning_rate
from regard.training.origin import Origin
from regard.training.run import shown

EPOCHS = 5
"""How often the new text is seen, unless the recipe says how many steps there are."""

_RATE = 0.3  # of the learning rate at which the model's own training ended
_BATCH_TOKENS = 4096  # at most: few data have few batches
_FEWEST_STEPS, _MOST_STEPS = 100, 10_000
_VALIDATIONS = 10
_MAY_DIFFER = frozenset({"dropout", "attention_dropout", "activation_dropout", "word_dropout"})  # of the section model
_OF_THE_VOCABULARY = ("vocabulary_size", "character_coverage", "normalization", "vocabulary_sentences")
_INHERITED = (
    "label_smoothing",
    "consistency",
    "beta1",
    "beta2",
    "epsilon",
    "weight_decay",
    "clip_norm",
    "seed",
    "precision",
    "validation_sentences",
)
_CHUNK = 4096  # pairs that are counted together


def finetune(
    model: Path | str,
    settings: Settings,
    out: Path | str,
    *,
    display: Display | None = None,
    device: str = "auto",
    processes: int | None = None,
    threads: int | None = None,
    tensorboard: bool = False,
) -> Path:
    """Train a model further, or go on with a fine-tuning that was stopped; return the finished model's folder.

    Of `settings` only what was given counts; the rest is the model's own, or suits few data. Raises `UserError`, with
    all differences, if they contradict the model.
    """
    display = display or open_display()
    path = Path(model)
    loaded = read_model(path)
    if loaded.is_rounded:
        raise UserError(f"{path}: its weights are rounded to eight bits; train the model further that it was made from")
    complete = complete_settings(settings, loaded, find_model(path)[1].absolute() / VOCABULARY)
    origin = Origin.of(path, loaded)
    training = complete.training
    display.say(
        f"fine-tuning {origin.describe()}: {training.steps:,} steps of {training.batch_tokens:,} tokens, learning rate "
        f"{training.learning_rate:.2g}"
    )
    if not complete.data.valid:
        display.say("no validation text (--valid): quality will not be measured, and the last weights are kept")
    return train(
        complete,
        out,
        origin=origin,
        display=display,
        device=device,
        processes=processes,
        threads=threads,
        tensorboard=tensorboard,
    )


def complete_settings(given: Settings, loaded: LoadedModel, vocabulary: Path) -> Settings:
    """Complete what was given by what the model says and by what suits few data; `vocabulary` is the model's file."""
    if not given.data.train:
        raise UserError("data.train: no training corpus; give --train SOURCE TARGET, or [[data.train]] in the recipe")
    base = loaded.settings
    _check_languages(given.data, base.data)
    problems = list(_contradictions(given, base, loaded.vocabulary))
    if problems:
        raise UserError(
            "\n".join(
                [
                    "architecture, vocabulary and languages are the model's, and the settings contradict it; leave "
                    "them out, or train a new model",
                    *(f"  {problem}" for problem in problems),
                ]
            )
        )
    data = base.data.model_copy(update={**_given(given.data), "vocabulary": vocabulary, "valid": given.data.valid})
    return Settings(
        model=base.model.model_copy(update=_given(given.model)),
        data=data,
        training=_complete_training(given.training, base, loaded, data),
        search=base.search.model_copy(update=_given(given.search)),
    )


# ---- what may not differ ---------------------------------------------------------------------------------------------


def _contradictions(given: Settings, base: Settings, vocabulary: Vocabulary) -> Iterator[str]:
    """Yield a line for each setting that is not the model's own, though it must be."""
    fixed = [("model", name) for name in ModelSettings.model_fields if name not in _MAY_DIFFER]
    fixed += [("data", name) for name in (*_OF_THE_VOCABULARY, "source_language", "target_language")]
    for section, name in fixed:
        now, before = getattr(getattr(given, section), name), getattr(getattr(base, section), name)
        is_told = name in _given(getattr(given, section)) and not (name.endswith("language") and not before)
        if is_told and now != before:
            yield f"{section}.{name}: the model has {shown(before)}, the settings say {shown(now)}"
    if given.data.vocabulary is not None:
        other = Vocabulary.load(given.data.vocabulary)
        if other.fingerprint != vocabulary.fingerprint:
            yield f"data.vocabulary: {given.data.vocabulary} ({len(other):,} subwords) is not the model's " + (
                f"({len(vocabulary):,} subwords)"
            )


def _check_languages(given: DataSettings, base: DataSettings) -> None:
    """Refuse files whose names say that they are the wrong way round."""
    for corpus in (*given.train, *given.valid):
        if corpus.source and corpus.target and base.source_language and base.target_language:
            guessed = guess_languages(corpus.source, corpus.target)
            if guessed == (base.target_language, base.source_language) and guessed[0] != guessed[1]:
                raise UserError(
                    f"{corpus.source}: the model translates {base.source_language} to {base.target_language}, and "
                    "these files look like the other way round; exchange them"
                )


def _given(section: ModelSettings | DataSettings | TrainingSettings | Any) -> dict[str, Any]:
    """Return the settings of a section that were given, and not left at their defaults."""
    return {name: getattr(section, name) for name in section.model_fields_set}


# ---- what suits few data ---------------------------------------------------------------------------------------------


def _complete_training(
    given: TrainingSettings, base: Settings, loaded: LoadedModel, data: DataSettings
) -> TrainingSettings:
    """Return the settings of the training: what was given, else what docs/finetune.md says and why."""
    told, before = _given(given), base.training
    batch_tokens = told.get("batch_tokens", min(before.batch_tokens, _BATCH_TOKENS))
    steps = told["steps"] if "steps" in told else _count_steps(data, loaded.vocabulary, batch_tokens)
    curve = before.model_copy(update={"schedule": "paper"})  # which never reaches zero
    last = min(int(loaded.facts.get("step", before.steps)), before.steps)
    ended = learning_rate(last, base.model.d_model, curve)
    defaults = {
        **{name: getattr(before, name) for name in _INHERITED},
        "batch_tokens": batch_tokens,
        "steps": steps,
        "warmup": max(1, steps // 4),
        "learning_rate": float(f"{_RATE * ended:.3g}"),
        "checkpoint_steps": max(1, steps // _VALIDATIONS),
        "average": "best",
        "average_checkpoints": 3,
    }
    return TrainingSettings(**{**defaults, **told})


def _count_steps(data: DataSettings, vocabulary: Vocabulary, batch_tokens: int) -> int:
    """Return the steps that see the text `EPOCHS` times; reads no further than what the most steps would see."""
    most = _MOST_STEPS * batch_tokens / EPOCHS
    source = target = 0.0
    for corpus in data.train:
        pairs_left = read_pairs(corpus)
        while pairs := list(islice(pairs_left, _CHUNK)):
            source += corpus.weight * sum(map(len, vocabulary.encode_batch([pair.source for pair in pairs])))
            target += corpus.weight * sum(map(len, vocabulary.encode_batch([pair.target for pair in pairs])))
            if max(source, target) >= most:
                return _MOST_STEPS
    return max(_FEWEST_STEPS, round(EPOCHS * max(source, target) / batch_tokens))
