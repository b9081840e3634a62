"""Figures that the paper prints: its two models' training, its Table 2, and its Table 3."""

from dataclasses import dataclass

SUSTAINED = {"K80": 2.8e12, "K40": 3.7e12, "M40": 6.0e12, "P100": 9.5e12}
"""Single-precision FLOPs a second that the paper assumes a GPU to sustain, for its estimates (footnote of §6.1)."""


@dataclass(frozen=True)
class PaperRun:
    """One of the paper's trainings, as it tells it (§5.2), and the cost of it in its Table 2."""

    preset: str
    steps: int
    seconds_a_step: float
    hours: float
    flops: float
    gpus: int = 8

    @property
    def estimate(self) -> float:
        """The paper's way to a training's FLOPs: time × GPUs × what a P100 sustains."""
        return self.hours * 3600 * self.gpus * SUSTAINED["P100"]


PAPER_RUNS = (
    PaperRun("paper-base", 100_000, 0.4, 12, 3.3e18),
    PaperRun("paper-big", 300_000, 1.0, 3.5 * 24, 2.3e19),
)


@dataclass(frozen=True)
class System:
    """A row of Table 2: BLEU on newstest2014 and training FLOPs, where it has them."""

    name: str
    bleu_de: float | None = None
    bleu_fr: float | None = None
    flops_de: float | None = None
    flops_fr: float | None = None


TABLE_2 = (
    System("ByteNet", 23.75),
    System("Deep-Att + PosUnk", None, 39.2, None, 1.0e20),
    System("GNMT + RL", 24.6, 39.92, 2.3e19, 1.4e20),
    System("ConvS2S", 25.16, 40.46, 9.6e18, 1.5e20),
    System("MoE", 26.03, 40.56, 2.0e19, 1.2e20),
    System("Deep-Att + PosUnk ensemble", None, 40.4, None, 8.0e20),
    System("GNMT + RL ensemble", 26.30, 41.16, 1.8e20, 1.1e21),
    System("ConvS2S ensemble", 26.36, 41.29, 7.7e19, 1.2e21),
    System("Transformer base", 27.3, 38.1, 3.3e18),
    System("Transformer big", 28.4, 41.8, 2.3e19),
)


@dataclass(frozen=True)
class Variation:
    """A row of Table 3, on newstest2013: our preset of it, perplexity, BLEU, and millions of weights where printed."""

    row: str
    preset: str
    perplexity: float
    bleu: float
    millions: int | None = None


TABLE_3 = (
    Variation("base", "paper-base", 4.92, 25.8, 65),
    Variation("A", "table3-heads-1", 5.29, 24.9),
    Variation("A", "table3-heads-4", 5.00, 25.5),
    Variation("A", "table3-heads-16", 4.91, 25.8),
    Variation("A", "table3-heads-32", 5.01, 25.4),
    Variation("B", "table3-keys-16", 5.16, 25.1, 58),
    Variation("B", "table3-keys-32", 5.01, 25.4, 60),
    Variation("C", "table3-layers-2", 6.11, 23.7, 36),
    Variation("C", "table3-layers-4", 5.19, 25.3, 50),
    Variation("C", "table3-layers-8", 4.88, 25.5, 80),
    Variation("C", "table3-width-256", 5.75, 24.5, 28),
    Variation("C", "table3-width-1024", 4.66, 26.0, 168),
    Variation("C", "table3-feed-forward-1024", 5.12, 25.4, 53),
    Variation("C", "table3-feed-forward-4096", 4.75, 26.2, 90),
    Variation("D", "table3-dropout-0.0", 5.77, 24.6),
    Variation("D", "table3-dropout-0.2", 4.95, 25.5),
    Variation("D", "table3-smoothing-0.0", 4.67, 25.3),
    Variation("D", "table3-smoothing-0.2", 5.47, 25.7),
    Variation("E", "table3-positions-learned", 4.92, 25.7),
    Variation("big", "table3-big", 4.33, 26.4, 213),
)
