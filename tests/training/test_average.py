"""The average of checkpoints (§6.1)."""

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file

from regard.training.average import average_weights, choose_checkpoints
from regard.training.checkpoint import Checkpoint
from regard.training.validation import Validation


def write(folder, **weights):
    folder.mkdir()
    save_file({name: torch.tensor(values) for name, values in weights.items()}, folder / "weights.safetensors")
    return folder


def checkpoints(*steps, irregular=()):
    return [Checkpoint(Path(f"step-{step}"), step, step not in irregular) for step in steps]


def steps_of(chosen):
    return [one.step for one in chosen]


def test_the_average_is_the_mean_of_each_weight(tmp_path):
    folders = [
        write(tmp_path / "1", a=[1.0, 2.0], b=[[0.5]]),
        write(tmp_path / "2", a=[2.0, 4.0], b=[[0.5]]),
        write(tmp_path / "3", a=[6.0, 0.0], b=[[2.0]]),
    ]
    average = average_weights(folders)
    assert {name: weight.tolist() for name, weight in average.items()} == {"a": [3.0, 2.0], "b": [[1.0]]}
    assert all(weight.dtype == torch.float32 for weight in average.values())


def test_the_average_of_one_checkpoint_is_that_checkpoint_bit_by_bit(tmp_path):
    values = torch.randn(100).tolist()
    assert average_weights([write(tmp_path / "1", a=values)])["a"].tolist() == torch.tensor(values).tolist()


def test_the_sum_loses_nothing_to_float32(tmp_path):
    # 2²⁴ + 1 is no float32: summed in that type, the ones would be lost.
    folders = [write(tmp_path / str(n), a=[value]) for n, value in enumerate([2.0**24, 1.0, 1.0, 2.0])]
    assert average_weights(folders)["a"].item() == (2.0**24 + 4) / 4


def test_the_last_regular_checkpoints_are_chosen_in_their_order():
    there = checkpoints(50, 40, 35, 30, 20, irregular=(50, 35))
    assert steps_of(choose_checkpoints(there, [], "last", 2, "loss")) == [30, 40]
    assert steps_of(choose_checkpoints(there, [], "last", 9, "loss")) == [20, 30, 40]


def test_the_best_checkpoints_are_chosen_by_loss_or_by_bleu():
    there = checkpoints(40, 30, 20, 10)
    validations = [
        Validation(step, loss, bleu)
        for step, loss, bleu in [(10, 4.0, 9.0), (20, 2.0, 7.0), (30, 1.0, 5.0), (40, 3.0, 8.0)]
    ]
    assert steps_of(choose_checkpoints(there, validations, "best", 2, "loss")) == [20, 30]
    assert steps_of(choose_checkpoints(there, validations, "best", 2, "bleu")) == [10, 40]


def test_of_equally_good_checkpoints_the_earlier_are_chosen():
    validations = [Validation(step, 1.0, None) for step in (10, 20, 30)]
    assert steps_of(choose_checkpoints(checkpoints(10, 20, 30), validations, "best", 2, "loss")) == [10, 20]


def test_where_nothing_was_validated_the_last_are_the_best():
    assert steps_of(choose_checkpoints(checkpoints(10, 20, 30), [], "best", 2, "loss")) == [20, 30]


@given(
    losses=st.lists(st.integers(0, 6), min_size=1, max_size=12),
    count=st.integers(1, 5),
    rule=st.sampled_from(["last", "best"]),
)
def test_what_was_removed_on_the_way_is_never_missed_at_the_end(losses, count, rule):
    """Choosing step by step, with the rest thrown away each time, ends with what choosing among all would give."""
    validations = [Validation(step, float(loss), None) for step, loss in enumerate(losses)]
    kept: list[Checkpoint] = []
    for step in range(len(losses)):
        kept = choose_checkpoints([*kept, *checkpoints(step)], validations[: step + 1], rule, count, "loss")
    everything = choose_checkpoints(checkpoints(*range(len(losses))), validations, rule, count, "loss")
    assert steps_of(kept) == steps_of(everything)


def test_a_missing_weight_is_an_error_and_not_a_smaller_average(tmp_path):
    folders = [write(tmp_path / "1", a=[1.0], b=[1.0]), write(tmp_path / "2", a=[1.0])]
    with pytest.raises(Exception, match="b"):
        average_weights(folders)
