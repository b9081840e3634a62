"""How fast would training be on many GPUs? Calculated from sizes and assumptions, not measured.

    python benchmarks/scale.py

A step is computed, then gradients are added up; nothing overlaps, as in regard. Prints the assumptions, what they give
for the paper's own machine next to what the paper reports, and the tables of docs/scale.md.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from regard.model.build import build_model
from regard.model.transformer import Transformer, count_weights
from regard.settings import preset

VOCABULARY = 37_000  # §5.1
FULL_PIECE = 3_000  # tokens on each side from which on a GPU is as busy as it gets; below, time does not fall further


@dataclass(frozen=True)
class Cluster:
    """GPUs in machines: what one computes, and how fast they talk (bytes a second, in each direction)."""

    name: str
    flops: float  # sustained, per GPU
    gpus_a_machine: int
    inside: float  # between the GPUs of a machine, per GPU
    between: float  # between machines, per machine
    delay: float = 20e-6  # seconds of one hop of a ring


PAPER = Cluster("8 P100 (the paper's)", 9.5e12, 8, 20e9, 12.5e9)
TODAY = Cluster("A100 80 GB in machines of 8", 0.2 * 312e12, 8, 250e9, 200e9)


@dataclass(frozen=True)
class Cost:
    """A step: seconds of computing and of adding up."""

    compute: float
    reduce: float

    @property
    def seconds(self) -> float:
        return self.compute + self.reduce


def build(name: str) -> Transformer:
    """Build a preset's model without memory for its weights."""
    with torch.device("meta"):
        return build_model(preset(name).model, VOCABULARY)


def step_flops(model: Transformer, tokens: int) -> float:
    """Operations of a step of so many source and so many target tokens: 2 a weight and token forward, 4 backward.

    The encoder's weights see source tokens, the decoder's and the output's see target tokens. Attention's own products
    and everything that is no matrix are left out: at 30 tokens a sentence they are under 2 % of it.
    """
    inner = sum(weight.numel() for stack in (model.encoder, model.decoder) for weight in stack.stack.parameters())
    return 6.0 * tokens * (inner + model.output.weight.numel())


def step_cost(name: str, cluster: Cluster, gpus: int, tokens: int) -> Cost:
    """Return the cost of a step of `tokens` tokens on each side, shared by so many GPUs."""
    model = build(name)
    share = max(tokens / gpus, FULL_PIECE)
    machines = -(-gpus // cluster.gpus_a_machine)
    local = min(gpus, cluster.gpus_a_machine)
    size = 4 * count_weights(model)  # float32
    # A ring inside each machine, and one between machines: each sends 2 (n - 1) / n of the bytes.
    reduce = 2 * (local - 1) / local * size / cluster.inside + 2 * (local - 1) * cluster.delay
    reduce += 2 * (machines - 1) / machines * size / cluster.between + 2 * (machines - 1) * cluster.delay
    return Cost(step_flops(model, 1) * share / cluster.flops, reduce)


def rows(name: str, tokens_of: dict[int, int]) -> Iterator[str]:
    """Yield a Markdown table: GPUs and the tokens of a step on all of them."""
    yield "| GPUs | tokens a step | a GPU | computing | adding up | a step | target tokens a second | efficiency |"
    yield "|---|---|---|---|---|---|---|---|"
    for gpus, tokens in tokens_of.items():
        cost = step_cost(name, TODAY, gpus, tokens)
        alone = step_cost(name, TODAY, 1, tokens).compute
        yield (
            f"| {gpus} | {tokens:,} | {tokens // gpus:,} | {1e3 * cost.compute:.0f} ms | {1e3 * cost.reduce:.0f} ms | "
            f"{1e3 * cost.seconds:.0f} ms | {tokens / cost.seconds:,.0f} | {alone / gpus / cost.seconds:.0%} |"
        )


def tables() -> dict[str, list[str]]:
    """The tables of docs/scale.md."""
    same = dict.fromkeys((8, 64, 512), 25_000)
    growing = {gpus: 25_000 * gpus // 8 for gpus in same}
    return {
        "paper-base, the paper's batch": list(rows("paper-base", same)),
        "paper-base, a batch that grows": list(rows("paper-base", growing)),
        "paper-big, the paper's batch": list(rows("paper-big", same)),
        "paper-big, a batch that grows": list(rows("paper-big", growing)),
    }


def check_lines() -> list[str]:
    """What the calculation gives for the paper's machine, next to what the paper reports (§5.2)."""
    lines = []
    for name, reported in (("paper-base", 0.4), ("paper-big", 1.0)):
        cost = step_cost(name, PAPER, 8, 25_000)
        lines.append(f"| {name} | {cost.compute:.2f} s | {cost.reduce:.2f} s | {cost.seconds:.2f} s | {reported} s |")
    return lines


def main() -> None:
    for name in ("paper-base", "paper-big"):
        model = build(name)
        print(f"{name}: {count_weights(model):,} weights, {step_flops(model, 25_000) / 1e12:.1f} TFLOP a step")
    print(f"\n{PAPER}\n{TODAY}\n")
    print("\n".join(check_lines()))
    for title, lines in tables().items():
        print(f"\n{title}\n\n" + "\n".join(lines))


if __name__ == "__main__":
    main()
