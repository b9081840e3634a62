"""What makes a search faster: a shortlist, a deep encoder with a shallow decoder, or both; measured in turns.

    python benchmarks/decoding.py tiny tiny-deep-encoder --rounds 5
    python benchmarks/decoding.py paper-base base-deep-encoder --rounds 3 --sentences 16

The compiled engine searches, where there is one, as in `regard translate`; with --torch, torch's operations do. Each
named preset is built with random weights, and every sentence is translated for exactly as many steps as it has tokens:
an end is never likely. Tokens follow Zipf's law. A source token's list holds 50 tokens, drawn by the same law, so that
lists overlap as those of real words do. One thread, whose own time is taken, so that what else the machine does counts
little; shown are medians, and ratios to the first line within each round.
"""

import argparse
import time
from collections.abc import Callable
from statistics import median

import numpy as np
import torch

from regard.engine import NativeModel, lay_out_for
from regard.machine import Machine, choose_machine
from regard.model.build import build_model
from regard.model.quantize import use_int8_products
from regard.model.restricted import RestrictedModel
from regard.model.transformer import Transformer, count_weights
from regard.search.beam import beam_search
from regard.search.greedy import greedy_search
from regard.settings import preset
from regard.shortlist import FREQUENT, PER_WORD, Shortlist
from regard.tokens import END

LENGTHS = (52, 28, 20, 12)  # of sentences, the end token counted; a batch has one length
BYTES = 256
FIRST = END + 1 + BYTES  # the most frequent token
AWAY = 50.0  # logits by which the end token is less likely than the average token


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("presets", nargs="+")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sentences", type=int, default=32, help="of each length, which are one batch")
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--int8", action="store_true", help="matrix products in eight bits")
    parser.add_argument("--torch", action="store_true", help="without the compiled engine")
    options = parser.parse_args()
    machine = choose_machine("cpu", "int8" if options.int8 else "float32", threads=1)
    ways: dict[str, Callable[[], int]] = {}
    for name in options.presets:
        ways |= make_ways(name, machine, options)
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for turn in range(options.rounds + 1):  # the first is to get warm
        for way, translate in ways.items():
            start = time.process_time()
            translate()
            if turn:
                seconds[way].append(time.process_time() - start)
    first = next(iter(seconds.values()))
    print(f"beam {options.beam}, one thread, {options.rounds} rounds, {machine.precision}")
    for way, times in seconds.items():
        speed = options.sentences * len(LENGTHS) / median(times)
        ratios = [one / other for one, other in zip(first, times, strict=True)]
        print(f"{way}: {speed:,.1f} sentences/s, {median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})")


def make_ways(name: str, machine: Machine, options: argparse.Namespace) -> dict[str, Callable[[], int]]:
    """Return what translates all sentences with a preset's model, without a shortlist and with one."""
    settings = preset(name)
    vocabulary = settings.data.vocabulary_size
    model = make_model(name, vocabulary)
    weights = count_weights(model) / 1e6
    native = None if options.torch else lay_out_for(machine, model)
    if machine.precision == "int8":
        use_int8_products(model)
    chance = np.random.default_rng(1)
    batches = [draw(chance, vocabulary, (options.sentences, length)) for length in LENGTHS]
    shortlist = make_shortlist(chance, vocabulary)
    lists = [len(shortlist.rows(tokens)) for batch in batches for tokens in batch.tolist()]
    unions = [len(shortlist.batch(batch.tolist()).rows) for batch in batches]
    listed = f"shortlists of {np.mean(lists):,.0f}, {np.mean(unions):,.0f} a batch, of {vocabulary:,}"
    layers = f"{settings.model.encoder_layers} + {settings.model.decoder_layers} layers, {weights:.1f} M weights"
    by = "torch" if native is None else "the compiled engine"
    return {
        f"{name} ({layers}; by {by})": lambda: translate_all(native or model, batches, None, options.beam),
        f"{name}, {listed}": lambda: translate_all(native or model, batches, shortlist, options.beam),
    }


def make_model(name: str, vocabulary: int) -> Transformer:
    """Return a preset's model with random weights, which never finds an end likely."""
    torch.manual_seed(1)
    settings = preset(name).model
    model = build_model(settings, vocabulary).eval()
    direction = torch.nn.functional.normalize(torch.randn(settings.d_model), dim=0)
    with torch.no_grad():
        model.decoder.layers[-1].feed_forward_residual.layer_norm.bias.copy_(AWAY * direction)
        model.output.weight[END] = -direction
    return model


def make_shortlist(chance: np.random.Generator, vocabulary: int) -> Shortlist:
    """Return lists of as many tokens as 'regard shortlist' keeps."""
    always = np.arange(END, FIRST + FREQUENT, dtype=np.int32)
    targets = draw(chance, vocabulary, (vocabulary, PER_WORD + 1))[:, :-1].astype(np.int32).ravel()
    return Shortlist("", always, np.arange(vocabulary + 1, dtype=np.int32) * PER_WORD, targets)


def draw(chance: np.random.Generator, vocabulary: int, shape: tuple[int, int]) -> np.ndarray:
    """Draw sentences of tokens by Zipf's law, each with its end token."""
    weights = 1 / np.arange(10, vocabulary - FIRST + 10)
    tokens = chance.choice(vocabulary - FIRST, shape, p=weights / weights.sum()) + FIRST
    tokens[:, -1] = END
    return tokens


def translate_all(
    model: Transformer | NativeModel, batches: list[np.ndarray], shortlist: Shortlist | None, beam: int
) -> int:
    """Translate batches, and return the number of steps, which have to be those of the sources."""
    steps = 0
    for batch in batches:
        src = torch.from_numpy(batch)
        limits = torch.full((len(batch),), batch.shape[1])
        searched = model if shortlist is None else restrict(model, *shortlist.batch(batch.tolist()))
        if beam == 1:
            found = greedy_search(searched, src, limits)
        else:
            found = [best[0] for best in beam_search(searched, src, limits, beam, 0.6)]
        steps += sum(len(one.tokens) for one in found)
    assert steps == sum(batch.size for batch in batches)
    return steps


def restrict(model: Transformer | NativeModel, rows: np.ndarray, allowed: np.ndarray) -> RestrictedModel | NativeModel:
    """Return a model with these tokens alone, and each sentence of a batch with those that it is allowed."""
    if isinstance(model, NativeModel):
        return model.restricted(rows, allowed)
    return RestrictedModel(model, torch.from_numpy(rows), torch.from_numpy(allowed))


if __name__ == "__main__":
    main()
