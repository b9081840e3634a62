"""Sampling: each next token drawn by its probability.

Shapes: B sentences, K samples a sentence, S source length, V vocabulary.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.model.protocol import StateType, TranslationModel
from regard.search.hypothesis import Hypothesis, check_numbers, make_hypothesis, rule_out
from regard.tokens import END, START


@torch.inference_mode()
def sample(
    model: TranslationModel[StateType],
    src: Tensor,
    limits: Tensor,
    seeds: Sequence[int],
    samples: int = 1,
    temperature: float = 1.0,
    top_k: int | None = None,
) -> list[list[Hypothesis]]:
    """Draw `samples` translations of each sentence of `src` (B, S), best first.

    A sentence's draws depend on its own seed alone, never on the batch it is in. Probabilities are raised to
    1/temperature; with `top_k`, only the likeliest tokens are drawn. Scores are the model's own.
    """
    chance = [torch.Generator().manual_seed(seed) for seed in seeds]
    count = src.size(0)
    state = model.start(model.encode(src))
    state = state.select(torch.arange(count, device=src.device)[:, None].expand(-1, samples))
    targets: list[list[int]] = [[] for _ in range(count * samples)]
    token_scores: list[list[float]] = [[] for _ in range(count * samples)]
    going = torch.arange(count, device=src.device)  # which sentence a row of the state is
    ended = torch.zeros(count, samples, dtype=torch.bool, device=src.device)
    newest = src.new_full((count, samples), START)
    length = 0
    while going.numel():
        length += 1
        scores, state = model.step(state, newest)  # (B, K, V)
        rule_out(scores, limits[going] <= length)
        noise = torch.stack([_gumbel(samples, scores.size(2), chance[i]) for i in going.tolist()]).to(scores)
        tokens = (_likeliest(scores, top_k) / temperature + noise).argmax(dim=2)  # (B, K)
        drawn = scores.gather(2, tokens[:, :, None]).squeeze(2)
        check_numbers(drawn.cpu().numpy())
        for row, sentence in enumerate(going.tolist()):
            for k in range(samples):
                if not ended[row, k]:
                    targets[sentence * samples + k].append(int(tokens[row, k]))
                    token_scores[sentence * samples + k].append(float(drawn[row, k]))
        ended |= tokens == END
        rows = (~ended.all(dim=1)).nonzero().squeeze(1)
        going, newest, ended = going[rows], tokens[rows], ended[rows]
        if rows.numel():
            state = state.select(rows[:, None] * samples + torch.arange(samples, device=src.device))
    found = [make_hypothesis(*pair, 0.0) for pair in zip(targets, token_scores, strict=True)]
    return [
        sorted(found[i * samples : (i + 1) * samples], key=lambda one: one.score, reverse=True) for i in range(count)
    ]


def _gumbel(rows: int, width: int, generator: torch.Generator) -> Tensor:
    """Noise that turns an argmax over log-probabilities into a draw by probability."""
    uniform = torch.rand(rows, width, generator=generator, dtype=torch.float64)
    return -(-uniform.clamp(min=1e-300).log()).log()


def _likeliest(scores: Tensor, top_k: int | None) -> Tensor:
    if top_k is None or top_k >= scores.size(2):
        return scores
    least = scores.topk(top_k, dim=2).values[:, :, -1:]
    return scores.masked_fill(scores < least, float("-inf"))
