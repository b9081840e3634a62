"""How well do the recipes translate? Train each with several seeds, score it once, keep the row.

    python benchmarks/results.py run recipes/multi30k-en-de.toml --seeds 1,2,3 --runs runs
    python benchmarks/results.py run RECIPE --set data.retranslation_steps=0 --name plain --no-test --runs runs
    python benchmarks/results.py table                           the tables of what was measured before
    python benchmarks/results.py table --page docs/results.md    the same, put into the page

A run trains by `regard train` in a folder of its own below --runs. Stopped or killed, it goes on when the same command
is run again; the time of all its sessions is added up. When the model is finished it is scored on the validation text,
and then, once, on the test set that belongs to the recipe. The row goes to quality.json; what is there is not measured
again, and its test set is not read again.
"""

import argparse
import sys
from pathlib import Path

from quality.plan import Plan, ResultError
from quality.running import run
from quality.standards import STANDARDS, Texts, from_root
from quality.store import RESULTS, read_rows
from quality.table import insert, report

from regard.errors import RegardError


def main() -> None:
    given = make_parser().parse_args()
    try:
        if given.verb == "run":
            run(make_plan(given), given.seeds, given.again, given.results)
        elif given.page:
            given.page.write_text(insert(given.page.read_text(encoding="utf-8"), read_rows(given.results)), "utf-8")
        else:
            print(report(read_rows(given.results)), end="")
    except (ResultError, RegardError) as error:
        sys.exit(str(error))
    except OSError as error:
        sys.exit(f"{error.filename}: {error.strerror}")
    except KeyboardInterrupt:
        sys.exit(130)


def make_plan(given: argparse.Namespace) -> Plan:
    """Turn what was asked for into a plan; raises `ResultError` if something is missing."""
    recipe, overrides = from_root(given.recipe), tuple(given.overrides)
    standard = STANDARDS.get(recipe)
    train, valid, test = (_texts(files) for files in (given.train, given.valid, given.test))
    if any(override.partition("=")[0].strip() == "training.seed" for override in overrides):
        raise ResultError("training.seed: --seeds says which")
    if given.name is None and (overrides or train or valid or test):
        raise ResultError("a run that departs from its recipe needs a --name of its own")
    if train and not given.no_test and test is None:
        raise ResultError("other training text wants its own test set: give --test SOURCE TARGET, or --no-test")
    if standard is not None and not given.no_test:
        test = test or standard.test
    if test is None and not given.no_test:
        raise ResultError(f"{recipe}: no test set belongs to it; give --test SOURCE TARGET, or --no-test")
    tokenized = given.tokenized if given.tokenized is not None else standard is not None and standard.tokenized
    options = [(name, getattr(given, name)) for name in ("processes", "threads")]
    machine_options = tuple(word for name, count in options if count for word in (f"--{name}", str(count)))
    name, runs = given.name or recipe.stem, from_root(given.runs)
    trained_as = given.trained_as or name
    return Plan(name, recipe, overrides, train, valid, test, tokenized, runs, trained_as, machine_options)


def _texts(files: list[Path] | None) -> Texts | None:
    return Texts(*map(from_root, files)) if files else None


def _seeds(text: str) -> list[int]:
    return [int(seed) for seed in text.split(",")]


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    runner = verbs.add_parser("run", help="train, score, and keep the row")
    runner.add_argument("recipe", type=Path, metavar="RECIPE")
    runner.add_argument("--seeds", type=_seeds, default=[1, 2, 3], metavar="N,N,…", help="default: 1,2,3")
    runner.add_argument("--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE")
    runner.add_argument("--name", help="of the row and the run's folder (default: the recipe's)")
    runner.add_argument("--of", dest="trained_as", metavar="NAME", help="score the runs of this name on another --test")
    runner.add_argument("--runs", type=Path, required=True, metavar="DIR", help="where the runs' folders are")
    for option, what in (("train", "training"), ("valid", "validation"), ("test", "test")):
        files = f"other {what} text than the recipe's"
        runner.add_argument(f"--{option}", type=Path, nargs=2, metavar=("SOURCE", "TARGET"), help=files)
    tokenized = "whether --test and --valid are tokenised already (default: as the recipe's)"
    runner.add_argument("--tokenized", action=argparse.BooleanOptionalAction, help=tokenized)
    runner.add_argument("--no-test", action="store_true", help="score on validation text only")
    runner.add_argument("--again", action="store_true", help="measure what is there again, and replace it")
    runner.add_argument("--processes", type=int, metavar="N", help="as for `regard train`")
    runner.add_argument("--threads", type=int, metavar="N", help="as for `regard train`")
    table = verbs.add_parser("table", help="show what was measured")
    table.add_argument("--page", type=Path, metavar="FILE", help="put the tables into this page, between its marks")
    for verb in (runner, table):
        verb.add_argument("--results", type=Path, default=RESULTS, metavar="FILE", help="default: quality.json")
    return parser


if __name__ == "__main__":
    main()
