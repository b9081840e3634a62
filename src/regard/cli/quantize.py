"""`regard quantize`: a model at a quarter of its size, for a CPU."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import ModelPath

EXAMPLES = """
regard quantize RUN --out model-int8
"""


def quantize(
    model: ModelPath,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The new model's folder.")],
) -> None:
    """Round a model's weights to eight bits: a quarter of the size.

    The new folder is used like any other, and translates in eight bits on a CPU that can do it. Compare the two on text
    of your own with 'regard evaluate'. It can't be trained further: keep the model that it was made from.
    """
    from regard.errors import UserError
    from regard.files import read_text
    from regard.model_folder import (
        CARD,
        SHORTLIST,
        WEIGHTS,
        find_model,
        named_weights,
        read_model,
        read_shortlist,
        round_weights,
        write_model,
    )

    loaded = read_model(model)
    if loaded.is_rounded:
        raise UserError(f"{model}: its weights are rounded to eight bits already")
    if out.exists():
        raise UserError(f"{out}: is there already; choose another --out")
    folder, home = find_model(model)
    card = read_text(home / CARD) if (home / CARD).exists() else "# A translation model\n"
    card = f"{card.rstrip()}\n\nIts weights are rounded to eight bits, by `regard quantize`.\n"
    weights = round_weights(named_weights(loaded.model))
    write_model(out, weights, loaded.vocabulary, loaded.settings, {**loaded.facts, "precision": "int8"}, card)
    if (home / SHORTLIST).exists():
        read_shortlist(model, loaded.vocabulary).save(out / SHORTLIST)
    before, after = ((path / WEIGHTS).stat().st_size for path in (folder, out))
    print(f"{out}: {after / 1e6:,.1f} MB of weights instead of {before / 1e6:,.1f} MB")
