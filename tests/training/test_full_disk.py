"""A full disk, for real: each write that fails says so, nothing is lost, and the run goes on when there is room."""

import re
import shutil
import subprocess
import sys

import pytest
from digits import ENVIRONMENT, recipe, same_weights
from disks import PAGE, SmallDisk, mounted

from regard.data import duplicates
from regard.data.prepare import prepare
from regard.errors import DiskError
from regard.progress import QuietDisplay
from regard.training.checkpoint import find_damage
from regard.training.loop import train

NO_SPACE = (
    r"can't be written: No space left on device \((needs [\d,.]+ (bytes|MB), )?[\d,.]+ (bytes|MB) free on this disk\)"
)


@pytest.fixture
def disk(tmp_path):
    with mounted(tmp_path / "disk", 4 << 20) as found:
        yield found


@pytest.fixture
def run(disk, finished_run):
    """A function that puts a run on the disk as it was after some of its checkpoints."""

    def put(*steps: int):
        out = disk.path / "run"
        shutil.copytree(finished_run, out)
        shutil.rmtree(out / "model")
        for path in (out / "checkpoints").iterdir():
            if int(path.name.removeprefix("step-")) not in steps:
                shutil.rmtree(path)
        return out

    return put


def size_of(folder) -> int:
    return sum(-(-path.stat().st_size // PAGE) * PAGE for path in folder.rglob("*") if path.is_file())


def fails(settings, out, disk: SmallDisk, what: str) -> str:
    """Train as a user would, which must fail for want of room for `what`; return what was said."""
    recipe = disk.path.parent / "recipe.toml"
    recipe.write_text(settings.to_toml())
    command = ["-m", "regard", "train", recipe, "--out", out, "--processes", "1", "--threads", "1"]
    done = subprocess.run(
        [sys.executable, *map(str, command)], stderr=subprocess.PIPE, text=True, env=ENVIRONMENT, check=False
    )
    told = done.stderr
    assert done.returncode == 1, told
    assert "Traceback" not in told
    assert re.search(rf"^regard: {re.escape(str(out / what))}: {NO_SPACE}", told, re.MULTILINE), told
    assert disk.leftovers() == []
    return told


def goes_on(settings, out, disk: SmallDisk, finished_run) -> None:
    disk.make_room()
    train(settings, out, display=QuietDisplay(), processes=1, threads=1)
    assert same_weights(out / "model", finished_run / "model")


@pytest.mark.slow
def test_a_checkpoint_that_does_not_fit(disk, run, corpus, finished_run):
    out = run(4)
    disk.fill(leave=size_of(out / "checkpoints") // 2 + 4 * PAGE)
    told = fails(recipe(corpus), out, disk, "checkpoints/step-00000008")
    assert told.endswith("Earlier checkpoints are as they were; run the same command again when there is room\n")
    assert [path.name for path in (out / "checkpoints").iterdir()] == ["step-00000004"]
    assert find_damage(out / "checkpoints" / "step-00000004") is None
    goes_on(recipe(corpus), out, disk, finished_run)


@pytest.mark.slow
def test_a_log_that_does_not_fit(disk, run, corpus, finished_run):
    out = run(4)
    disk.fill(leave=0)
    fails(recipe(corpus), out, disk, "log.jsonl")
    assert [path.name for path in (out / "checkpoints").iterdir()] == ["step-00000004"]
    goes_on(recipe(corpus), out, disk, finished_run)


@pytest.mark.slow
def test_a_model_that_does_not_fit(disk, run, corpus, finished_run):
    out = run(4, 8, 12)
    disk.fill(leave=3 * PAGE)
    fails(recipe(corpus), out, disk, "model")
    assert not (out / "model").exists()
    assert len(list((out / "checkpoints").iterdir())) == 3
    goes_on(recipe(corpus), out, disk, finished_run)


def test_data_that_does_not_fit_wherever_the_room_ends(disk, corpus, finished_run, monkeypatch):
    """Settings, scratch files of the search for repeats, vocabulary, stores: each of them meets the end of the disk."""
    monkeypatch.setattr(duplicates, "_ROWS_AT_ONCE", 1)  # as in a large corpus
    out, settings = disk.path / "run", recipe(corpus)
    seen = []
    for pages in (0, 4, 16, *range(62, 200, 2)):
        disk.fill(leave=pages * PAGE)
        try:
            (train if pages < 16 else prepare)(settings, out, display=QuietDisplay())
            break
        except DiskError as error:
            seen.append(str(error))
        assert disk.leftovers() == []
        assert not (out / "data" / "inputs.json").exists()
        disk.make_room()
    assert all(re.search(NO_SPACE, told) for told in seen)
    places = {told.partition(":")[0].removeprefix(f"{out}/") for told in seen}
    assert places >= {"settings.toml", "data", "vocabulary.spm", "data/train"}
    goes_on(settings, out, disk, finished_run)


def test_a_log_is_whole_lines_after_the_disk_was_full(disk, run, corpus, finished_run):
    out = run(4)
    disk.fill(leave=0)
    settings = recipe(corpus)
    with pytest.raises(DiskError, match=r"log\.jsonl"):
        train(settings, out, display=QuietDisplay(), processes=1, threads=1)
    goes_on(settings, out, disk, finished_run)
    log = (out / "log.jsonl").read_text()
    assert log.endswith("}\n")
    assert log.count('"event": "training"') == 12
