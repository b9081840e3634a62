"""What all tests share. Nothing heavy is imported here: tests of text run without torch."""

import signal
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings

# A shell lets what it starts in the background ignore Ctrl-C; tests of Ctrl-C may run there.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadlines, because no test measures wall-clock time; the same examples in every run, so that a failure is the
# change's and not the day's.
settings.register_profile("regard", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("regard")


@pytest.fixture(scope="session")
def tiny_model() -> Callable[..., Any]:
    """A function that makes a random model small enough to check by hand: `tiny_model(seed=1, norm="pre", …)`.

    It is in evaluation mode and has no dropout unless asked for. `sharpness` multiplies the embeddings, and so the
    logits: a random model that is sure of itself ends sentences at different lengths and has no near-ties.
    """
    import torch

    from regard.model.build import build_model
    from regard.settings import ModelSettings

    def make(vocabulary: int = 13, seed: int = 0, sharpness: float = 1.0, **options: Any) -> Any:
        values = {"d_model": 16, "d_ff": 32, "heads": 4, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0}
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            model = build_model(ModelSettings(**{**values, **options}), vocabulary)
        with torch.no_grad():
            for matrix in {id(m.weight): m.weight for m in (model.decoder.entry.embedding, model.output)}.values():
                matrix.mul_(sharpness)
        return model.eval()

    return make


@pytest.fixture(scope="session")
def random_source() -> Callable[..., Any]:
    """A function that makes a batch (B, S) of random sentences of the given lengths, padded on the right."""
    import torch

    from regard.tokens import END, PAD

    def make(lengths: list[int], vocabulary: int = 13, seed: int = 0) -> Any:
        generator = torch.Generator().manual_seed(seed)
        batch = torch.full((len(lengths), max(lengths)), PAD)
        for row, length in zip(batch, lengths, strict=True):
            row[: length - 1] = torch.randint(END + 1, vocabulary, (length - 1,), generator=generator)
            row[length - 1] = END
        return batch

    return make
