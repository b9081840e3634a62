"""`regard score`: how likely given translations are."""

import json
import math
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import Device, ModelPath, Progress, ProgressMode, Threads

EXAMPLES = """
regard score RUN text.en text.de > scores
regard score RUN text.en text.de --json | jq .token_scores
"""


def score(
    model: ModelPath,
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="Text file, a source sentence a line.")],
    target: Annotated[Path, typer.Argument(metavar="TARGET", help="Its translation, line by line.")],
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Write a JSON object a line: log_probability, score, tokens, token_scores."),
    ] = False,
    device: Device = "auto",
    threads: Threads = None,
    progress: Progress = ProgressMode.AUTO,
) -> None:
    """Write log P(target | source) for each pair of lines.

    One number a line; the mean and the perplexity per token go to standard error. Two empty lines belong together:
    their number is 0.
    """
    from regard.cli.lines import check_input
    from regard.progress import open_display
    from regard.settings import Corpus
    from regard.text.corpus import read_pairs
    from regard.translator import load

    check_input([source, target])
    display = open_display(progress.value)
    pairs = ((pair.source, pair.target) for pair in read_pairs(Corpus(source=source, target=target)))
    translator = load(model, device=device, threads=threads)
    total, tokens = 0.0, 0
    with display.job("scoring", unit="pairs") as job:
        for found in translator.score(pairs):
            total += found.log_probability
            tokens += len(found.tokens)
            if as_json:
                facts = {"log_probability": found.log_probability, "score": found.score}
                answer = {**facts, "tokens": found.tokens, "token_scores": found.token_scores}
                print(json.dumps(answer, ensure_ascii=False))
            else:
                print(f"{found.log_probability:.6f}")
            job.advance()
    if tokens:
        per_token = total / tokens
        display.say(f"{tokens:,} tokens · {per_token:.4f} a token · perplexity {math.exp(min(-per_token, 700)):.3f}")
