import os
import subprocess
import sys

import numpy as np
import pytest
from comparison.comparing import compare_outputs
from comparison.environments import RECIPES
from comparison.job import Job
from comparison.memory import PeakMemory, family, proportional_set_size
from comparison.training_commands import Length, read_reports
from comparison.translating import latency, translation

REPORTS = """
[2026-01-01 00:00:01,000 INFO] Step 10/   40; acc: 0.1; ppl: 9.2; xent: 9.2; lr: 0.1; sents: 3000; bsz: 3800/3700/300; 100/ 90 tok/s;     41 sec;
[2026-01-01 00:00:02,000 INFO] Step 20/   40; acc: 0.1; ppl: 9.2; xent: 9.2; lr: 0.1; sents: 3000; bsz: 3800/4000/300; 2000/2000 tok/s;  61 sec;
[2026-01-01 00:00:03,000 INFO] Step 30/   40; acc: 0.1; ppl: 9.2; xent: 9.2; lr: 0.1; sents: 3000; bsz: 3800/2000/300; 2000/4000 tok/s;  66 sec;
"""  # noqa: E501


def test_the_reports_of_the_warm_up_do_not_count():
    facts = read_reports(REPORTS, Length(warmup=10, steps=20))
    assert facts["figure"] == pytest.approx((4000 + 2000) / (2 + 0.5))
    assert facts["tokens_a_step"] == 3000


def test_missing_reports_are_an_error():
    with pytest.raises(ValueError, match="2 reports"):
        read_reports(REPORTS, Length(warmup=10, steps=30))


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=lambda recipe: recipe.name)
def test_every_package_of_an_environment_has_its_version(recipe):
    lines = recipe.requirements.read_text().splitlines()
    pinned = [line.partition("==") for line in lines if not line.startswith("#")]
    assert all(equals and version for _, equals, version in pinned)
    assert {name.lower() for name in recipe.packages} <= {name.lower() for name, _, _ in pinned}
    assert "torch" not in {name for name, _, _ in pinned}  # it comes first, with what it asks for


def test_outputs_are_compared_with_ours_and_left_out():
    found = {
        "regard": {"outputs": [[1], [2], [3], [4]]},
        "CTranslate2": {"outputs": [[1], [2], [3], [9]]},
        "eole": {"failure": "no"},
    }
    compare_outputs(found)
    assert found == {"regard": {}, "CTranslate2": {"same_as_ours": 0.75}, "eole": {"failure": "no"}}


# ---- translation -----------------------------------------------------------------------------------------------------


class Sentences(Job):
    def read(self, name):
        return [[[5, 6, 3]] * 8, [[7, 8, 9, 3]] * 8]


JOB = Sentences("translation", "tiny", "nowhere")


def echo(groups, setting):
    return [sentence for group in groups for sentence in group]


def test_a_sample_is_every_second_group_whole_so_that_batch_sizes_differ():
    engine = translation(JOB, echo, {})
    assert len(engine.measure({"outputs": True})["outputs"]) == 16
    outputs = engine.measure({"outputs": True, "sample": True})["outputs"]
    assert outputs == [[7, 8, 9]] * 8


def test_one_at_a_time_means_one_at_a_time():
    seen = []

    def note(groups, setting):
        seen.append(groups)
        return echo(groups, setting)

    engine = latency(JOB, note, {})
    engine.measure({})
    seen.clear()  # with the first measurement comes a warm-up
    engine.measure({})
    assert seen == [[[[5, 6, 3]]]] * 4 + [[[[7, 8, 9, 3]]]] * 4


def test_a_setting_is_warmed_up_when_it_is_new():
    seen = []

    def note(groups, setting):
        seen.append((setting["threads"], sum(map(len, groups))))
        return echo(groups, setting)

    engine = translation(JOB, note, {})
    for threads, sample in ((1, True), (1, False), (2, True), (1, True)):
        engine.measure({"threads": threads, "sample": sample})
    assert seen == [(1, 4), (1, 8), (1, 16), (2, 4), (2, 8), (1, 8)]


@pytest.mark.parametrize("change", [lambda ids: ids[:-2], lambda ids: [*ids, 5, 5]], ids=["shorter", "longer"])
def test_a_translation_of_another_length_is_an_error(change):
    engine = translation(JOB, lambda groups, setting: [change(ids) for ids in echo(groups, setting)], {})
    with pytest.raises(RuntimeError, match="lengths"):
        engine.measure({})


# ---- memory ----------------------------------------------------------------------------------------------------------

linux = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")


@linux
def test_memory_that_was_held_for_a_while_is_seen():
    with PeakMemory(os.getpid(), interval=0.001) as small:
        pass
    with PeakMemory(os.getpid(), interval=0.001) as large:
        held = np.ones(25_000_000)
        assert proportional_set_size(os.getpid()) > held.nbytes
    assert large.peak > small.peak + 150e6


@linux
def test_a_family_has_children_and_grandchildren():
    child = ["sh", "-c", "sleep 60 & echo started; wait"]
    with subprocess.Popen(child, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        found = family(process.pid)
        for member in reversed(found):
            os.kill(member, 9)
    assert found[0] == process.pid
    assert len(found) == 2
    assert proportional_set_size(process.pid) == 0
