"""Rubbish in, an error of ours out: every reader on arbitrary bytes and on good files that were damaged."""

import importlib.util
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

PATH = Path(__file__).parent.parent / "fuzz" / "readers.py"
spec = importlib.util.spec_from_file_location("fuzz_readers", PATH)
assert spec is not None
assert spec.loader is not None
readers = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = readers
spec.loader.exec_module(readers)

every_reader = pytest.mark.parametrize("name", readers.READERS)
HOSTILE = [
    b"",
    b"\0",
    b"\xff" * 8,
    b"[" * 2000,
    b"9" * 5000,
    b".a" * 100,
    b"=",
    b'"',
    b"\n",
    b"\t",
    b"NaN",
    b"\x1f\x8b",
]


@every_reader
@given(data=st.binary(max_size=1000))
def test_any_bytes_are_read_or_are_an_error_of_ours(name: str, data: bytes) -> None:
    readers.READERS[name].read(data)


@st.composite
def damages(draw: st.DrawFn) -> list[tuple[float, float, bytes]]:
    """Draw changes of a file: from where, how much of it is replaced, and by what."""
    share = st.floats(0, 1, exclude_max=True)
    part = st.sampled_from(HOSTILE) | st.binary(min_size=1, max_size=4)
    return draw(st.lists(st.tuples(share, st.sampled_from([0.0, 0.001, 0.1, 1.0]), part), min_size=1, max_size=4))


@every_reader
@given(changes=damages(), choice=st.integers(0, 100))
def test_a_damaged_file_is_read_or_is_an_error_of_ours(
    name: str, changes: list[tuple[float, float, bytes]], choice: int
) -> None:
    reader = readers.READERS[name]
    seeds = reader.seeds()
    data = seeds[choice % len(seeds)]
    for place, share, part in changes:
        start = int(place * len(data))
        end = start + max(len(part) if share == 0 else 0, int(share * len(data)))
        data = data[:start] + part + data[end:]
    reader.read(data)


@every_reader
def test_a_good_file_is_read(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The harness itself: where nothing is wrong, nothing is caught."""
    caught: list[BaseException] = []

    class Counting:
        def __init__(self, *kinds: type[BaseException]) -> None:
            self.kinds = kinds

        def __enter__(self) -> None:
            pass

        def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
            caught.extend([error] if error else [])
            return isinstance(error, self.kinds)

    monkeypatch.setattr(readers, "suppress", Counting)
    for seed in readers.READERS[name].seeds():
        readers.READERS[name].read(seed)
    expected = {"recipe": "override"}.get(name)  # a recipe is no override
    assert all(expected and expected in str(error) for error in caught)
