"""What is measured: along which quantities cost may grow, and at which values of each."""

from collections.abc import Iterator
from dataclasses import dataclass

TOKENS = 2048  # of a training step's piece, on each side; and of what is encoded at once
LENGTH = 32  # of sentences, where it is not the length that changes
VOCABULARY = 10_000  # where it is not the vocabulary that changes
NEIGHBOURS = 64  # of restricted attention


@dataclass(frozen=True)
class Panel:
    """A quantity along which cost may grow; `lines` are done at each of its values."""

    name: str
    quantity: str
    lines: tuple[str, ...]
    values: tuple[int, ...]
    quick_values: tuple[int, ...]


@dataclass(frozen=True)
class Point:
    """One measurement."""

    panel: str
    line: str
    value: int
    quick: bool = False

    @property
    def title(self) -> str:
        """The point in a few words."""
        return f"{PANELS[self.panel].quantity} {self.value:,}, {self.line}"


PANELS = {
    panel.name: panel
    for panel in (
        Panel(
            "length",
            "sentence length",
            ("full attention", "restricted attention"),
            (16, 32, 64, 128, 256, 512, 1024, 2048),
            (16, 128),
        ),
        Panel("corpus", "pairs", ("made-up text",), (10_000, 100_000, 1_000_000, 5_000_000), (300, 600)),
        Panel("vocabulary", "vocabulary", ("tiny",), (1000, 2000, 4000, 8000, 16_000, 32_000, 64_000), (500, 1000)),
        Panel("beam", "beam", ("tiny",), (1, 2, 4, 8, 16, 32), (1, 2)),
        Panel("processes", "processes", ("tiny",), (1, 2, 4), (1, 2)),
    )
}


def points(panel: Panel, quick: bool) -> Iterator[Point]:
    """Yield the measurements of a panel; the lines take turns, so that what else the machine does hits all of them."""
    for value in panel.quick_values if quick else panel.values:
        for line in panel.lines:
            yield Point(panel.name, line, value, quick)
