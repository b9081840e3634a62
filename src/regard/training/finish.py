"""The end of a training: checkpoints averaged (§6.1) into a model's folder, with a card that says what it is."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torch import Tensor

from regard.data.prepare import Prepared
from regard.engine import lay_out_for
from regard.errors import RegardError, TrainingError
from regard.evaluate import Score, score_all
from regard.machine import Machine
from regard.model.build import build_model
from regard.model.transformer import count_weights
from regard.model_folder import load_weights, write_model
from regard.progress import Display, duration
from regard.settings import Settings, TrainingSettings
from regard.text.corpus import Pair
from regard.training.average import average_weights, choose_checkpoints, running_average
from regard.training.card import write_card
from regard.training.checkpoint import Checkpoint, TrainingState, checkpoint_path, list_checkpoints
from regard.training.origin import Origin
from regard.training.report import write_report
from regard.training.run import Run
from regard.training.validation import pick_sentences
from regard.translator import Translator


def finish(
    run: Run,
    settings: Settings,
    prepared: Prepared,
    state: TrainingState,
    machine: Machine,
    display: Display,
) -> Path:
    """Average the chosen checkpoints, score the result on the validation set, and write the model's folder."""
    training, vocabulary = settings.training, prepared.vocabulary
    chosen = _choose(list_checkpoints(run.checkpoints), state, training)
    if not chosen:
        raise TrainingError(f"{run.checkpoints}: no whole checkpoint to make a model of")
    if lost := _find_lost(run.checkpoints, chosen, state, training):
        display.say(f"missing from the average, because damaged or gone: {', '.join(map(str, lost))}")
    weights, told = _average(chosen, training)
    model = build_model(settings.model, len(vocabulary))
    load_weights(model, weights)
    display.say(told)

    origin = Origin.read(run.origin)
    longest = max(prepared.train.longest_source, origin.longest_source if origin else 0)
    native = lay_out_for(machine, model)
    translator = Translator(model, vocabulary, settings, machine, longest, native=native)
    pairs, translations, scores = score_validation(translator, display)
    facts: dict[str, Any] = {
        "weights": count_weights(model),
        "step": state.step,
        "target_tokens": state.target_tokens,
        "seconds": round(state.seconds, 1),
        "skipped_steps": state.skipped,
        "averaged_steps": [checkpoint.step for checkpoint in chosen],
        "longest_source": longest,
        **({"origin": asdict(origin)} if origin else {}),
        "data": prepared.report.to_dict(),
        "validation": [{"name": one.name, "value": one.value, "signature": one.signature} for one in scores],
    }
    card = write_card(settings, facts, prepared.report, scores)
    write_model(run.model, weights, vocabulary, settings, facts, card)
    try:
        report = write_report(run, translator, facts, prepared.report.lines(), pairs, translations, scores)
        display.say(f"how it went, as a page: {report}")
    except (RegardError, OSError, RuntimeError, MemoryError) as error:  # the model is finished all the same
        display.say(f"the report could not be written: {error}; try again with:  regard report {run.folder}")
    display.say(f"trained {state.step:,} steps in {duration(state.seconds)}; the model is in {run.model}")
    return run.model


def _choose(checkpoints: Iterable[Checkpoint], state: TrainingState, training: TrainingSettings) -> list[Checkpoint]:
    return choose_checkpoints(
        list(checkpoints), state.validations, training.average, training.average_checkpoints, training.choose_by
    )


def _average(chosen: Sequence[Checkpoint], training: TrainingSettings) -> tuple[dict[str, Tensor], str]:
    """Return the weights of the model, and say how they came about."""
    if training.average == "exponential":
        return running_average(chosen[0].path), f"took the running mean of the weights at step {chosen[0].step:,}"
    weights = average_weights([checkpoint.path for checkpoint in chosen])
    return weights, f"averaged the {training.average} {len(chosen)} checkpoints"


def _find_lost(
    folder: Path, chosen: Sequence[Checkpoint], state: TrainingState, training: TrainingSettings
) -> list[Path]:
    """Return the checkpoints that would be averaged if all that were written were whole."""
    steps = sorted({*range(training.checkpoint_steps, state.step + 1, training.checkpoint_steps), state.step})
    written = [Checkpoint(checkpoint_path(folder, step), step, regular=True) for step in steps]
    return [one.path for one in _choose(written, state, training) if one not in chosen]


def score_validation(translator: Translator, display: Display) -> tuple[list[Pair], list[str], list[Score]]:
    """Translate the validation set as a user would, and score it; return pairs, translations and scores, if any."""
    settings = translator.settings
    pairs = pick_sentences(settings.data.valid, settings.training.validation_sentences)
    if not pairs:
        return [], [], []
    with display.job("translating the validation set", len(pairs), "sentences") as job:
        texts = []
        for found in translator.translate_lines(pair.source for pair in pairs):
            texts.append(found.text)
            job.advance()
    references = [pair.target for pair in pairs]
    return pairs, texts, score_all(texts, references, target_language=settings.data.target_language)
