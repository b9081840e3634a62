"""Is regard faster? Train and translate with it and with other toolkits, in turns, at the same work.

    python benchmarks/compare.py                                   everything; three quarters of an hour, by estimate
    python benchmarks/compare.py --only training-tiny --quick      one work, a short look
    python benchmarks/compare.py --peers ctranslate2,transformers  only against these
    python benchmarks/compare.py --table                           the tables of what was measured before

The other toolkits are installed into environments of their own, outside regard's, when they are first needed; that
takes ten minutes more. Settings (processes, threads, batch sizes) are searched for first, for each toolkit; then all do
the same work in turns, several rounds. Who is far behind the best other after the first round is spared the rest.
Results are written as JSON after every round; a work measured again replaces its old result.
"""

import argparse
import json
import sys
from pathlib import Path

from comparison.arguments import names
from comparison.comparing import Options, run
from comparison.environments import DEFAULT, RECIPES
from comparison.table import report
from comparison.works import WITH_GOALS, WORKS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", type=names(WORKS), default=WITH_GOALS, help=f"of: {', '.join(WORKS)} (default: those with a goal)"
    )
    parser.add_argument("--peers", type=names(RECIPES), default=list(RECIPES), help=f"of: {', '.join(RECIPES)}")
    parser.add_argument("--rounds", type=int, default=3, help="turns of everybody (default: 3)")
    parser.add_argument("--quick", action="store_true", help="fewer steps and sentences, one round, no search")
    parser.add_argument("--keep-settings", action="store_true", help="take threads and batch sizes from --out")
    parser.add_argument("--environments", type=Path, default=DEFAULT, metavar="DIR", help=f"default: {DEFAULT}")
    parser.add_argument("--out", type=Path, metavar="FILE", help="results (default: results.json in --environments)")
    parser.add_argument("--table", action="store_true", help="measure nothing; show what --out holds")
    given = parser.parse_args()
    out = given.out or given.environments / "results.json"
    if not given.table:
        rounds = 1 if given.quick else given.rounds
        run(Options(given.only, given.peers, rounds, given.quick, given.keep_settings, given.environments, out))
    elif not out.exists():
        sys.exit(f"{out}: nothing was measured yet")
    print(report(json.loads(out.read_text())))


if __name__ == "__main__":
    main()
