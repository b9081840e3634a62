"""`regard paper`: the paper's figures, and what a training costs next to them."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.help import Verb, Verbs
from regard.cli.options import Overrides
from regard.cli.recipes import RecipeOrPreset, read_settings

if TYPE_CHECKING:
    from regard.paper.cost import TrainingCost

app = typer.Typer(
    cls=Verbs,
    help="The paper's tables; what a training costs next to them.",
    epilog="""
regard paper tables                     the paper's results
regard paper cost paper-big             FLOPs and time of a training
regard paper cost recipe.toml
""",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.callback()
def _group() -> None:
    """Keep this a group of verbs."""


@app.command(cls=Verb, epilog="regard paper tables")
def tables() -> None:
    """Print the paper's Tables 2 and 3; presets name its models."""
    from regard.cli.table import print_table
    from regard.paper.figures import TABLE_2, TABLE_3

    header = ["Table 2: newstest2014", "BLEU en-de", "BLEU en-fr", "FLOPs en-de", "FLOPs en-fr"]
    print_table(
        header,
        [
            [one.name, _number(one.bleu_de), _number(one.bleu_fr), _flops(one.flops_de), _flops(one.flops_fr)]
            for one in TABLE_2
        ],
    )
    print()
    rows = [
        [
            one.preset,
            one.row,
            f"{one.perplexity:.2f}",
            f"{one.bleu:.1f}",
            "" if one.millions is None else f"{one.millions} M",
        ]
        for one in TABLE_3
    ]
    print_table(["Table 3: newstest2013", "row", "perplexity", "BLEU", "weights"], rows)


@app.command(
    cls=Verb,
    epilog="regard paper cost paper-base\nregard paper cost recipe.toml --length 25\nregard paper cost tiny --json",
)
def cost(
    recipe: RecipeOrPreset,
    overrides: Overrides = None,
    length: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Mean length of a sentence, in subwords.", show_default="30")
    ] = None,
    gpus: Annotated[int, typer.Option(min=1, metavar="N", help="GPUs that share the work.")] = 8,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
) -> None:
    """Count a training's FLOPs, and the time they take on GPUs.

    The count is exact for the matrix products of full batches, forward and backward. Next to it stands the paper's own
    estimate of its models: time × GPUs × what a P100 is taken to sustain.
    """
    from regard.paper.cost import MEAN_LENGTH, training_cost

    found = training_cost(read_settings(recipe, overrides or []), length or MEAN_LENGTH)
    if as_json:
        print(json.dumps(_facts(found, gpus), indent=2))
    else:
        _print(recipe, found, gpus)


def _print(recipe: str, found: "TrainingCost", gpus: int) -> None:
    from regard.cli.table import print_table
    from regard.paper.cost import paces, training_cost
    from regard.paper.figures import PAPER_RUNS
    from regard.progress import duration
    from regard.settings import preset

    training, step = found.settings.training, found.step
    print(
        f"{recipe}: {found.weights:,} weights; {training.steps:,} steps of {training.batch_tokens:,} source and as "
        f"many target tokens, in sentences of {found.length} (--length)\n"
    )
    parts = {"encoder": step.encoder, "decoder": step.decoder, "output": step.output}
    for name, flops in parts.items():
        print(f"  {name:<9} {_flops(flops)} FLOPs a step forward, {flops / step.forward:.0%}")
    print(f"  {'a step':<9} {_flops(step.training)} FLOPs forward and backward")
    print(f"  {'in all':<9} {_flops(found.flops)} FLOPs (6 × weights × tokens: {_flops(found.rough)})\n")
    rows = [
        [pace.gpu, f"{pace.flops / 1e12:.1f} TFLOPS", duration(pace.seconds(found.flops, gpus)), pace.why]
        for pace in paces(found.length)
    ]
    print_table([f"{gpus} of", "each at", "time", "why"], rows)
    print()
    rows = []
    for run in PAPER_RUNS:
        counted = training_cost(preset(run.preset), found.length).flops
        time = f"{run.steps:,} × {run.seconds_a_step} s, {duration(run.hours * 3600)}"
        rows.append([run.preset, time, _flops(run.estimate), _flops(run.flops), _flops(counted)])
    print_table(["the paper's", "time on 8 P100", "time × 8 × 9.5 TFLOPS", "Table 2", "counted here"], rows)


def _facts(found: "TrainingCost", gpus: int) -> dict[str, object]:
    from regard.paper.cost import paces
    from regard.paper.figures import PAPER_RUNS

    step = found.step
    return {
        "weights": found.weights,
        "steps": found.settings.training.steps,
        "tokens_a_side": found.settings.training.batch_tokens,
        "length": found.length,
        "step": {"encoder": step.encoder, "decoder": step.decoder, "output": step.output, "training": step.training},
        "flops": found.flops,
        "times": [
            {
                "gpu": one.gpu,
                "gpus": gpus,
                "flops": one.flops,
                "seconds": one.seconds(found.flops, gpus),
                "why": one.why,
            }
            for one in paces(found.length)
        ],
        "paper": {one.preset: {"estimate": one.estimate, "table_2": one.flops} for one in PAPER_RUNS},
    }


def _flops(value: float | None) -> str:
    return "" if value is None else f"{value:.1e}".replace("e+", "e")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"
