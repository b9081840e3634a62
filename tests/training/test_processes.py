"""How many processes and threads: asked for, kept, or measured."""

import json

import pytest
from digits import recipe

from regard.errors import FileFormatError, UserError
from regard.launch import Launch
from regard.model.build import build_model
from regard.native.library import find_library
from regard.training import processes
from regard.training.processes import Workforce, choose_workforce, launched_workforce
from regard.training.run import Run


@pytest.fixture
def choose(tmp_path, corpus, prepared, machine, monkeypatch):
    """Choose on a machine of four cores on which threads gain what the test says."""

    def make(count=None, threads=None, gain=None, available=4, **training):
        monkeypatch.setattr(processes, "cores", lambda: available)
        monkeypatch.setattr(processes, "_measure_threads", lambda *_: gain)
        if gain is not None:  # as where torch trains
            monkeypatch.setattr(processes, "native_library_for", lambda *_: None)
        return choose_workforce(Run(tmp_path), recipe(corpus, **training), prepared, machine, count, threads)

    return make


def numbers(workforce: Workforce) -> tuple[int, int]:
    return workforce.processes, workforce.threads


@pytest.mark.parametrize(
    ("count", "threads", "expected"), [(2, 1, (2, 1)), (2, None, (2, 2)), (None, 3, (1, 3)), (8, None, (8, 1))]
)
def test_what_is_asked_for_is_taken(choose, count, threads, expected):
    assert numbers(choose(count, threads)) == expected


def test_a_run_goes_on_with_what_it_began_with(choose):
    assert numbers(choose(gain=1.2)) == (4, 1)
    again = choose(gain=4.0)
    assert numbers(again) == (4, 1)
    assert "as this run began" in again.describe()


def test_a_run_that_was_asked_for_numbers_keeps_them_too(choose):
    choose(2, 1)
    assert numbers(choose()) == (2, 1)


def test_another_number_than_the_run_began_with_is_taken_but_said(choose):
    choose(2, 1)
    other = choose(1, 1)
    assert numbers(other) == (1, 1)
    assert "began with 2 of 1, so not bit-equal" in other.describe()
    assert numbers(choose()) == (2, 1)


@pytest.mark.parametrize(("gain", "expected"), [(1.1, (4, 1)), (3.5, (4, 1)), (3.9, (1, 4))])
def test_threads_are_used_only_if_they_are_worth_as_much_as_processes(choose, gain, expected):
    assert numbers(choose(gain=gain)) == expected


@pytest.mark.skipif(find_library() is None, reason="no compiled library here")
def test_the_compiled_library_trains_in_one_process_with_all_cores(choose):
    chosen = choose()
    assert numbers(chosen) == (1, 4)
    assert "sentences of its own" in chosen.describe()


def test_there_are_never_more_processes_than_pieces_of_a_step(choose):
    assert numbers(choose(gain=1.0, batch_tokens=80)) == (2, 2)


def test_one_core_or_one_piece_is_one_process(choose, tmp_path):
    assert choose(available=1).reason == "one core"
    (tmp_path / "processes.json").unlink()
    assert choose(batch_tokens=40).reason == "a step is one piece"


@pytest.mark.parametrize(("count", "threads"), [(0, None), (-1, 1), (None, 0)])
def test_less_than_one_is_the_users_mistake(choose, count, threads):
    with pytest.raises(UserError, match="must be at least 1"):
        choose(count, threads)


def test_torchruns_processes_share_the_cores_of_their_machine(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "cores", lambda: 8)
    run = Run(tmp_path)
    begun = launched_workforce(run, Launch(0, 4, 0, 2), None)
    assert (numbers(begun), begun.reason) == ((4, 4), "started by torchrun")
    assert numbers(launched_workforce(run, Launch(0, 4, 0, 4), None)) == (4, 4)  # as it began, on other machines
    other = launched_workforce(run, Launch(0, 2, 0, 2), 1)
    assert (numbers(other), other.reason) == ((2, 1), "started by torchrun; began with 4 of 4, so not bit-equal")
    with pytest.raises(UserError, match="must be at least 1"):
        launched_workforce(run, Launch(0, 2, 0, 2), 0)


@pytest.mark.parametrize("found", [{"people": 3}, {"processes": 10**9, "threads": 1, "reason": "why not"}])
def test_a_file_that_says_something_else_is_named(choose, tmp_path, found):
    (tmp_path / "processes.json").write_text(json.dumps(found))
    with pytest.raises(FileFormatError, match=r"processes\.json"):
        choose()


def test_the_measurement_gives_a_ratio_and_leaves_the_threads_alone(corpus, prepared, machine):
    import torch

    settings = recipe(corpus)
    model = build_model(settings.model, len(prepared.vocabulary))
    before = torch.get_num_threads()
    assert processes._measure_threads(model, settings, prepared, machine, 2) > 0
    assert torch.get_num_threads() == before
