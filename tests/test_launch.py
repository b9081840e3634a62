"""What torchrun tells a process."""

import pytest

from regard.errors import UserError
from regard.launch import Launch, read_launch

TOLD = {
    **{"TORCHELASTIC_RUN_ID": "a", "TORCHELASTIC_RESTART_COUNT": "2"},
    **{"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4"},
}


def test_torchruns_word_is_read():
    assert read_launch(TOLD) == Launch(5, 8, 1, 4, 2)
    assert not Launch(5, 8, 1, 4).is_first
    assert not Launch(5, 8, 1, 4).is_one_machine
    assert Launch(0, 4, 0, 4).is_first
    assert Launch(0, 4, 0, 4).is_one_machine


def test_other_variables_of_that_name_are_not_torchruns():
    assert read_launch({}) is None
    assert read_launch({name: value for name, value in TOLD.items() if name != "TORCHELASTIC_RUN_ID"}) is None


@pytest.mark.parametrize(
    "change", [{"RANK": "8"}, {"RANK": "-1"}, {"RANK": "five"}, {"LOCAL_RANK": "4"}, {"LOCAL_WORLD_SIZE": "9"}]
)
def test_an_environment_that_makes_no_sense_is_told(change):
    with pytest.raises(UserError, match="is not what it says: RANK="):
        read_launch({**TOLD, **change})


def test_a_variable_that_is_missing_is_told():
    with pytest.raises(UserError, match="WORLD_SIZE=,"):
        read_launch({name: value for name, value in TOLD.items() if name != "WORLD_SIZE"})


def test_processes_are_torchruns_to_choose():
    Launch(0, 2, 0, 2).refuse_processes(None)
    with pytest.raises(UserError, match="--processes 4 goes without torchrun, which has started 2 already"):
        Launch(0, 2, 0, 2).refuse_processes(4)
