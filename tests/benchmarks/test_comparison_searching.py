import pytest
from comparison.searching import find_setting, race


def test_the_best_setting_is_found_part_by_part():
    asked = []

    def measure(setting):
        asked.append(setting)
        return {"figure": {1: 5, 2: 9}[setting["threads"]] + {8: 0, 16: 3, 32: 1}[setting["batch"]]}

    axes = {"threads": [1, 2], "batch": [8, 16, 32]}
    assert find_setting(axes, measure, more_is_better=True) == {"threads": 2, "batch": 16}
    assert find_setting(axes, measure, more_is_better=False) == {"threads": 1, "batch": 8}
    assert all(setting["sample"] for setting in asked)


def test_what_has_one_value_is_not_tried():
    assert find_setting({"batch": [1]}, lambda setting: pytest.fail("tried"), more_is_better=True) == {"batch": 1}


def run_race(turns):
    """Return the winner of a race and who had a turn, in order; `turns` has each candidate's speeds."""
    left, seen = {name: iter(speeds) for name, speeds in turns.items()}, []

    def speed(name):
        seen.append(name)
        return next(left[name])

    return race(list(turns), speed), "".join(seen)


@pytest.mark.parametrize("bad", [0, 1, 2])
def test_one_bad_turn_does_not_decide(bad):
    fast = [10, 10, 10]
    fast[bad] = 4
    winner, _ = run_race({"a": fast, "b": [6, 6, 6]})
    assert winner == "a"


def test_candidates_take_turns_and_who_is_behind_is_spared_the_next():
    assert run_race({"a": [9, 9, 9], "b": [10, 10, 10], "c": [6, 6], "d": [1]}) == ("b", "abcdabcab")


def test_a_race_ends_when_one_is_left():
    assert run_race({"a": [1], "b": [10]}) == ("b", "ab")
    assert run_race({"a": []}) == ("a", "")
