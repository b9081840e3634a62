"""Arguments of the benchmarks' commands."""

import argparse
from collections.abc import Callable, Collection


def names(known: Collection[str]) -> Callable[[str], list[str]]:
    """Return a parser of names between commas, all of which must be known."""

    def parse(text: str) -> list[str]:
        given = [name.strip() for name in text.split(",")]
        for name in given:
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(known)}")
        return given

    return parse
