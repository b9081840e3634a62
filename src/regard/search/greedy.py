"""Greedy search: always the likeliest next token.

Shapes: B sentences, S source length.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.model.protocol import TranslationModel
from regard.search.hypothesis import Hypothesis, check_numbers, make_hypothesis
from regard.search.predictor import Predictor, predictor_of
from regard.tokens import END, START


@torch.inference_mode()
def greedy_search(
    model: TranslationModel[Any] | Predictor[Any], src: Tensor, limits: Tensor, alpha: float = 0.0
) -> list[Hypothesis]:
    """Translate `src` (B, S); each target has at most `limits` (B,) tokens, its end token counted.

    A sentence leaves the batch when it ends. `alpha` only scales the score that is reported.
    """
    predictor, most = predictor_of(model, src.device), limits.cpu().numpy()
    state = predictor.begin(src)
    targets: list[list[int]] = [[] for _ in range(src.size(0))]
    token_scores: list[list[float]] = [[] for _ in range(src.size(0))]
    going = np.arange(src.size(0))  # which sentence a row of the state is
    newest = np.full((src.size(0), 1), START)
    length = 0
    while going.size:
        length += 1
        likeliest, state = predictor.predict(state, newest, most[going] <= length, count=1)
        best, tokens = likeliest.log_probabilities[:, 0, 0], likeliest.tokens[:, 0, 0]  # (B,)
        check_numbers(best)
        for sentence, token, score in zip(going.tolist(), tokens.tolist(), best.tolist(), strict=True):
            targets[sentence].append(token)
            token_scores[sentence].append(score)
        rows = np.flatnonzero(tokens != END)
        going, newest = going[rows], tokens[rows, None]
        if rows.size:
            state = predictor.select(state, rows[:, None])
    return [make_hypothesis(*found, alpha) for found in zip(targets, token_scores, strict=True)]
