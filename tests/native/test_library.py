"""The compiled library: found, refused, switched off."""

import subprocess
import sys
from pathlib import Path

import pytest

from regard.native import library

ASK = "from regard.native.library import find_library as f; print(getattr(f(), 'kind', None))"


def ask(**environment):
    command = [sys.executable, "-c", ASK]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


def path_of_source():
    return {"PYTHONPATH": str(Path(library.__file__).parents[2])}


def test_it_can_be_switched_off(monkeypatch):
    monkeypatch.delenv("REGARD_NATIVE", raising=False)  # whoever runs the tests may have set it
    assert ask(**path_of_source(), REGARD_NATIVE="off") == "None"
    assert ask(**path_of_source()) == str(getattr(library.find_library.__wrapped__(), "kind", None))


@pytest.mark.skipif(library.find_library() is None, reason="no compiled engine here")
def test_a_library_of_another_version_is_as_good_as_none(monkeypatch):
    monkeypatch.setattr(library, "_INTERFACE", -1)
    assert library._load.__wrapped__() is None


def test_a_file_that_is_no_library_is_as_good_as_none(tmp_path, monkeypatch):
    (tmp_path / f"_engine{library.EXTENSION_SUFFIXES[0]}").write_bytes(b"rubbish")
    monkeypatch.setattr(library, "__file__", str(tmp_path / "library.py"))
    assert library._load.__wrapped__() is None


def test_the_version_is_the_header_s():
    header = Path(library.__file__).with_name("engine.h").read_text()
    assert f"#define INTERFACE {library._INTERFACE} " in header
