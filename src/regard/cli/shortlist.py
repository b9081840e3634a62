"""`regard shortlist`: the likely words of a sentence, from training statistics."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import ModelPath

EXAMPLES = """
regard shortlist RUN
regard translate RUN text.en --shortlist
regard shortlist model-int8 --data RUN --per-word 100
"""


def shortlist(
    model: ModelPath,
    per_word: Annotated[
        int, typer.Option(min=1, metavar="N", help="Target subwords for each source subword, at most 1,000.")
    ] = 50,
    frequent: Annotated[
        int, typer.Option(min=0, metavar="N", help="Most frequent target subwords, in every list.")
    ] = 200,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN",
            help="The run whose training data to learn from, with the same vocabulary.",
            show_default="the model's own run",
        ),
    ] = None,
) -> None:
    """Learn the likely target words of each source word.

    They are kept in the model's folder. 'regard translate --shortlist' then considers only the likely words of each
    sentence, which is faster where the vocabulary is large. Compare with and without by 'regard evaluate'.
    """
    import time

    from regard.data.prepare import open_prepared
    from regard.model_folder import SHORTLIST, VOCABULARY, find_model
    from regard.shortlist import Shortlist
    from regard.text.vocabulary import Vocabulary

    began = time.monotonic()
    _, home = find_model(model)
    vocabulary = Vocabulary.load(home / VOCABULARY)
    store = open_prepared(_find_data(model, home, data)).train
    found = Shortlist.build(store, vocabulary, per_word, frequent)
    found.save(home / SHORTLIST)
    some = range(0, len(store), -(-len(store) // 1000))
    average = sum(len(found.rows(store.source(row).tolist())) for row in some) / len(some)
    print(
        f"{home / SHORTLIST}: on average {average:,.0f} of {len(vocabulary):,} subwords for a sentence; "
        f"learned from {len(store):,} pairs in {time.monotonic() - began:.0f} s"
    )


def _find_data(model: Path, home: Path, data: Path | None) -> Path:
    """Return the folder of the run whose data to learn from."""
    from regard.errors import UserError

    candidates = [home, home.absolute().parent] if data is None else [data]
    for folder in candidates:
        if (folder / "data" / "inputs.json").is_file():
            return folder
    if data is not None:
        raise UserError(f"{data}: has no prepared training data; give the folder of a run")
    raise UserError(f"{model}: its training data is not beside it; give its run's folder with --data")
