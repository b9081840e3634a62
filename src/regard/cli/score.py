"""`regard score`: how likely given translations are."""

import json
import math
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import Device, Json, ModelPath, Progress, ProgressMode, Threads


def score(
    model: ModelPath,
    source: Annotated[Path, typer.Argument(help="Text file, a source sentence a line.")],
    target: Annotated[Path, typer.Argument(help="Its translation, line by line.")],
    as_json: Json = False,
    device: Device = "auto",
    threads: Threads = None,
    progress: Progress = ProgressMode.AUTO,
) -> None:
    """Write log P(target | source) for each pair of lines; the mean and perplexity go to standard error."""
    from regard.progress import open_display
    from regard.settings import Corpus
    from regard.text.corpus import read_pairs
    from regard.translator import load

    display = open_display(progress.value)
    translator = load(model, device=device, threads=threads)
    pairs = ((pair.source, pair.target) for pair in read_pairs(Corpus(source=source, target=target)))
    total, tokens = 0.0, 0
    with display.job("scoring", unit="pairs") as job:
        for found in translator.score(pairs):
            total += found.log_probability
            tokens += len(found.tokens)
            if as_json:
                facts = {"log_probability": found.log_probability, "score": found.score}
                answer = {**facts, "tokens": found.tokens, "token_scores": found.token_scores}
                typer.echo(json.dumps(answer, ensure_ascii=False))
            else:
                typer.echo(f"{found.log_probability:.6f}")
            job.advance()
    if tokens:
        per_token = total / tokens
        display.say(f"{tokens:,} tokens · {per_token:.4f} a token · perplexity {math.exp(min(-per_token, 700)):.3f}")
