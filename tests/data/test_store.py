import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from regard.data.store import Store, StoreWriter
from regard.errors import FileFormatError, UserError

ids = st.lists(st.integers(0, 999), min_size=1, max_size=6)
pairs = st.lists(st.tuples(ids, ids, st.integers(1, 2**32 - 1)), max_size=6)


def write(folder: Path, corpora: list[list[tuple[list[int], list[int], int]]], chunk: int = 100) -> Store:
    with StoreWriter(folder, "fingerprint", 1000) as writer:
        for number, corpus in enumerate(corpora):
            writer.begin_corpus(f"corpus {number}", number + 0.5)
            for start in range(0, len(corpus), chunk):
                sources, targets, lines = zip(*corpus[start : start + chunk], strict=True)
                writer.add(sources, targets, lines)
    return Store.open(folder)


@given(st.lists(pairs, max_size=4), st.integers(1, 3))
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, corpora: list[list[tuple[list[int], list[int], int]]], chunk: int
) -> None:
    store = write(tmp_path_factory.mktemp("s") / "store", corpora, chunk)
    flat = [(number, *pair) for number, corpus in enumerate(corpora) for pair in corpus]
    assert len(store) == len(flat)
    for row, (number, source, target, line) in enumerate(flat):
        assert store.source(row).tolist() == source
        assert store.target(row).tolist() == target
        assert store.locate(row) == (f"corpus {number}", line)
    sources, targets = store.lengths(np.arange(len(store)))
    assert sources.tolist() == [len(source) for _, source, _, _ in flat]
    assert targets.tolist() == [len(target) for _, _, target, _ in flat]
    assert (store.source_tokens, store.target_tokens) == (sources.sum(), targets.sum())
    assert (store.longest_source, store.longest_target) == (sources.max(initial=0), targets.max(initial=0))
    assert [(c.name, c.weight, c.count) for c in store.corpora] == [
        (f"corpus {number}", number + 0.5, len(corpus)) for number, corpus in enumerate(corpora)
    ]


def test_the_fingerprint_is_of_the_contents_and_not_of_how_they_were_written(tmp_path: Path) -> None:
    corpus = [([5, 3], [7, 8, 3], 1), ([9, 3], [3], 2), ([6, 3], [6, 3], 4)]
    whole = write(tmp_path / "whole", [corpus]).fingerprint
    assert write(tmp_path / "chunks", [corpus], chunk=1).fingerprint == whole
    assert write(tmp_path / "other", [[*corpus[:2], ([6, 3], [6, 3], 5)]]).fingerprint != whole
    assert write(tmp_path / "moved", [[([5], [3, 7, 8, 3], 1), *corpus[1:]]]).fingerprint != whole


def test_a_large_vocabulary_gets_wider_tokens(tmp_path: Path) -> None:
    with StoreWriter(tmp_path / "store", "fingerprint", 70_000) as writer:
        writer.begin_corpus("only")
        writer.add([[69_999, 3]], [[3]], [1])
    assert Store.open(tmp_path / "store").source(0).tolist() == [69_999, 3]


def test_an_id_too_large_for_the_vocabulary_is_never_wrapped_around(tmp_path: Path) -> None:
    with pytest.raises(OverflowError):
        write(tmp_path / "store", [[([70_000], [3], 1)]])


# ---- failures --------------------------------------------------------------------------------------------------------


def test_an_error_while_writing_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        write(tmp_path / "store", [[([5, 3], [3], 1)], [([5, 3], 7, 1)]])
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_written_over(tmp_path: Path) -> None:
    child = """if True:
        import os, sys
        from pathlib import Path
        from regard.data.store import StoreWriter
        with StoreWriter(Path(sys.argv[1]), "fingerprint", 1000) as writer:
            writer.begin_corpus("only")
            writer.add([[5, 3]] * 100_000, [[3]] * 100_000, range(100_000))
            os.kill(os.getpid(), 9)
    """
    subprocess.run([sys.executable, "-c", child, str(tmp_path / "store")], check=False)
    assert not (tmp_path / "store").exists()
    assert len(write(tmp_path / "store", [[([5, 3], [3], 1)]])) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_a_full_disk_is_a_clear_error(tmp_path: Path) -> None:
    def limit_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    child = """if True:
        import sys
        from pathlib import Path
        from regard.data.store import StoreWriter
        from regard.errors import DiskError
        try:
            with StoreWriter(Path(sys.argv[1]), "fingerprint", 1000) as writer:
                writer.begin_corpus("only")
                writer.add([[5, 3]] * 100_000, [[3]] * 100_000, range(100_000))
        except DiskError as error:
            print(error)
    """
    command = [sys.executable, "-W", "error", "-c", child, str(tmp_path / "store")]
    done = subprocess.run(command, preexec_fn=limit_files, capture_output=True, text=True, check=True)
    assert done.stdout == f"{tmp_path / 'store'}: can't be written: File too large\n"
    assert done.stderr == ""
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"can't be written: (Not a directory|File exists)"):
        write(tmp_path / "file" / "store", [])


def test_a_missing_store_says_so(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="No such file"):
        Store.open(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["tokens.bin", "offsets.bin", "lines.bin"])
def test_a_cut_file_is_found_before_it_is_mapped(tmp_path: Path, name: str) -> None:
    write(tmp_path / "store", [[([5, 3], [3], 1)]])
    path = tmp_path / "store" / name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(FileFormatError, match=rf"{name}: damaged: \d+ bytes, expected \d+"):
        Store.open(tmp_path / "store")


@pytest.mark.parametrize(
    "change",
    [
        {"version": 99},
        {"version": []},
        {"token_type": "float"},
        {"corpora": [{}]},
        {"unknown": 1},
        {"pairs": "many"},
        {"pairs": -1},
        {"pairs": 10**30},
        {"tokens": None},
        {"corpora": []},
        {"corpora": [{"name": "a", "weight": 1.0, "first": 1, "count": 1}]},
        {"corpora": [{"name": "a", "weight": float("nan"), "first": 0, "count": 1}]},
    ],
    ids=str,
)
def test_a_description_that_is_not_ours_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    write(tmp_path / "store", [[([5, 3], [3], 1)]])
    path = tmp_path / "store" / "store.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(FileFormatError, match=r"version|not what regard writes|damaged"):
        Store.open(tmp_path / "store")


@pytest.mark.parametrize(
    ("name", "numbers", "told"),
    [
        ("offsets.bin", np.array([0, 2, 1], "<u8"), "ends before it begins"),
        ("offsets.bin", np.array([0, 2, 2**63], "<u8"), "does not belong"),
        ("offsets.bin", np.array([1, 2, 3], "<u8"), "does not belong"),
        ("tokens.bin", np.array([5, 3, 999], "<u2"), "ids that the vocabulary does not have"),
    ],
)
def test_numbers_that_lead_outside_of_the_files_are_found(
    tmp_path: Path, name: str, numbers: NDArray[Any], told: str
) -> None:
    store = write(tmp_path / "store", [[([5, 3], [3], 1)]])
    store.check_numbers(vocabulary_size=6)
    (tmp_path / "store" / name).write_bytes(numbers.tobytes())
    with pytest.raises(FileFormatError, match=told):
        Store.open(tmp_path / "store").check_numbers(vocabulary_size=6)


@pytest.mark.parametrize("name", ["store.json", "tokens.bin", "offsets.bin", "lines.bin"])
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(tmp_path: Path, name: str) -> None:
    write(tmp_path / "store", [[([5, 3], [3], 1)]])
    (tmp_path / "store" / name).unlink()
    os.mkfifo(tmp_path / "store" / name)
    with pytest.raises(FileFormatError, match="a pipe"):
        Store.open(tmp_path / "store")
