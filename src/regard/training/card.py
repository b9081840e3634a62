"""The model card: what a model was trained on, how, and what it scores, in Markdown."""

from collections.abc import Mapping, Sequence
from typing import Any

import regard
from regard.data.report import Report
from regard.evaluate import Score
from regard.progress import duration
from regard.report.content import describe_average, describe_retranslation
from regard.settings import Settings


def write_card(settings: Settings, facts: Mapping[str, Any], report: Report, scores: Sequence[Score]) -> str:
    """Return the card of a model just trained."""
    data, model, training, search = settings.data, settings.model, settings.training, settings.search
    languages = f"{data.source_language or 'source'} → {data.target_language or 'target'}"
    corpora = [
        "- "
        + " and ".join(f"`{path.name}`" for path in corpus.files)
        + (f", weight {corpus.weight:g}" if corpus.weight != 1 else "")
        for corpus in data.train
    ]
    corpora += [f"- {line}" for line in describe_retranslation(data)]
    lines = [
        f"# A translator, {languages}",
        "",
        f"A Transformer trained with regard {regard.__version__}. Translate with it:",
        "",
        "```",
        "regard translate THIS_FOLDER < text.txt",
        "```",
        "",
        "## Scores",
        "",
        *_score_lines(scores, search.beam, search.length_penalty),
        "",
        "## Training",
        "",
        f"{facts['step']:,} steps of at most {training.batch_tokens:,} tokens in {duration(facts['seconds'])}; "
        f"{facts['target_tokens']:,} target tokens in all; seed {training.seed}. "
        + describe_average(training, facts["averaged_steps"]),
        *_origin_lines(facts.get("origin")),
        "",
        "## Data",
        "",
        *corpora,
        "",
        "```",
        *report.lines(),
        "```",
        "",
        "## Model",
        "",
        f"{facts['weights']:,} weights: {model.encoder_layers} encoder and {model.decoder_layers} decoder layers, "
        f"d_model {model.d_model}, d_ff {model.d_ff}, {model.heads} heads, dropout {model.dropout:g}. All settings "
        "are in `settings.toml`.",
        "",
        f"A text longer than {facts['longest_source']} subwords, the longest that the model has seen, is split "
        "at sentence ends before it is translated. What the training text does "
        "not contain, the model has not learned; look at its output before you rely on it.",
        "",
    ]
    return "\n".join(lines)


def _origin_lines(origin: Mapping[str, Any] | None) -> list[str]:
    if origin is None:
        return []
    return ["", f"Fine-tuned from `{origin['model']}`, whose weights have the SHA-256 `{origin['weights']}`."]


def _score_lines(scores: Sequence[Score], beam: int, alpha: float) -> list[str]:
    if not scores:
        return ["No validation set was given, so nothing is known about its quality."]
    rows = [
        f"| {one.name} | {one.value:.2f} | "
        + (f"{one.interval[0]:.2f}–{one.interval[1]:.2f}" if one.interval else "")
        + f" | `{one.signature}` |"
        for one in scores
    ]
    return [
        f"On the validation set, beam {beam}, length penalty {alpha:g}:",
        "",
        "| metric | score | 95 % interval | signature |",
        "|---|---|---|---|",
        *rows,
    ]
