"""Hugging Face's Marian in a plain training loop: in one process, or in several that add up their gradients.

A file of its own, because the other processes import it by name.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain, count, islice
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

import torch
from torch import distributed
from torch.distributed import TCPStore
from torch.nn import functional as F

from comparison.corpus import Pair, batches, padded
from comparison.job import Job
from comparison.peers.transformers_model import PAD, START, make_model

_HOST = "127.0.0.1"


class Crew:
    """The calling process and its helpers, which take the same steps, each on its share of every batch."""

    def __init__(self, job: Job, processes: int, threads: int) -> None:
        self._threads = threads
        self._helpers: list[Connection] = []
        store = TCPStore(_HOST, 0, is_master=True, wait_for_workers=False)
        context = get_context("spawn")
        for rank in range(1, processes):
            mine, theirs = context.Pipe()
            arguments = (theirs, job, rank, processes, threads, store.port)
            context.Process(target=help_train, args=arguments, daemon=True).start()
            self._helpers.append(mine)
        self._steps = train(job, 0, processes, store)

    def take(self, steps: int) -> int:
        """Take so many steps; return their real target tokens."""
        torch.set_num_threads(self._threads)
        for helper in self._helpers:
            helper.send(steps)
        return sum(islice(self._steps, steps))


def help_train(orders: Connection, job: Job, rank: int, size: int, threads: int, port: int) -> None:
    """Take as many steps as the first process says, until it is gone."""
    torch.set_num_threads(threads)
    taken = train(job, rank, size, TCPStore(_HOST, port))
    with suppress(EOFError):
        while True:
            sum(islice(taken, orders.recv()))


def train(job: Job, rank: int, size: int, store: TCPStore) -> Iterator[int]:
    """Take step after step with torch's fused Adam, on batches of like lengths; yield the real target tokens."""
    if size > 1:
        distributed.init_process_group("gloo", store=store, rank=rank, world_size=size)
    torch.manual_seed(1)  # all processes begin with the same weights
    model = make_model(job).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)
    pairs = [(source, target) for source, target in job.read("pairs.json")]
    for batch in chain.from_iterable(batches(pairs, job.shape.batch_tokens, seed) for seed in count()):
        tokens = sum(len(target) for _, target in batch)
        optimizer.zero_grad(set_to_none=True)
        (_summed_loss(model, batch[rank::size]) / tokens).backward()
        if size > 1:
            _add_up_gradients(model)
        optimizer.step()
        yield tokens


def _summed_loss(model: Any, batch: Sequence[Pair]) -> torch.Tensor:
    """Return torch's smoothed cross-entropy, the sum over the real target tokens."""
    src, tgt = (torch.from_numpy(padded(rows, PAD)) for rows in zip(*batch, strict=True))
    fed = torch.cat([torch.full((len(tgt), 1), START), tgt[:, :-1]], dim=1)
    logits = model(input_ids=src, attention_mask=src != PAD, decoder_input_ids=fed, use_cache=False).logits
    return F.cross_entropy(logits.flatten(0, 1), tgt.flatten(), ignore_index=PAD, label_smoothing=0.1, reduction="sum")


def _add_up_gradients(model: torch.nn.Module) -> None:
    """Sum the gradients over all processes, in one message."""
    gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    distributed.all_reduce(flat)
    for gradient, part in zip(gradients, flat.split([gradient.numel() for gradient in gradients]), strict=True):
        gradient.copy_(part.view_as(gradient))
