"""Checkpoints: whole, or found out."""

import errno
import json
import os
import resource
import shutil
from dataclasses import replace

import pytest
import torch
from digits import MODEL, TRAINING, weights_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from regard.data.batches import Position
from regard.errors import FileFormatError, TrainingError
from regard.files import checksum
from regard.model.build import build_model
from regard.model_folder import named_weights
from regard.settings import ModelSettings, TrainingSettings
from regard.training import checkpoint as checkpoint_module
from regard.training.checkpoint import (
    Checkpoint,
    TrainingState,
    checkpoint_folders,
    find_damage,
    list_checkpoints,
    read_checkpoint,
    remove_checkpoints,
    write_checkpoint,
)
from regard.training.optimizer import Adam
from regard.training.validation import Validation

STATE = TrainingState(
    step=7,
    position=Position(2, 0, 3),
    target_tokens=1234,
    seconds=5.25,
    skipped=2,
    skipped_in_a_row=1,
    validations=[Validation(4, 3.125, None), Validation(7, 0.1 + 0.2, 12.5)],
)
FILES = ["weights.safetensors", "optimizer.safetensors", "progress.json", "checksums.json"]


def trained(seed=1, steps=2):
    """A model and an optimizer that have made some steps."""
    torch.manual_seed(seed)
    model = build_model(ModelSettings(**MODEL), 20)
    optimizer = Adam(model, TrainingSettings(**TRAINING))
    for _ in range(steps):
        optimizer.gradient.normal_()
        optimizer.step(0.1)
    return model, optimizer


@pytest.fixture
def written(tmp_path):
    return write_checkpoint(tmp_path / "checkpoints", *trained(), STATE, regular=True)


def rewrite(path, name, contents):
    """Change a file of a checkpoint and its checksum, as somebody would who means harm."""
    (path / name).write_bytes(contents)
    sums = json.loads((path / "checksums.json").read_text())
    (path / "checksums.json").write_text(json.dumps({**sums, name: checksum(path / name)}))
    assert find_damage(path) is None


@pytest.mark.parametrize(
    "change",
    [
        {"step": None},
        {"step": "seven"},
        {"position": 3},
        {"position": {"epoch": []}},
        {"validations": [{"a": 1}]},
        {"x": 1},
    ],
    ids=str,
)
def test_progress_that_is_not_ours_is_refused_though_its_checksum_is_right(written, change):
    facts = json.loads((written.path / "progress.json").read_text())
    rewrite(written.path, "progress.json", json.dumps({**facts, **change}).encode())
    with pytest.raises(FileFormatError, match=r"progress\.json"):
        read_checkpoint(written.path, *trained())


@pytest.mark.parametrize("change", ["shape", "name", "type"])
def test_an_optimizer_of_another_model_is_refused_though_its_checksum_is_right(written, change):
    tensors = load_file(written.path / "optimizer.safetensors")
    name = min(tensors)
    moment = tensors.pop(name)
    changed = {"shape": {name: moment[:1]}, "name": {f"{name}s": moment}, "type": {name: moment.to(torch.int32)}}
    save_file({**tensors, **changed[change]}, other := written.path / "other")
    rewrite(written.path, "optimizer.safetensors", other.read_bytes())
    with pytest.raises(FileFormatError, match=rf"{name} has {change}|misses {name}"):
        read_checkpoint(written.path, *trained())


def test_a_checkpoint_of_a_training_that_made_no_step_is_read(tmp_path):
    state = replace(STATE, step=0, validations=[])
    path = write_checkpoint(tmp_path, *trained(steps=0), state, regular=False).path
    assert read_checkpoint(path, *trained(seed=2)) == state


# ---- writing and reading ---------------------------------------------------------------------------------------------


def test_what_is_read_is_what_was_written_bit_by_bit(written):
    model, optimizer = trained()
    other, other_optimizer = trained(seed=2, steps=1)
    state = read_checkpoint(written.path, other, other_optimizer)
    assert state == STATE
    assert all(map(torch.equal, named_weights(model).values(), named_weights(other).values()))
    assert torch.equal(optimizer.mean, other_optimizer.mean)
    assert torch.equal(optimizer.square, other_optimizer.square)
    assert optimizer.steps == other_optimizer.steps == 2


def test_the_next_step_after_reading_is_the_one_that_would_have_been(written):
    model, optimizer = trained()
    other, other_optimizer = trained(seed=2, steps=0)
    read_checkpoint(written.path, other, other_optimizer)
    for each in (optimizer, other_optimizer):
        each.gradient += torch.sin(torch.arange(each.gradient.numel(), dtype=torch.float32))
        each.step(0.3)
    assert all(map(torch.equal, named_weights(model).values(), named_weights(other).values()))


def test_an_optimizer_that_has_made_no_step_yet_can_be_written_and_read(tmp_path):
    written = write_checkpoint(tmp_path, *trained(steps=0), STATE, regular=True)
    model, optimizer = trained(steps=1)
    read_checkpoint(written.path, model, optimizer)
    assert (optimizer.steps, int(optimizer.mean.count_nonzero())) == (0, 0)


def test_a_checkpoint_is_a_folder_of_safetensors_and_json_named_after_its_step(written):
    assert written.path.name == "step-00000007"
    assert sorted(path.name for path in written.path.iterdir()) == sorted(FILES)
    assert find_damage(written.path) is None
    assert list(list_checkpoints(written.path.parent)) == [written]
    assert len({path.stat().st_mode for path in written.path.iterdir()}) == 1  # who may read one may read all


def test_checkpoints_are_listed_from_the_newest_however_many_digits_they_have(tmp_path):
    model, optimizer = trained()
    steps = [9, 100_000_000, 10]
    for step in steps:
        write_checkpoint(tmp_path, model, optimizer, replace(STATE, step=step), regular=step != 10)
    (tmp_path / "step-notes").mkdir()
    (tmp_path / "step-00000009 (copy)").mkdir()
    found = list(list_checkpoints(tmp_path))
    assert [(one.step, one.regular) for one in found] == [(100_000_000, True), (10, False), (9, True)]


def test_a_checkpoint_of_the_same_step_is_replaced(written):
    model, optimizer = trained(seed=5)
    write_checkpoint(written.path.parent, model, optimizer, STATE, regular=False)
    stored = weights_of(written.path)
    assert all(torch.equal(stored[name], weight) for name, weight in named_weights(model).items())
    assert [path.name for path in written.path.parent.iterdir()] == [written.path.name]


def test_removed_checkpoints_are_gone_also_if_a_removal_was_cut_short_before(written):
    leftover = written.path.with_name(f".{written.path.name}.removing")
    leftover.mkdir()
    (leftover / "weights.safetensors").touch()
    remove_checkpoints([written])
    assert list(written.path.parent.iterdir()) == []


# ---- damage ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(written, name):
    (written.path / name).unlink()
    assert name in find_damage(written.path)
    assert list(list_checkpoints(written.path.parent)) == []


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("size", [0, 20])
def test_a_file_that_is_cut_off_is_named(written, name, size):
    os.truncate(written.path / name, size)
    assert name in find_damage(written.path)


@pytest.mark.parametrize("name", FILES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_flipped_bit_in_any_file_is_found(written, name, data):
    path = written.path / name
    before = path.read_bytes()
    place, bit = data.draw(st.integers(0, len(before) - 1)), data.draw(st.integers(0, 7))
    path.write_bytes(before[:place] + bytes([before[place] ^ 1 << bit]) + before[place + 1 :])
    damage = find_damage(written.path)
    path.write_bytes(before)
    # White space between the checksums is the only thing that may change without harm.
    harmless = name == "checksums.json" and before[place : place + 1].isspace()
    assert damage is not None or harmless
    assert find_damage(written.path) is None


@pytest.mark.parametrize("text", ["", "[]", "{}", "[" * 100_000, '{"weights.safetensors": 3}', "\udcff"])
def test_checksums_that_are_rubbish_are_damage_and_not_a_crash(written, text):
    (written.path / "checksums.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert find_damage(written.path) is not None


def test_an_unknown_format_is_named(written):
    progress = written.path / "progress.json"
    progress.write_text(json.dumps({**json.loads(progress.read_text()), "format": 99}))
    sums = json.loads((written.path / "checksums.json").read_text())
    sums["progress.json"] = checkpoint_module.checksum(progress)
    (written.path / "checksums.json").write_text(json.dumps(sums))
    assert "unknown format 99" in find_damage(written.path)


def test_an_empty_folder_or_a_file_with_a_checkpoints_name_is_damage(tmp_path):
    (tmp_path / "step-00000001").mkdir()
    (tmp_path / "step-00000002").touch()
    assert all(find_damage(path) for path in checkpoint_folders(tmp_path))
    assert list(list_checkpoints(tmp_path)) == []


# ---- writing that fails ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["save_file", "write_json", "checksum"])
def test_a_failure_in_the_middle_leaves_no_trace_and_the_old_checkpoint(written, monkeypatch, part):
    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    before = {name: (written.path / name).read_bytes() for name in FILES}
    monkeypatch.setattr(checkpoint_module, part, fail)
    for step in (STATE.step, 8):
        with pytest.raises(TrainingError, match=r"No space left on device.*run the same command again"):
            write_checkpoint(written.path.parent, *trained(seed=5), replace(STATE, step=step), regular=True)
    assert {name: (written.path / name).read_bytes() for name in FILES} == before
    assert [path.name for path in written.path.parent.iterdir()] == [written.path.name]


def test_a_limit_of_the_system_on_sizes_is_told_as_such(written):
    """As a full disk would, for real: the system refuses the bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(TrainingError, match="can't be written"):
            write_checkpoint(written.path.parent, *trained(), replace(STATE, step=8), regular=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(list_checkpoints(written.path.parent)) == [written]
    assert [path.name for path in written.path.parent.iterdir()] == [written.path.name]


def test_a_whole_checkpoint_may_be_copied_elsewhere(written, tmp_path):
    copy = tmp_path / "elsewhere" / written.path.name
    shutil.copytree(written.path, copy)
    assert list(list_checkpoints(copy.parent)) == [Checkpoint(copy, 7, True)]
