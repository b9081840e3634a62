"""What a training costs: the FLOPs of its matrix products, counted from their shapes, and the time they take.

A product of (n × k) and (k × m) is 2·n·k·m operations, one multiplication and one addition each. The backward pass
needs two products for each of the forward pass: one for the gradient of either factor. Everything else (softmax, norms,
dropout, sums, the optimizer) is left out, as is usual: it is bound by memory and not by arithmetic. A masked product is
counted whole, because it is computed whole. Batches are taken to be full and without padding.

Symbols: d d_model, f d_ff, h heads, k d_k, v d_v, V vocabulary; S and T tokens a step; n mean length of a sentence.
"""

from dataclasses import dataclass

from regard.paper.figures import PAPER_RUNS, SUSTAINED, PaperRun
from regard.settings import ModelSettings, Settings, preset

MEAN_LENGTH = 30
"""Subwords of a sentence, where nothing better is known; it weighs little as long as it is far below d_model."""

SHARE_OF_PEAK = 0.35
"""Share of a GPU's peak that training is assumed to reach. An assumption: nothing was measured here."""

PEAKS = {"V100 (float16)": 125e12, "A100 (bfloat16)": 312e12, "H100 SXM (bfloat16)": 989e12}
"""FLOPs a second of dense matrix products, as the maker states them."""


@dataclass(frozen=True)
class StepCost:
    """FLOPs of one step's forward pass, by part of the model."""

    encoder: int
    decoder: int
    output: int

    @property
    def forward(self) -> int:
        """All parts together."""
        return self.encoder + self.decoder + self.output

    @property
    def training(self) -> int:
        """Forward and backward."""
        return 3 * self.forward


def step_cost(
    model: ModelSettings, vocabulary: int, source: int, target: int, source_length: int, target_length: int
) -> StepCost:
    """Count the products of a step over `source` and `target` tokens in sentences of the given lengths."""
    keys, values = model.heads * model.key_width, model.heads * model.value_width  # h·k and h·v
    queries_and_output = 2 * model.d_model * (keys + values)  # a token's query, and its row through W^O
    keys_and_values = 2 * model.d_model * (keys + values)
    feed_forward = 4 * model.d_model * model.d_ff

    def look(seen: int) -> int:
        """A token's scores against `seen` others, and their weighted sum."""
        return 2 * (keys + values) * seen

    def look_around(length: int) -> int:
        return look(length if model.neighbours is None else min(length, model.neighbours))

    encoder = source * (queries_and_output + keys_and_values + look_around(source_length) + feed_forward)
    decoder = target * (queries_and_output + keys_and_values + look_around(target_length) + feed_forward)
    cross = target * (queries_and_output + look(source_length)) + source * keys_and_values
    return StepCost(
        encoder=model.encoder_layers * encoder,
        decoder=model.decoder_layers * (decoder + cross),
        output=target * 2 * model.d_model * vocabulary,
    )


def count_weights(model: ModelSettings, vocabulary: int) -> int:
    """Count a model's weights from its settings, without building it."""
    d, f = model.d_model, model.d_ff
    keys, values = model.heads * model.key_width, model.heads * model.value_width
    attention = 2 * d * (keys + values) + (2 * keys + values + d if model.attention_bias else 0)
    feed_forward = 2 * d * f + f + d
    norm = 2 * d
    encoder = attention + feed_forward + 2 * norm
    decoder = 2 * attention + feed_forward + 3 * norm
    last_norms = 2 * norm if model.norm == "pre" else 0
    matrices = {"shared": 1, "target": 2, "separate": 3}[model.embeddings]
    positions = model.max_positions * d if model.positions == "learned" else 0
    stacks = model.encoder_layers * encoder + model.decoder_layers * decoder
    return stacks + last_norms + matrices * vocabulary * d + positions


@dataclass(frozen=True)
class Pace:
    """How fast some GPUs are taken to be, and why."""

    gpu: str
    flops: float
    """A second, of one of them."""
    why: str

    def seconds(self, flops: float, gpus: int = 8) -> float:
        """The time of so many operations."""
        return flops / (self.flops * gpus)


@dataclass(frozen=True)
class TrainingCost:
    """What the training of some settings costs."""

    settings: Settings
    length: int
    step: StepCost
    weights: int

    @property
    def flops(self) -> int:
        """All steps, forward and backward."""
        return self.settings.training.steps * self.step.training

    @property
    def rough(self) -> int:
        """The rule of thumb: six operations for each weight and each token, source and target counted half each."""
        training = self.settings.training
        return 6 * self.weights * training.batch_tokens * training.steps


def training_cost(settings: Settings, length: int = MEAN_LENGTH) -> TrainingCost:
    """Count the cost of a training by a recipe, with full steps of sentences of a mean length."""
    tokens, vocabulary = settings.training.batch_tokens, settings.data.vocabulary_size
    step = step_cost(settings.model, vocabulary, tokens, tokens, length, length)
    return TrainingCost(settings, length, step, count_weights(settings.model, vocabulary))


def paces(length: int = MEAN_LENGTH) -> list[Pace]:
    """Return the GPUs that times are given for: the paper's, by its assumption and by its clock, and today's."""

    def reached(run: PaperRun) -> Pace:
        step = training_cost(preset(run.preset), length).step.training
        why = f"what {run.seconds_a_step} s a step come to, the clock of {run.preset}"
        return Pace("P100", step / (run.seconds_a_step * run.gpus), why)

    return [
        Pace("P100", SUSTAINED["P100"], "the paper's assumption of what it sustains"),
        *map(reached, PAPER_RUNS),
        *(Pace(gpu, SHARE_OF_PEAK * peak, f"{SHARE_OF_PEAK:.0%} of the peak, assumed") for gpu, peak in PEAKS.items()),
    ]
