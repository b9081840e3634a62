"""A model's folder: written whole, read without trust, readable for ever."""

import json
import os
import re
import resource
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import regard
from regard.errors import DiskError, FileFormatError, RegardError, SettingsError
from regard.model.build import build_model
from regard.model_folder import (
    FACTS,
    SETTINGS,
    VOCABULARY,
    WEIGHTS,
    find_model,
    named_weights,
    read_model,
    read_settings,
    write_model,
)
from regard.text.vocabulary import Vocabulary

STORED = Path(__file__).parent / "stored"
OLD = sorted(STORED.glob("model-format-*"))


@pytest.fixture
def folder(tmp_path):
    return Path(shutil.copytree(OLD[-1], tmp_path / "model"))


@pytest.mark.parametrize("old", OLD, ids=lambda path: path.name)
def test_a_model_stored_by_an_older_version_translates_as_it_did(old):
    rows = [line.split("\t") for line in (old / "expected.tsv").read_text(encoding="utf-8").splitlines()]
    found = regard.load(old).translate([source for source, _, _ in rows])
    assert [one.text for one in found] == [text for _, text, _ in rows]
    # Four decimals were stored; float32 sums differ in the sixth from one processor to the next.
    assert [one.score for one in found] == pytest.approx([float(score) for _, _, score in rows], abs=2e-4)


def test_what_is_written_comes_back(folder, tmp_path):
    first = read_model(folder)
    weights = named_weights(first.model)
    write_model(tmp_path / "again", weights, first.vocabulary, first.settings, {"step": 7}, "a card")
    second = read_model(tmp_path / "again")
    assert second.settings == first.settings
    assert second.vocabulary.fingerprint == first.vocabulary.fingerprint
    assert second.facts["step"] == 7
    assert not second.model.training
    for name, weight in named_weights(second.model).items():
        assert torch.equal(weight, weights[name])


def test_run_model_and_checkpoint_folders_are_all_found(folder, tmp_path):
    run = tmp_path / "run"
    checkpoint = run / "checkpoints" / "step-00000010"
    checkpoint.mkdir(parents=True)
    shutil.copy(folder / WEIGHTS, checkpoint)
    for name in (SETTINGS, VOCABULARY):
        shutil.copy(folder / name, run)
    assert find_model(checkpoint) == (checkpoint, run)
    assert read_model(checkpoint).settings == read_model(folder).settings
    with pytest.raises(FileFormatError, match=r"no finished model yet.*step-00000010"):
        read_model(run)
    shutil.copytree(folder, run / "model")
    assert find_model(run) == (run / "model", run / "model")


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda path: None, "no such folder"),
        (lambda path: path.write_text("text"), "not a folder"),
        (lambda path: path.mkdir(), "no model here"),
    ],
)
def test_what_is_no_model_is_said(tmp_path, make, told):
    make(tmp_path / "thing")
    with pytest.raises(FileFormatError, match=told):
        read_model(tmp_path / "thing")


def test_weights_that_do_not_fit_are_all_listed(folder):
    weights = load_file(folder / WEIGHTS)
    names = sorted(weights)
    weights[names[1] + "s"] = weights.pop(names[1])
    weights[names[0]] = torch.zeros(2, 3)
    save_file(weights, folder / WEIGHTS)
    with pytest.raises(FileFormatError) as raised:
        read_model(folder)
    told = str(raised.value)
    assert f"misses {names[1]}" in told
    assert f"unknown {names[1]}s. Did you mean {names[1]!r}?" in told
    assert f"{names[0]} has shape (2, 3)" in told


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        (SETTINGS, "rubbish"),
        *((name, how) for name in (WEIGHTS, VOCABULARY, FACTS) for how in ("cut", "rubbish", "empty")),
    ],
)
def test_a_damaged_file_is_an_error_of_ours_that_names_it(folder, name, damage):
    path = folder / name
    whole = path.read_bytes()
    path.write_bytes({"cut": whole[: len(whole) // 2], "rubbish": b"\x00\xff rubbish" * 100, "empty": b""}[damage])
    with pytest.raises(RegardError, match=name):
        read_model(folder)


def test_the_vocabulary_of_another_model_is_refused(folder):
    facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
    (folder / FACTS).write_text(json.dumps({**facts, "vocabulary": "0" * 64}), encoding="utf-8")
    with pytest.raises(FileFormatError, match="not the vocabulary"):
        read_model(folder)


def test_a_format_of_the_future_asks_for_an_update(folder):
    (folder / FACTS).write_text('{"format": 99}', encoding="utf-8")
    with pytest.raises(FileFormatError, match=r"format 99 is not known.*update regard"):
        read_model(folder)


@pytest.mark.parametrize("change", ["d_model = 65536", "d_ff = 1048576", "encoder_layers = 900"])
def test_settings_that_ask_for_huge_sizes_are_refused_before_anything_is_allocated(folder, change, monkeypatch):
    name = change.split()[0]
    text = (folder / SETTINGS).read_text(encoding="utf-8").splitlines()
    changed = [change if line.startswith(f"{name} =") else line for line in text]
    (folder / SETTINGS).write_text("\n".join(changed), encoding="utf-8")
    monkeypatch.setattr("regard.model_folder.load_weights", lambda *rest: pytest.fail("it was loaded"))
    with pytest.raises(FileFormatError, match="do not fit the settings"):
        read_model(folder)


def write_sparse_weights(path, shapes):
    """Write weights that are all zero and take no room on the disk."""
    header, end = {}, 0
    for name, shape in shapes.items():
        start, end = end, end + 4 * int(np.prod(shape, dtype=object))
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + end)


def test_a_model_that_is_larger_than_the_memory_is_refused_before_anything_is_allocated(folder, monkeypatch):
    text = (folder / SETTINGS).read_text(encoding="utf-8")
    huge = re.sub("d_ff = .*", "d_ff = 1048576", re.sub("d_model = .*", "d_model = 65536", text))
    (folder / SETTINGS).write_text(huge, encoding="utf-8")
    settings = read_settings(folder / SETTINGS)
    with torch.device("meta"):
        model = build_model(settings.model, len(Vocabulary.load(folder / VOCABULARY)))
    weights = named_weights(model)
    write_sparse_weights(folder / WEIGHTS, {name: weight.shape for name, weight in weights.items()})
    monkeypatch.setattr("regard.model_folder.load_weights", lambda *rest: pytest.fail("it was loaded"))
    with pytest.raises(FileFormatError, match=r"needs 1,305\.8 GB of memory; here are"):
        read_model(folder)


@pytest.mark.parametrize("value", ["abc", float("nan"), float("inf"), -5, 0, True, [], 1.5, "5"])
def test_a_longest_sentence_that_is_no_number_is_refused(folder, value):
    facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
    (folder / FACTS).write_text(json.dumps({**facts, "longest_source": value}), encoding="utf-8")
    with pytest.raises(FileFormatError, match="longest_source"):
        read_model(folder)


@pytest.mark.parametrize("name", [WEIGHTS, SETTINGS, VOCABULARY, FACTS])
def test_a_link_that_leads_out_of_the_folder_is_not_followed(folder, name):
    (folder / name).rename(folder.parent / name)
    (folder / name).symlink_to(Path("..") / name)
    with pytest.raises(FileFormatError, match="leads out of"):
        read_model(folder)


def test_a_link_to_the_folder_or_within_it_is_followed(folder, tmp_path):
    (folder / VOCABULARY).rename(folder / "subwords")
    (folder / VOCABULARY).symlink_to("subwords")
    (tmp_path / "link").symlink_to(folder)
    assert read_model(tmp_path / "link").vocabulary.fingerprint


def test_a_folder_without_settings_does_not_take_those_of_the_folders_above(folder):
    inner = folder / "some" / "where"
    inner.mkdir(parents=True)
    shutil.copy(folder / WEIGHTS, inner)
    with pytest.raises(FileFormatError, match=r"where/settings\.toml: can't be read"):
        read_model(inner)


@pytest.mark.parametrize("name", [WEIGHTS, SETTINGS, VOCABULARY, FACTS])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "folder"])
def test_what_stands_in_the_place_of_a_file_is_neither_read_nor_waited_for(folder, name, make):
    (folder / name).unlink()
    make(folder / name)
    with pytest.raises(FileFormatError, match=r"is a folder|is not a file, but a pipe"):
        read_model(folder)


def test_a_thousand_unknown_weights_are_counted(folder):
    weights = load_file(folder / WEIGHTS)
    save_file(weights | {f"x{number}": torch.zeros(1) for number in range(1000)}, folder / WEIGHTS)
    with pytest.raises(FileFormatError, match=r"unknown x0\..*; and 980 more$"):
        read_model(folder)


@pytest.mark.parametrize("kind", [torch.int64, torch.uint8, torch.bool, torch.complex64, torch.float8_e4m3fn])
def test_weights_that_are_no_real_numbers_are_refused(folder, kind):
    weights = load_file(folder / WEIGHTS)
    name = min(weights)
    save_file({**weights, name: weights[name].to(kind)}, folder / WEIGHTS)
    with pytest.raises(FileFormatError, match=f"{name} has type"):
        read_model(folder)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_refused(folder, value):
    weights = load_file(folder / WEIGHTS)
    name = min(weights)
    weights[name].view(-1)[-1] = value
    save_file(weights, folder / WEIGHTS)
    with pytest.raises(FileFormatError, match=f"not all numbers are finite in {name}"):
        read_model(folder)


def test_weights_of_half_the_precision_are_read(folder):
    weights = load_file(folder / WEIGHTS)
    save_file({name: weight.to(torch.bfloat16) for name, weight in weights.items()}, folder / WEIGHTS)
    assert all(weight.dtype == torch.float32 for weight in named_weights(read_model(folder).model).values())


def test_sizes_beyond_all_reason_are_refused_by_the_settings(folder):
    text = (folder / SETTINGS).read_text(encoding="utf-8").replace("d_model = 8", "d_model = 10000000000")
    (folder / SETTINGS).write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError, match=r"model\.d_model"):
        read_model(folder)


def test_a_checkpoint_is_found_from_within_its_run_as_well(folder, tmp_path, monkeypatch):
    checkpoint = tmp_path / "checkpoints" / "step-00000010"
    checkpoint.mkdir(parents=True)
    shutil.copy(folder / WEIGHTS, checkpoint)
    monkeypatch.chdir(checkpoint.parent)
    assert find_model(Path(checkpoint.name)) == (Path(checkpoint.name), tmp_path)


def test_whoever_may_read_the_card_may_read_the_weights(folder, tmp_path):
    loaded = read_model(folder)
    write_model(tmp_path / "new", named_weights(loaded.model), loaded.vocabulary, loaded.settings, {}, "a card")
    assert len({path.stat().st_mode for path in (tmp_path / "new").iterdir()}) == 1


def test_a_disk_that_does_not_take_the_model_is_told_and_leaves_the_old_one(folder):
    loaded, before = read_model(folder), {path.name: path.read_bytes() for path in folder.iterdir()}
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limit[1]))  # as on a full disk, the system refuses the bytes
    try:
        with pytest.raises(DiskError, match=r"can't be written: File too large \(needs 14,944 bytes\)"):
            write_model(folder, named_weights(loaded.model), loaded.vocabulary, loaded.settings, {}, "a card")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_stranger_s_file_with_very_many_names_is_refused_soon(folder):
    save_file({f"weight{number}": torch.zeros(1) for number in range(20_000)}, folder / WEIGHTS)
    with pytest.raises(FileFormatError, match="its header says that it has"):
        read_model(folder)
