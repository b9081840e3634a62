import json
import re
import subprocess
import sys
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from growing.fit import FULL, RESTRICTED, encoding_products, slope, training_products, vocabulary_products
from growing.models import make_batch
from growing.picture import draw
from growing.plan import PANELS, points
from growing.table import dates_line, machine_line, processes_table, slopes_table

ROOT = Path(__file__).parents[2]
COMMAND = ROOT / "benchmarks" / "growth.py"
MEASURED = json.loads((ROOT / "benchmarks" / "growth.json").read_text())


def grow(*words: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, COMMAND, *words], capture_output=True, text=True, check=False)


def test_the_quick_form_measures_what_is_missing_and_draws_it(tmp_path: Path) -> None:
    before = {"line": "tiny", "value": 2, "translation_seconds": 1.5, "date": "2026-01-01", "commit": "0123456"}
    (tmp_path / "growth.json").write_text(json.dumps({"panels": {"beam": [before]}}))
    done = grow("--quick", "--go-on", "--only", "beam", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "beam 1, tiny" in done.stderr
    assert "beam 2, tiny" not in done.stderr
    first, second = json.loads((tmp_path / "growth.json").read_text())["panels"]["beam"]
    assert first == before
    assert second["value"] == 1
    assert 0 < second["translation_seconds"] < 60
    assert (tmp_path / "growth.svg").read_text().startswith("<?xml")
    assert (tmp_path / "growth.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_of_nothing_is_refused(tmp_path: Path) -> None:
    done = grow("--picture", "--out", tmp_path)
    assert done.returncode == 1
    assert "nothing was measured yet" in done.stderr


def test_the_page_shows_the_picture_of_what_was_measured(tmp_path: Path) -> None:
    shown = (ROOT / "docs" / "growth.svg").read_text()
    if f"Matplotlib v{matplotlib.__version__}" not in shown:
        pytest.skip("drawn by another version of Matplotlib")
    drawn = draw(MEASURED, tmp_path / "growth")[0].read_text()
    places = [np.array(re.findall(r"-?\d+\.\d+", svg), float) for svg in (drawn, shown)]
    np.testing.assert_allclose(*places, atol=0.01)  # as machines round differently


@pytest.mark.parametrize("write", [machine_line, dates_line, slopes_table, processes_table])
def test_the_page_has_what_was_measured(write: object) -> None:
    page = (ROOT / "docs" / "growth.md").read_text(encoding="utf-8")
    assert write(MEASURED) in page


@pytest.mark.parametrize("panel", PANELS.values(), ids=lambda panel: panel.name)
def test_every_point_of_the_plan_was_measured(panel: object) -> None:
    found = {(one["line"], one["value"]) for one in MEASURED["panels"][panel.name]}
    wanted = {(point.line, point.value) for point in points(panel, quick=False)}
    assert found == wanted


# ---- what is expected ------------------------------------------------------------------------------------------------


def test_the_slope_is_the_power() -> None:
    assert slope([(1, 3), (2, 12), (4, 48)]) == pytest.approx(2)
    assert slope([(10, 7), (1000, 7)]) == pytest.approx(0, abs=1e-9)


def test_full_attention_grows_with_the_length_and_restricted_attention_does_not() -> None:
    far = 2**20
    for products in (training_products, encoding_products):
        assert products(FULL)(2 * far) / products(FULL)(far) == pytest.approx(2, rel=1e-2)
    assert encoding_products(RESTRICTED)(far) == encoding_products(RESTRICTED)(far // 2)
    # The decoder looks at all of the source, in either case.
    assert training_products(RESTRICTED)(2 * far) / training_products(RESTRICTED)(far) == pytest.approx(2, rel=1e-2)
    assert vocabulary_products(2**30) / vocabulary_products(2**29) == pytest.approx(2, rel=1e-2)


def test_a_batch_has_as_many_tokens_whatever_the_length() -> None:
    for length in PANELS["length"].values:
        batch = make_batch(length, 100, 2048)
        assert batch.tokens == batch.src.size == 2048
        assert batch.tgt.shape == (2048 // length, length + 1)
