"""Beam search (§6.1): the K best hypotheses, extended side by side.

Shapes: B sentences, K beams, S source length, T target length so far.

A hypothesis that ends keeps its place among the K, so that a sentence's live beam narrows as hypotheses end, and beam 1
is greedy search. A sentence is done when no hypothesis is alive, or by a bound: a log-probability only falls, and the
length penalty only grows up to the length limit, so no continuation of a live hypothesis can score above
log P / lp(limit). When the wanted number of finished hypotheses score at least that, going on can't change the result.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.model.protocol import TranslationModel
from regard.search.hypothesis import Hypothesis, check_numbers, length_penalty, make_hypothesis
from regard.search.predictor import Array, Likeliest, Predictor, predictor_of
from regard.tokens import END, START

_DEAD = float("-inf")


@dataclass(frozen=True)
class Live:
    """The hypotheses still being extended; a dead place has the log-probability -inf."""

    sentence: Array  # (B,) which sentence of the batch this is
    log_probability: Array  # (B, K)
    tokens: Array  # (B, K, T), the start token first
    token_scores: Array  # (B, K, T)


@dataclass(frozen=True)
class Extended:
    """The best extensions of live hypotheses, best first: (B, K) each."""

    log_probability: Array
    parent: Array  # which of the sentence's hypotheses it extends
    token: Array
    token_score: Array


@torch.inference_mode()
def beam_search(
    model: TranslationModel[Any] | Predictor[Any],
    src: Tensor,
    limits: Tensor,
    beam: int,
    alpha: float,
    n_best: int = 1,
) -> list[list[Hypothesis]]:
    """Translate `src` (B, S); return for each sentence its `n_best` hypotheses (at most `beam`), best first.

    Each target has at most `limits` (B,) tokens, its end token counted.
    """
    predictor, most = predictor_of(model, src.device), limits.cpu().numpy()
    finished: list[list[Hypothesis]] = [[] for _ in range(src.size(0))]
    state = predictor.begin(src)
    live = _begin(src.size(0))
    while live.sentence.size:
        length = live.tokens.shape[2]  # of the hypotheses extended now, their start token not counted
        room = np.array([beam - len(finished[i]) for i in live.sentence.tolist()])
        # A hypothesis has no more of the best extensions than there are in all.
        at_limit, count = most[live.sentence] <= length, int(room.max())
        likeliest, state = predictor.predict(state, live.tokens[:, :, -1], at_limit, count)
        check_numbers(likeliest.log_probabilities)
        best = extend(live, likeliest, room)
        _collect(live, best, finished, alpha)
        live, parents = survivors(live, best)
        keep = _undecided(live, finished, most, alpha, min(n_best, beam))
        if len(keep) < len(parents):
            live, parents = _keep(live, keep), parents[keep]
        if live.sentence.size:
            state = predictor.select(state, parents)
    return [sorted(found, key=lambda one: one.score, reverse=True)[:n_best] for found in finished]


def extend(live: Live, likeliest: Likeliest, room: Array) -> Extended:
    """Return each sentence's best extensions, as many as it has `room` (B,) for; the places beyond are dead."""
    each = likeliest.log_probabilities  # (B, K, count)
    total = (live.log_probability[:, :, None] + each).reshape(len(each), -1)
    place = (-total).argsort(axis=1, kind="stable")[:, : int(room.max())]  # (B, K)
    log_probability = np.take_along_axis(total, place, axis=1)
    log_probability[np.arange(place.shape[1]) >= room[:, None]] = _DEAD
    return Extended(
        log_probability,
        parent=place // each.shape[2],
        token=np.take_along_axis(likeliest.tokens.reshape(total.shape), place, axis=1),
        token_score=np.take_along_axis(each.reshape(total.shape), place, axis=1),
    )


def survivors(live: Live, best: Extended) -> tuple[Live, Array]:
    """Return the extensions that have not ended, moved to the front, and their parents as rows of the state (B, K)."""
    alive = (best.token != END) & (best.log_probability > _DEAD)  # (B, K)
    order = (~alive).argsort(axis=1, kind="stable")[:, : max(1, int(alive.sum(axis=1).max()))]  # (B, K')
    rows = np.arange(len(alive))[:, None]
    log_probability = np.where(alive, best.log_probability, _DEAD)[rows, order]
    parent = best.parent[rows, order]
    tokens = np.concatenate([live.tokens[rows, parent], best.token[rows, order][:, :, None]], axis=2)
    token_scores = np.concatenate([live.token_scores[rows, parent], best.token_score[rows, order][:, :, None]], axis=2)
    return Live(live.sentence, log_probability, tokens, token_scores), rows * live.tokens.shape[1] + parent


def _begin(count: int) -> Live:
    """One hypothesis a sentence: the start token, certain."""
    return Live(
        sentence=np.arange(count),
        log_probability=np.zeros((count, 1), np.float32),
        tokens=np.full((count, 1, 1), START),
        token_scores=np.zeros((count, 1, 1), np.float32),
    )


def _collect(live: Live, best: Extended, finished: list[list[Hypothesis]], alpha: float) -> None:
    """Add the extensions that have ended to their sentences' finished hypotheses."""
    for row, place in np.argwhere((best.token == END) & (best.log_probability > _DEAD)).tolist():
        parent = int(best.parent[row, place])
        tokens = [*live.tokens[row, parent, 1:].tolist(), END]
        token_scores = [*live.token_scores[row, parent, 1:].tolist(), float(best.token_score[row, place])]
        finished[int(live.sentence[row])].append(make_hypothesis(tokens, token_scores, alpha))


def _undecided(live: Live, finished: list[list[Hypothesis]], limits: Array, alpha: float, wanted: int) -> list[int]:
    """Return the rows (B',) of sentences whose result may still change."""
    rows = []
    likeliest = live.log_probability.max(axis=1).tolist()
    for row, (sentence, log_probability) in enumerate(zip(live.sentence.tolist(), likeliest, strict=True)):
        if log_probability == _DEAD:
            continue
        if len(finished[sentence]) >= wanted:
            bound = log_probability / length_penalty(int(limits[sentence]), alpha)
            if sum(one.score >= bound for one in finished[sentence]) >= wanted:
                continue
        rows.append(row)
    return rows


def _keep(live: Live, rows: list[int]) -> Live:
    return Live(live.sentence[rows], live.log_probability[rows], live.tokens[rows], live.token_scores[rows])
