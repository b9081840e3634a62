"""Greedy search: always the likeliest next token.

Shapes: B sentences, S source length, V vocabulary.
"""

import torch
from torch import Tensor

from regard.model.protocol import StateType, TranslationModel
from regard.search.hypothesis import Hypothesis, check_numbers, make_hypothesis, rule_out
from regard.search.top import top
from regard.tokens import END, START


@torch.inference_mode()
def greedy_search(
    model: TranslationModel[StateType], src: Tensor, limits: Tensor, alpha: float = 0.0
) -> list[Hypothesis]:
    """Translate `src` (B, S); each target has at most `limits` (B,) tokens, its end token counted.

    A sentence leaves the batch when it ends. `alpha` only scales the score that is reported.
    """
    state = model.start(model.encode(src))
    targets: list[list[int]] = [[] for _ in range(src.size(0))]
    token_scores: list[list[float]] = [[] for _ in range(src.size(0))]
    going = torch.arange(src.size(0), device=src.device)  # which sentence a row of the state is
    newest = src.new_full((src.size(0), 1), START)
    while going.numel():
        scores, state = model.step(state, newest)  # (B, 1, V)
        length = len(targets[int(going[0])]) + 1
        best, tokens = (one.squeeze(1) for one in top(rule_out(scores, limits[going] <= length).squeeze(1), 1))  # (B,)
        check_numbers(best)
        for sentence, token, score in zip(going.tolist(), tokens.tolist(), best.tolist(), strict=True):
            targets[sentence].append(token)
            token_scores[sentence].append(score)
        rows = (tokens != END).nonzero().squeeze(1)
        going, newest = going[rows], tokens[rows, None]
        if rows.numel():
            state = state.select(rows[:, None])
    return [make_hypothesis(*found, alpha) for found in zip(targets, token_scores, strict=True)]
