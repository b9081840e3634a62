"""From figures to slopes: by which power of a quantity a cost grows, beside the power that is expected."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from growing.plan import LENGTH, NEIGHBOURS, TOKENS, VOCABULARY
from regard.paper.cost import step_cost
from regard.settings import ModelSettings, preset

Curve = list[tuple[float, float]]  # of a quantity, and the cost at it
Results = Mapping[str, Any]


@dataclass(frozen=True)
class Growth:
    """A cost along a quantity: from `first` on it should grow as `expected` does."""

    title: str
    panel: str
    line: str
    figure: str
    first: float
    expected: Callable[[float], float]
    is_bound: bool = False  # no more than `expected` is expected, because a part of the cost does not grow
    each: bool = False  # the figure is a token's, and the cost is that of a sentence: the figure times the quantity

    def curve(self, results: Results) -> Curve:
        """Return what was measured, from the least of the quantity to the most."""
        found = [one for one in results["panels"].get(self.panel, []) if one["line"] == self.line]
        curve = [(one["value"], one[self.figure] * (one["value"] if self.each else 1)) for one in found]
        return sorted(curve)

    def slopes(self, results: Results) -> tuple[float, float, float, float] | None:
        """Return the range that was fitted, the power that was found, and the expected one; None if two are missing."""
        curve = [(value, cost) for value, cost in self.curve(results) if value >= self.first]
        if len(curve) < 2:
            return None
        expected = [(value, self.expected(value)) for value, _ in curve]
        return curve[0][0], curve[-1][0], slope(curve), slope(expected)


def slope(curve: Sequence[tuple[float, float]]) -> float:
    """Return the power of a curve: the slope of the straight line through it, on logarithmic axes."""
    x, y = np.log(np.array(curve)).T
    return float(np.polyfit(x, y, 1)[0])


# ---- what is expected: the products that `regard paper cost` counts --------------------------------------------------


def model(line: str) -> ModelSettings:
    """Return 'tiny' with the attention that a line has."""
    neighbours = NEIGHBOURS if line == "restricted attention" else None
    return preset("tiny").model.model_copy(update={"neighbours": neighbours})


def training_products(line: str) -> Callable[[float], float]:
    """Return the count of a training step's products, a token, as a function of the length."""
    return lambda n: step_cost(model(line), VOCABULARY, TOKENS, TOKENS, round(n), round(n)).training / TOKENS


def encoding_products(line: str) -> Callable[[float], float]:
    """Return the count of the encoder's products, a token, as a function of the length."""
    return lambda n: step_cost(model(line), VOCABULARY, TOKENS, TOKENS, round(n), round(n)).encoder / TOKENS


def vocabulary_products(vocabulary: float) -> float:
    """Return the count of a training step's products, a token."""
    return step_cost(model(""), round(vocabulary), TOKENS, TOKENS, LENGTH, LENGTH).training / TOKENS


def a_sentence(products: Callable[[float], float]) -> Callable[[float], float]:
    """Return the products of a sentence: as many times a token's as it is long."""
    return lambda n: n * products(n)


def flat(_: float) -> float:
    """Return what does not grow."""
    return 1.0


def proportional(quantity: float) -> float:
    """Return what doubles with the quantity."""
    return quantity


FULL, RESTRICTED, CORPUS = "full attention", "restricted attention", "made-up text"

GROWTHS = (
    *(
        Growth(
            f"{work}, {line}: time a sentence", "length", line, f"{work}_seconds", 256, a_sentence(of(line)), each=True
        )
        for work, of in (("training", training_products), ("encoding", encoding_products))
        for line in (FULL, RESTRICTED)
    ),
    *(
        Growth(f"{work}, {line}: memory of {TOKENS:,} tokens", "length", line, f"{work}_memory", 256, flat)
        for work in ("training", "encoding")
        for line in (FULL, RESTRICTED)
    ),
    Growth("preparing: memory", "corpus", CORPUS, "preparation_memory", 0, flat),
    Growth("training: memory", "corpus", CORPUS, "training_memory", 0, flat),
    Growth("preparing: CPU time a token", "corpus", CORPUS, "preparation_seconds", 0, flat),
    Growth("making batches: CPU time a token", "corpus", CORPUS, "batches_seconds", 0, flat),
    Growth("training: CPU time a token", "corpus", CORPUS, "training_seconds", 0, flat),
    Growth("training: time a token", "vocabulary", "tiny", "training_seconds", 8000, vocabulary_products),
    Growth("training: memory", "vocabulary", "tiny", "training_memory", 8000, proportional, is_bound=True),
    Growth("translating: time a sentence", "beam", "tiny", "translation_seconds", 4, proportional, is_bound=True),
)
