"""Beam search (§6.1): the K best hypotheses, extended side by side.

Shapes: B sentences, K beams, S source length, T target length so far, V vocabulary.

A hypothesis that ends keeps its place among the K, so that a sentence's live beam narrows as hypotheses end, and beam 1
is greedy search. A sentence is done when no hypothesis is alive, or by a bound: a log-probability only falls, and the
length penalty only grows up to the length limit, so no continuation of a live hypothesis can score above
log P / lp(limit). When the wanted number of finished hypotheses score at least that, going on can't change the result.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.model.protocol import StateType, TranslationModel
from regard.search.hypothesis import Hypothesis, check_numbers, length_penalty, make_hypothesis, rule_out
from regard.search.top import top
from regard.tokens import END, START

_DEAD = float("-inf")


@dataclass(frozen=True)
class Live:
    """The hypotheses still being extended; a dead place has the log-probability -inf."""

    sentence: Tensor  # (B,) which sentence of the batch this is
    log_probability: Tensor  # (B, K)
    tokens: Tensor  # (B, K, T), the start token first
    token_scores: Tensor  # (B, K, T)


@dataclass(frozen=True)
class Extended:
    """The best extensions of live hypotheses, best first: (B, K) each."""

    log_probability: Tensor
    parent: Tensor  # which of the sentence's hypotheses it extends
    token: Tensor
    token_score: Tensor


@torch.inference_mode()
def beam_search(
    model: TranslationModel[StateType], src: Tensor, limits: Tensor, beam: int, alpha: float, n_best: int = 1
) -> list[list[Hypothesis]]:
    """Translate `src` (B, S); return for each sentence its `n_best` hypotheses (at most `beam`), best first.

    Each target has at most `limits` (B,) tokens, its end token counted.
    """
    count = src.size(0)
    finished: list[list[Hypothesis]] = [[] for _ in range(count)]
    state = model.start(model.encode(src))
    live = _begin(src)
    while live.sentence.numel():
        scores, state = model.step(state, live.tokens[:, :, -1])  # (B, K, V)
        length = live.tokens.size(2)  # of the hypotheses extended now, their start token not counted
        rule_out(scores, limits[live.sentence] <= length)
        room = live.sentence.new_tensor([beam - len(finished[i]) for i in live.sentence.tolist()])
        best = extend(live, scores, room)
        check_numbers(best.log_probability)
        _collect(live, best, finished, alpha)
        live, parents = survivors(live, best)
        keep = _undecided(live, finished, limits, alpha, min(n_best, beam))
        live, parents = _keep(live, keep), parents[keep]
        if live.sentence.numel():
            state = state.select(parents)
    return [sorted(found, key=lambda one: one.score, reverse=True)[:n_best] for found in finished]


def extend(live: Live, scores: Tensor, room: Tensor) -> Extended:
    """Return each sentence's best extensions, as many as it has `room` (B,) for; the places beyond are dead."""
    batch, beams, vocabulary = scores.shape
    count = int(room.max())
    # A hypothesis has no more of the best extensions than there are in all.
    each, tokens = top(scores.view(batch * beams, vocabulary), min(count, vocabulary))
    each, tokens = each.view(batch, beams, -1), tokens.view(batch, -1)
    total = (live.log_probability[:, :, None] + each).flatten(1)
    log_probability, place = total.topk(min(count, total.size(1)), dim=1)  # (B, K)
    rank = torch.arange(place.size(1), device=place.device)
    log_probability = log_probability.masked_fill(rank >= room[:, None], _DEAD)
    return Extended(
        log_probability,
        parent=place // each.size(2),
        token=tokens.gather(1, place),
        token_score=each.flatten(1).gather(1, place),
    )


def survivors(live: Live, best: Extended) -> tuple[Live, Tensor]:
    """Return the extensions that have not ended, moved to the front, and their parents as rows of the state (B, K)."""
    alive = (best.token != END) & (best.log_probability > _DEAD)  # (B, K)
    width = max(1, int(alive.sum(dim=1).max()))
    order = alive.int().argsort(dim=1, descending=True, stable=True)[:, :width]  # (B, K')
    log_probability = best.log_probability.masked_fill(~alive, _DEAD).gather(1, order)
    parent = best.parent.gather(1, order)
    history = parent[:, :, None].expand(-1, -1, live.tokens.size(2))
    tokens = torch.cat([live.tokens.gather(1, history), best.token.gather(1, order)[:, :, None]], dim=2)
    token_scores = torch.cat(
        [live.token_scores.gather(1, history), best.token_score.gather(1, order)[:, :, None]], dim=2
    )
    beams = live.tokens.size(1)
    rows = torch.arange(parent.size(0), device=parent.device)[:, None] * beams + parent
    return Live(live.sentence, log_probability, tokens, token_scores), rows


def _begin(src: Tensor) -> Live:
    """One hypothesis a sentence: the start token, certain."""
    count = src.size(0)
    return Live(
        sentence=torch.arange(count, device=src.device),
        log_probability=torch.zeros(count, 1, device=src.device),
        tokens=src.new_full((count, 1, 1), START),
        token_scores=torch.zeros(count, 1, 1, device=src.device),
    )


def _collect(live: Live, best: Extended, finished: list[list[Hypothesis]], alpha: float) -> None:
    """Add the extensions that have ended to their sentences' finished hypotheses."""
    ended = ((best.token == END) & (best.log_probability > _DEAD)).nonzero()
    for row, place in ended.tolist():
        parent = int(best.parent[row, place])
        tokens = [*live.tokens[row, parent, 1:].tolist(), END]
        token_scores = [*live.token_scores[row, parent, 1:].tolist(), float(best.token_score[row, place])]
        finished[int(live.sentence[row])].append(make_hypothesis(tokens, token_scores, alpha))


def _undecided(live: Live, finished: list[list[Hypothesis]], limits: Tensor, alpha: float, wanted: int) -> Tensor:
    """Return the rows (B',) of sentences whose result may still change."""
    rows = []
    likeliest = live.log_probability.max(dim=1).values.tolist()
    for row, (sentence, log_probability) in enumerate(zip(live.sentence.tolist(), likeliest, strict=True)):
        if log_probability == _DEAD:
            continue
        bound = log_probability / length_penalty(int(limits[sentence]), alpha)
        at_least = sum(one.score >= bound for one in finished[sentence])
        if at_least < wanted:
            rows.append(row)
    return live.sentence.new_tensor(rows)


def _keep(live: Live, rows: Tensor) -> Live:
    return Live(live.sentence[rows], live.log_probability[rows], live.tokens[rows], live.token_scores[rows])
