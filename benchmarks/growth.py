"""How does cost grow? Measure along sentence length, corpus, vocabulary, beam and processes; draw it, fit powers.

    python benchmarks/growth.py                        everything; the largest corpus takes long
    python benchmarks/growth.py --only length,beam     these panels only
    python benchmarks/growth.py --go-on                only what was not measured yet
    python benchmarks/growth.py --quick                a few tiny points, to see that it works
    python benchmarks/growth.py --picture              measure nothing; draw what was measured before

Each point is measured in a process of its own and written to growth.json at once. growth.svg and growth.png are drawn
at the end, and a table of powers is printed: a cost that grows as a power of a quantity is a straight line on
logarithmic axes, and the power is its slope.
"""

import argparse
import json
import sys
from pathlib import Path

from comparison.arguments import names
from growing.plan import PANELS
from growing.running import run
from growing.table import report

HERE = Path("growth")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=names(PANELS), default=list(PANELS), help=f"of: {', '.join(PANELS)}")
    parser.add_argument("--quick", action="store_true", help="few points, small ones, each measured once")
    parser.add_argument("--go-on", action="store_true", help="keep the points that --out has, measure what is missing")
    parser.add_argument("--out", type=Path, default=HERE, metavar="DIR", help=f"results and picture (default: {HERE})")
    parser.add_argument("--picture", action="store_true", help="measure nothing; draw what --out has")
    given = parser.parse_args()
    file = given.out / "growth.json"
    if not given.picture:
        results = run(given.only, given.quick, given.go_on, file)
    elif file.exists():
        results = json.loads(file.read_text())
    else:
        sys.exit(f"{file}: nothing was measured yet")
    from growing.picture import draw  # not above: the processes that measure import this file

    draw(results, given.out / "growth")
    print(report(results))


if __name__ == "__main__":
    main()
