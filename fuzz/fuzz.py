"""A coverage-guided fuzzer on every reader: only errors of regard's own may come out.

    pip install 'regard[fuzz]'
    python fuzz/fuzz.py                          each reader for 30 seconds
    python fuzz/fuzz.py --seconds 600 gzip toml  two of them for ten minutes each

Each reader runs in a process of its own, and what it finds stays in fuzz/found/READER/: inputs that reached new code in
`corpus`, and inputs that ended in anything but an error of ours, in a crash, in more than 10 seconds or in more than
2 GB of memory, beside it. The exit code is 1 if there are any of the second kind.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

FOUND = Path(__file__).parent / "found"
NAMES = ["recipe", "toml", "json", "text", "tsv", "gzip", "sentencepiece", "safetensors", "model_folder", "store"]
LIMITS = ("-timeout=10", "-rss_limit_mb=2048", "-max_len=40000")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("readers", nargs="*", metavar="READER", help=f"{', '.join(NAMES)}; none: all of them")
    parser.add_argument("--seconds", type=int, default=30, help="for each reader")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    unknown = set(options.readers) - set(NAMES)
    if unknown:
        parser.error(f"no reader {', '.join(sorted(unknown))}; known: {', '.join(NAMES)}")
    if options.child:
        fuzz(options.child, options.seconds)
        return
    good = [run(name, options.seconds) for name in options.readers or NAMES]
    sys.exit(0 if all(good) else 1)


def run(name: str, seconds: int) -> bool:
    """Fuzz one reader in a process of its own, say how often it ran, and return whether all was well."""
    command = [sys.executable, __file__, "--child", name, "--seconds", str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    runs = re.search(r"Done (\d+) runs in (\d+) second", done.stderr)
    covered = re.findall(r"cov: (\d+)", done.stderr)
    told = f"{int(runs[1]):,} runs in {runs[2]} s" if runs else "stopped"
    print(f"{name:14} {told}, {covered[-1] if covered else 0} places of the code reached", flush=True)
    if done.returncode or not runs:
        print(f"{done.stdout[-3000:]}\n{done.stderr[-1000:]}\n{name}: FOUND, see {FOUND / name}", flush=True)
        return False
    return True


def fuzz(name: str, seconds: int) -> None:
    import atheris

    with atheris.instrument_imports(include=["regard", "tomllib", "gzip", "json"]):
        from readers import READERS

    corpus = FOUND / name / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(READERS[name].seeds()):
        (corpus / f"seed-{number}").write_bytes(seed)
    arguments = [sys.argv[0], str(corpus), f"-max_total_time={seconds}", f"-artifact_prefix={FOUND / name}/", *LIMITS]
    atheris.Setup(arguments, READERS[name].read)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
