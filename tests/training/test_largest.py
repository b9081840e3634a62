"""The largest batch is tried first, and memory that runs out is answered with the budget that fits."""

import math
import re

import digits
import numpy as np
import pytest
import torch
from digits import MODEL, TRAINING, recipe, start_training, write_corpus

from regard.errors import UserError
from regard.model.build import build_model
from regard.model_folder import named_weights
from regard.settings import ModelSettings, TrainingSettings
from regard.training import largest
from regard.training.distributed import World
from regard.training.largest import try_largest_batch
from regard.training.native_learner import NativeLearner
from regard.training.step import Stepper

OUT_OF_MEMORY = [
    MemoryError(),
    RuntimeError("[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory"),
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB"),
]


@pytest.fixture
def stepper(prepared, machine):
    torch.manual_seed(3)
    model = build_model(ModelSettings(**MODEL), len(prepared.vocabulary)).train()
    return Stepper(model, prepared.train, TrainingSettings(**TRAINING), machine, World())


def limit_positions(monkeypatch, most, error=None):
    """Let memory run out for a batch of more than so many source positions; return the sizes that were tried."""
    tried = []
    learn = Stepper.learn

    def limited(self, batches, seeds, consistency):
        batch = batches[0]
        tried.append(batch.src.size)
        if batch.src.size > most:
            raise error or MemoryError
        return learn(self, batches, seeds, consistency)

    monkeypatch.setattr(Stepper, "learn", limited)
    return tried


def test_trying_changes_nothing(stepper):
    before = [weight.clone() for weight in named_weights(stepper.model).values()]
    try_largest_batch(stepper)
    assert all(map(torch.equal, before, named_weights(stepper.model).values()))
    assert stepper.optimizer.steps == 0
    assert not stepper.optimizer.gradient.any()


@pytest.mark.parametrize("error", OUT_OF_MEMORY)
def test_out_of_memory_is_answered_with_the_budget_that_fits(stepper, monkeypatch, error):
    limit_positions(monkeypatch, 27, error)
    with pytest.raises(UserError, match=r"a piece of 40 tokens does not fit into memory, one of \d+ does") as told:
        try_largest_batch(stepper)
    fitting = int(re.search(r"micro_batch_tokens=(\d+)", str(told.value))[1])
    assert 15 < fitting <= 27
    stepper.settings = TrainingSettings(**{**TRAINING, "micro_batch_tokens": fitting, "batch_tokens": fitting})
    try_largest_batch(stepper)


def test_a_pair_that_does_not_fit_alone_is_told(stepper, monkeypatch):
    limit_positions(monkeypatch, 3)
    with pytest.raises(UserError, match=r"not even a piece of one pair \(7 tokens\) fits into memory"):
        try_largest_batch(stepper)


def test_another_failure_is_not_taken_for_too_little_memory(stepper, monkeypatch):
    limit_positions(monkeypatch, 20, RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    with pytest.raises(RuntimeError, match="shapes"):
        try_largest_batch(stepper)


def test_what_another_process_can_not_hold_this_one_does_not_try_for_long(stepper, monkeypatch):
    """All processes search in step: the failure of one is the failure of all."""

    sums = []

    class World2(World):
        def sum(self, tensor):
            sums.append(tensor)
            tensor += len(sums) % 2 == 0  # the other one tries as well, and fails

    stepper.world = World2(0, 2)
    tried = limit_positions(monkeypatch, math.inf)
    with pytest.raises(UserError, match="not even a piece of one pair"):
        try_largest_batch(stepper)
    assert tried


def test_a_size_that_will_not_fit_is_not_tried_where_systems_kill_instead_of_refusing(stepper, monkeypatch):
    tried = limit_positions(monkeypatch, math.inf)
    monkeypatch.setattr(largest, "memory_peak", lambda: (100 << 20) * max(tried, default=0))  # 100 MiB a position
    monkeypatch.setattr(largest, "memory_available", lambda: (2000 << 20) - (100 << 20) * max(tried, default=0))
    with pytest.raises(UserError, match="a piece of 40 tokens does not fit into memory"):
        try_largest_batch(stepper)
    assert 10 < max(tried) <= 20


@pytest.mark.slow
def test_for_real_the_budget_that_is_named_fits(tmp_path):
    """The system refuses memory to a real process; with the budget that it names, the same training runs."""
    corpus = write_corpus(tmp_path / "corpus", sizes={"train": 2000}, lengths=(20, 40))
    # A second arena of the allocator would take 128 MiB of addresses, which count for this limit, but are no memory.
    limit = """
import ctypes
import resource
ctypes.CDLL(None).mallopt(-8, 1)  # M_ARENA_MAX
from pathlib import Path
from regard.training import loop
attempt, finish = loop.try_largest_batch, loop.finish
def limited(stepper):
    size = 4096 * int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (size + (300 << 20), -1))
    attempt(stepper)
def unlimited(*rest):
    resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
    return finish(*rest)
loop.try_largest_batch, loop.finish = limited, unlimited
"""
    training = {"batch_tokens": 60_000, "micro_batch_tokens": 60_000, "steps": 2}
    model = {"d_model": 64, "d_ff": 512, "norm": "pre"}  # so that torch learns, which holds all of a piece at once
    refused = start_training(recipe(corpus, valid=False, model=model, **training), tmp_path / "run", more=limit)
    told = refused.communicate()[1]
    assert refused.returncode == 2, told
    assert "Traceback" not in told
    fitting = int(re.search(r"training\.micro_batch_tokens=(\d+) \(", told)[1])
    assert 41 < fitting < 60_000
    training["micro_batch_tokens"] = fitting
    again = start_training(recipe(corpus, valid=False, model=model, **training), tmp_path / "again", more=limit)
    told = again.communicate()[1]
    assert again.returncode == 0, told
    digits.started.clear()


def test_the_largest_pieces_are_tried_from_few_rows_to_all(stepper, monkeypatch):
    tried = limit_positions(monkeypatch, math.inf)
    try_largest_batch(stepper)
    assert tried[0] < max(tried)
    assert max(tried) > 20
    assert np.all(np.array(tried) <= 40)


@pytest.mark.parametrize(("pieces", "threads", "together"), [(1, 2, 1), (2, 2, 2), (3, 2, 2), (3, 1, 1)])
def test_as_many_pieces_are_tried_together_as_a_step_holds_at_once(
    pieces, threads, together, prepared, machine, monkeypatch
):
    model = build_model(ModelSettings(**MODEL), len(prepared.vocabulary)).train()
    training = TrainingSettings(**{**TRAINING, "batch_tokens": 40 * pieces, "micro_batch_tokens": 40})
    stepper = Stepper(model, prepared.train, training, machine, World())
    if not isinstance(stepper.learner, NativeLearner):
        pytest.skip("no compiled library: torch computes one piece after the other")
    monkeypatch.setattr(NativeLearner, "at_once", threads)
    tried, learn = [], Stepper.learn
    monkeypatch.setattr(Stepper, "learn", lambda self, *given: tried.append(len(given[0])) or learn(self, *given))
    try_largest_batch(stepper)
    assert set(tried) == {together}
