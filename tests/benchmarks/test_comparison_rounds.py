import pytest
from comparison import rounds
from comparison.children import ChildError
from comparison.rounds import Plan, compare, far_behind
from comparison.works import WORKS, Entry

TRAINING, LATENCY = WORKS["training-tiny"], WORKS["latency-tiny-beam"]


def test_who_is_far_behind_the_best_other_is_found():
    found = {
        "regard": {"figures": [90]},
        "Hugging Face Marian": {"figures": [40]},
        "eole": {"figures": [30]},
        "OpenNMT-py": {"figures": [10]},
        "Sockeye": {"failure": "no"},
    }
    assert far_behind(TRAINING, TRAINING.entries, found) == ["OpenNMT-py"]


def test_types_of_numbers_do_not_race_each_other():
    found = {
        "regard": {"figures": [50]},
        "regard int8": {"figures": [3]},
        "CTranslate2": {"figures": [30]},
        "CTranslate2 int8": {"figures": [5]},
        "Hugging Face Marian": {"figures": [90]},
    }
    assert far_behind(LATENCY, LATENCY.entries, found) == ["Hugging Face Marian"]


class FakeChild:
    """Measures what a list says."""

    def __init__(self, facts, axes=None):
        self.axes = axes or {}
        self._facts = iter(facts)

    def measure(self, setting):
        facts = next(self._facts)
        if isinstance(facts, Exception):
            raise facts
        return dict(facts)

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        pass


def run_rounds(monkeypatch, tmp_path, measured):
    """Return what three rounds find, with what each peer would measure."""
    monkeypatch.setattr(rounds, "_start", lambda work, entry, plan: FakeChild(measured[entry.peer]))
    entries = [Entry(peer) for peer in measured]
    *_, found = compare(TRAINING, entries, Plan({}, tmp_path, tmp_path, 3, False, {}), lambda line: None)
    return found


def test_all_rounds_are_done_by_ours_and_by_who_is_near_the_best_other(monkeypatch, tmp_path):
    ours = [{"figure": figure, "chosen": {"processes": count}} for figure, count in ((1, 2), (2, 1), (3, 2))]
    theirs = [{"figure": figure} for figure in (10, 11, 12)]
    measured = {"regard": ours, "eole": theirs, "sockeye": [{"figure": 5}]}
    found = run_rounds(monkeypatch, tmp_path, measured)
    assert {name: facts["figures"] for name, facts in found.items()} == {
        "regard": [1, 2, 3],
        "eole": [10, 11, 12],
        "Sockeye": [5],
    }
    assert found["regard"]["chosen"] == [{"processes": 2}, {"processes": 1}]


def test_a_failure_in_a_later_round_is_told_and_the_others_go_on(monkeypatch, tmp_path):
    measured = {"regard": [{"figure": 1}] * 3, "eole": [{"figure": 1}, ChildError("gone")]}
    found = run_rounds(monkeypatch, tmp_path, measured)
    assert len(found["regard"]["figures"]) == 3
    assert found["eole"]["failure"] == "gone"


@pytest.mark.parametrize(
    ("known", "quick", "setting"),
    [
        ({}, False, {"threads": 1}),
        ({}, True, {"threads": 2}),
        ({"eole": {"threads": 4}}, False, {"threads": 4}),
        ({"eole": {"workers": 4}}, False, {"threads": 1}),
    ],
    ids=["searched", "quick", "known", "of another search"],
)
def test_a_setting_is_searched_for_unless_it_is_known_or_time_is_short(monkeypatch, tmp_path, known, quick, setting):
    figures = [{"figure": figure} for figure in (1, 9, 5)]
    monkeypatch.setattr(rounds, "_start", lambda work, entry, plan: FakeChild(figures, {"threads": [2, 1]}))
    plan = Plan({}, tmp_path, tmp_path, 1, quick, known)
    (found,) = compare(TRAINING, [Entry("eole")], plan, lambda line: None)
    assert found["eole"]["setting"] == setting
