from dataclasses import replace

import pytest
import torch
from comparison.corpus import make_pairs
from comparison.job import Job
from comparison.peers import transformers_crew
from comparison.shapes import TINY
from torch import distributed

SMALL = replace(TINY, layers=1, d_model=16, d_ff=16, heads=2, vocabulary=300, dropout=0.0, batch_tokens=128, pairs=100)


class SmallJob(Job):
    shape = SMALL

    def read(self, name):
        return make_pairs(SMALL)


@pytest.fixture
def models(monkeypatch):
    """The models of this process, in the order in which they were made."""
    made, threads = [], torch.get_num_threads()

    def note(job):
        made.append(make_model(job))
        return made[-1]

    make_model = transformers_crew.make_model
    monkeypatch.setattr(transformers_crew, "make_model", note)
    yield made
    distributed.destroy_process_group()
    torch.set_num_threads(threads)


def test_two_processes_take_the_same_steps_as_one(models):
    job = SmallJob("training", "small", "nowhere")
    taken = [transformers_crew.Crew(job, processes, threads=1).take(3) for processes in (1, 2)]
    assert taken[0] == taken[1] > 0
    alone, together = ([weight.detach() for weight in model.parameters()] for model in models)
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-6)  # Adam has moved them by 3e-4
